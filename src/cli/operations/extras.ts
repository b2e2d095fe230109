/** What commands add to their operations: questions, files, options, other answers. */
import { resolve } from 'node:path'
import { InvalidArgumentError, Option } from 'commander'
import { printCursor } from '../../../pipelines/management/page.ts'
import { type AgentFile, agentFile } from '../../../schemas/accounts/agent.ts'
import { listLedger } from '../../../schemas/management/accounts/accounts.ts'
import type { showAgent } from '../../../schemas/management/accounts/agents.ts'
import { importLog } from '../../../schemas/management/call-log.ts'
import { USAGE_MAX_ROWS } from '../../../schemas/management/calls/usage.ts'
import { showChannelImpact } from '../../../schemas/management/health.ts'
import { showWebhook } from '../../../schemas/management/notifications/webhooks.ts'
import type { AnswerOf } from '../../../schemas/management/operation.ts'
import { showPayment } from '../../../schemas/management/payments/payments.ts'
import { type Credits, parseCredits, printCredits } from '../../../schemas/money.ts'
import { TASK_STATES } from '../../../schemas/tasks/task.ts'
import { toProblems } from '../../config/issues.ts'
import { readConfigText } from '../../config/load.ts'
import type { Problem } from '../../config/problem.ts'
import { readSource } from '../../config/source.ts'
import {
  computeReversal,
  countRefundable,
  parsePrice,
  printPrice,
  readShownPayment,
} from '../../core/payments/price.ts'
import { FileProblems, findAgentConfig, requireConfig } from '../config/config.ts'
import type { Answer, Context } from '../context.ts'
import { type JsonObject, printable, printCount } from '../output.ts'
import type { Input } from './run.ts'
import { printAudit, printUsage } from './texts.ts'

/** Enough for the longest persona in any script and all other fields. */
const MAX_AGENT_FILE_BYTES = 256 * 1024

// biome-ignore lint/suspicious/noExplicitAny: one table holds the extras of all operations, each with another input and answer.
type Any = any

/** What a command would do. */
export interface Effect {
  readonly text: string
  /** Fields that are typed to confirm it, besides those of the input. */
  readonly subject?: object
}

export interface Extra {
  /** Comes after the options in the help. */
  readonly help?: string
  readonly options?: () => Option[]
  /** Returns why the input is wrong usage; null if it is right. */
  readonly refuse?: (input: Any, options: Any) => string | null
  /** Replaces the `effect` of the form. Returns null if there is nothing to ask. */
  readonly effect?: (input: Any, context: Context) => Promise<Effect | null>
  /** Reads what the operation is about, where no `GET` answers it by the same id. */
  readonly subject?: (input: Any, context: Context) => Promise<object>
  /** Returns what is added to the input. */
  readonly prepare?: (
    input: Any,
    options: Any,
    context: Context,
  ) => Promise<Input | undefined> | Input | undefined
  /** Returns a record of the answer in another form. */
  readonly shape?: (record: Any) => JsonObject
  /** Runs when the operation has succeeded; may return another answer. */
  readonly after?: (answer: Any, options: Any, context: Context) => Answer | undefined
  /** True if an invalid request is wrong usage. */
  readonly isWrongUsage?: true
}

type ReadChange = (input: Any, context: Context) => Promise<Credits> | Credits

const readGiven: ReadChange = ({ amount, credit = '0' }) => parseCredits(amount ?? credit)

/** Asks before a balance changes by more than `wallet.confirm_above`. */
const confirmChange = (describe: (input: Any, amount: Credits) => string, readChange = readGiven): Extra => ({
  async effect(input, context) {
    const amount = await readChange(input, context)
    if (amount === 0n) return null
    const limit = requireConfig(context.wiring, 'all but channels').wallet.confirm_above
    if ((amount < 0n ? -amount : amount) <= limit) return null
    const printed = printCredits(amount)
    return {
      text: `This would ${describe(input, amount)}, which is more than wallet.confirm_above (${printCredits(limit)})`,
      subject: { amount: printed, credit: printed },
    }
  },
})

/** Returns the credits of a refund: without an amount, what was charged. The refund itself refuses where there is no charge. */
const readRefund: ReadChange = async ({ id, ref, amount }, context) => {
  if (amount !== undefined) return parseCredits(amount)
  const { runOperation } = await import('./run.ts')
  const { data } = await runOperation(listLedger, { id, kind: 'charge', search: ref }, context)
  const charges = data as AnswerOf<typeof listLedger>['data']
  return -parseCredits(charges.find((entry) => entry.ref === ref)?.amount ?? '0')
}

/** Says what the refund of a payment pays back and takes; null if there is nothing to refund. */
async function describeRefund({ id, amount }: Any, context: Context): Promise<Effect | null> {
  const { runOperation } = await import('./run.ts')
  const payment = (await runOperation(showPayment, { id }, context)) as AnswerOf<typeof showPayment>
  const { currency, account_id, state } = payment
  const reversible = readShownPayment(payment)
  const part = amount === undefined ? countRefundable(reversible) : parsePrice(amount, currency)
  if (part === null || part === 0n || state !== 'paid') return null
  const printed = printPrice({ amount: part, currency })
  const price = `${printed} ${currency.toUpperCase()}`
  const taken = printCredits(computeReversal(reversible, part))
  return {
    text: `This would pay ${price} back to the card, for good, and take ${taken} credits from ${account_id}`,
    subject: { amount: printed },
  }
}

const findOrganization = async ({ id }: { id: string }, _: unknown, { wiring }: Context): Promise<Input> => ({
  account_id: (await (await wiring.database()).keyRequests.show(id)).organizationId,
})

const failIf = (isNo: (answer: Any) => boolean): Extra => ({
  after(answer, _, context) {
    if (isNo(answer)) context.isNegativeAnswer()
    return undefined
  },
})

type Agent = AnswerOf<typeof showAgent>

/** Returns the agent with the fields of its file among its own. */
const shape = ({ id, account_id, file, state, draft, drafted_at, created_at, updated_at }: Agent) =>
  ({ id, account_id, ...file, state, draft, drafted_at, created_at, updated_at }) satisfies JsonObject

/** Warns if calls of the agent would be refused. */
function warnOfAgent(agent: Agent, _: unknown, { wiring, output }: Context): undefined {
  const { reason } = findAgentConfig(wiring)
  if (reason !== null) output.error(`warning: the model was not checked: ${reason}\n`)
  for (const doubt of agent.warnings) output.error(`warning: calls of this agent will be refused: ${doubt}\n`)
}

/** Reads an agent's YAML file. @throws FileProblems with every problem and its place */
function readAgentFile(path: string): AgentFile {
  const refuse = (problems: readonly Problem[]) => new FileProblems('The agent file', problems)
  const { text, refusal } = readConfigText(path, MAX_AGENT_FILE_BYTES)
  if (refusal !== null) throw refuse([{ file: path, line: 1, column: 1, field: '', message: refusal }])
  const source = readSource(text, path, null)
  if (source.problems.length > 0) throw refuse(source.problems)
  const parsed = agentFile.safeParse(source.value)
  if (parsed.success) return parsed.data
  const problems = toProblems(parsed.error.issues, agentFile, source)
  throw refuse(problems.sort((a, b) => a.line - b.line || a.column - b.column))
}

const agentFromFile: Extra = {
  shape,
  prepare: ({ file }) => ({ file: readAgentFile(file) }),
  after: warnOfAgent,
}

function readStates(text: string): string {
  const isKnown = (word: string) => (TASK_STATES as readonly string[]).includes(word.trim())
  if (text === 'open' || text.split(',').every(isKnown)) return text
  throw new InvalidArgumentError(
    `It must be "open", or a list of these, separated by commas: ${TASK_STATES.join(', ')}.`,
  )
}

/** Asks before models lose their last channel. */
const confirmHold = (word: string): Extra => ({
  async effect({ id }, context) {
    const { runOperation } = await import('./run.ts')
    const impact = await runOperation(showChannelImpact, { id }, context)
    const orphans = impact.orphaned_models as string[]
    if (orphans.length === 0) return null
    const calls = impact.calls_last_hour === null ? 'an unknown number of' : String(impact.calls_last_hour)
    return {
      text: `To ${word} ${id} would leave ${orphans.join(', ')} without a channel; it had ${calls} calls in the last hour`,
    }
  },
})

/** By the words of the command. */
export const EXTRAS: Readonly<Record<string, Extra>> = {
  'account create': confirmChange(({ name, credit }) => `give ${name} a credit of ${credit}`),
  'wallet topup': confirmChange(({ id, amount }) => `add ${amount} credits to ${id}`),
  'wallet adjust': confirmChange(({ id }, amount) =>
    amount < 0n
      ? `take ${printCredits(-amount)} credits from ${id}`
      : `add ${printCredits(amount)} credits to ${id}`,
  ),
  'wallet refund': confirmChange(
    ({ id, ref }, amount) => `give ${id} back ${printCredits(amount)} credits of ${ref}`,
    readRefund,
  ),
  'wallet import-log': {
    async effect({ dry_run = true }, context) {
      if (dry_run) return null
      const { runOperation } = await import('./run.ts')
      const { calls, cost } = await runOperation(importLog, { dry_run: true }, context)
      if (calls === 0) return null
      return { text: `${printCount(Number(calls), 'call')} would be charged, ${cost} credits in all` }
    },
    help: `
The log is a copy of PostgreSQL. It has calls that PostgreSQL lacks only if PostgreSQL lost committed data, such as
after a restore from an older copy. Without --book nothing is changed. With it each call is booked once, by its request
id, at the cost that it had. Calls of accounts that PostgreSQL does not know stay as they are. Then run logs rebuild:
until then the log has the booked calls twice.`,
  },
  'wallet show': { shape: ({ wallet }) => wallet },
  'key create': {
    refuse({ kind = 'console', agent_id, spend_cap, account_logs }) {
      if ((kind === 'agent') !== (agent_id !== undefined))
        return '--agent is required with --kind agent, and allowed with no other kind'
      if (spend_cap !== undefined && kind !== 'employee' && kind !== 'agent')
        return '--spend-cap is only for --kind employee or agent'
      return account_logs && kind !== 'console' ? '--account-logs is only for --kind console' : null
    },
  },
  'key forget': {
    options: () => [new Option('--all', 'Of every key of every account (required)').makeOptionMandatory()],
  },
  'key update': {
    async effect({ id, enabled }, context) {
      if (enabled !== false) return null
      const { name } = await (await context.wiring.database()).keys.show(id)
      return {
        text: `This would refuse the calls of the key ${printable(name)} (${id}) until it is enabled again`,
      }
    },
  },
  'key approve': { prepare: findOrganization },
  'key deny': { prepare: findOrganization },
  'member remove': {
    async subject({ member_id }, { wiring }) {
      const { account } = await (await wiring.database()).accounts.show(member_id)
      return { name: account.name }
    },
  },
  'token revoke': {
    subject: async ({ id }, { wiring }) => (await wiring.database()).managementTokens.show(id),
  },
  'budget delete': {
    subject: async ({ id }, { wiring }) => (await wiring.database()).budgets.show(id),
  },
  'webhook delete': {
    async subject({ id }, context) {
      const { runOperation } = await import('./run.ts')
      const endpoint = (await runOperation(showWebhook, { id }, context)) as AnswerOf<typeof showWebhook>
      return { ...endpoint, host: new URL(endpoint.url).host }
    },
  },
  'budget set': {
    refuse: ({ key_id, member_id }) =>
      key_id !== undefined && member_id !== undefined ? '--key and --member do not go together' : null,
  },
  'agent create': agentFromFile,
  'agent update': agentFromFile,
  'agent publish': { shape, after: warnOfAgent },
  'agent unpublish': { shape },
  'agent delete': { shape },
  'agent show': { shape },
  'agent list': { shape },
  'task list': {
    options: () => [
      new Option('--state <states>', '"open", or a list of states separated by commas').argParser(readStates),
      new Option('--before <task>', 'The next page: tasks older than this one'),
    ],
    prepare: (_, { state, before }) => ({
      ...(state === 'open' ? { open: 'true' } : { state }),
      ...(before !== undefined && { cursor: printCursor(before) }),
    }),
  },
  'payments refund': { effect: describeRefund },
  'payments reconcile': failIf(({ refused, failed }) => refused + failed > 0),
  'channels pause': confirmHold('pause'),
  'channels drain': confirmHold('drain'),
  'channels test': failIf(({ ok }) => !ok),
  'journal import': { prepare: ({ directory }) => ({ directory: resolve(directory) }) },
  audit: {
    after: ({ data }, _, { output }) => ({ json: data, text: () => printAudit(data, output.isColoured) }),
  },
  usage: {
    isWrongUsage: true,
    options: () => [
      new Option('--format <format>', 'As csv: RFC 4180 with a header, without the total')
        .choices(['text', 'csv'])
        .default('text'),
    ],
    refuse({ period, from, to }) {
      if ((from === undefined) !== (to === undefined)) return 'give --from and --to together'
      return period !== undefined && from !== undefined ? '--period and --from do not go together' : null
    },
    after(answer, { format }, { output }) {
      if (answer.has_more)
        output.error(`The first ${USAGE_MAX_ROWS} rows are shown; the total counts the others too.\n`)
      return { json: answer, text: () => printUsage(answer, format) }
    },
  },
}
