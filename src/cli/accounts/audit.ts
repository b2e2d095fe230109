/** `tollgate audit`: the acts of operators and members, with their time and their changes. */
import { auditActs } from '../../../pipelines/management/accounts/audit.ts'
import { listAudit, listInstallationAudit } from '../../../schemas/management/accounts/audit.ts'
import type { AnswerOf } from '../../../schemas/management/operation.ts'
import type { Command, Context } from '../context.ts'
import { runnerOf } from '../management.ts'
import { entryLimit, instant } from '../option-values.ts'
import { isObject, type Json, type Paint, painter, printable } from '../output.ts'

const DEFAULT_ENTRIES = 50
const NOTHING = '-'

const withJson = (entry: AnswerOf<typeof listAudit>['data'][number]) => {
  const { before, after, ...act } = entry
  // JSON values, as PostgreSQL keeps them.
  return { ...act, before: before as Json, after: after as Json }
}
type Act = ReturnType<typeof withJson>

const display = (value: Json | undefined): string => {
  if (value === undefined || value === null) return NOTHING
  return printable(typeof value === 'string' ? value : JSON.stringify(value))
}

/** Returns nested fields under both names: `file.model`. */
const partsOf = (value: Json, prefix = ''): [string, Json][] =>
  isObject(value)
    ? Object.entries(value).flatMap(([name, part]): [string, Json][] =>
        isObject(part) ? partsOf(part, `${prefix}${name}.`) : [[prefix + name, part]],
      )
    : []

function changedFields({ before, after }: Act): { name: string; from: string; to: string }[] {
  const [old, now] = [new Map(partsOf(before)), new Map(partsOf(after))]
  return [...new Set([...old.keys(), ...now.keys()])]
    .map((name) => ({ name, from: display(old.get(name)), to: display(now.get(name)) }))
    .filter(({ from, to }) => from !== to)
}

/** Prints a line for the act, then one for each field: `name: before -> after`. */
function printAct(act: Act, paint: Paint): string {
  const { id, created_at, actor, action, account_id, subject_id } = act
  const head = [
    display(id),
    paint('dim', created_at),
    display(actor),
    paint(colourOf(act), display(action)),
    display(account_id),
    display(subject_id),
  ]
  const fields = changedFields(act).map(
    ({ name, from, to }) => `    ${paint('dim', `${printable(name)}:`)} ${from} -> ${to}`,
  )
  return [head.join('  '), ...fields].map((line) => `${line}\n`).join('')
}

/** Returns the colour of a created, a removed or a changed value. */
function colourOf({ before, after }: Act): 'green' | 'red' | 'yellow' {
  if (before === null) return 'green'
  return after === null ? 'red' : 'yellow'
}

const printActs = (acts: readonly Act[], isColoured: boolean): string =>
  acts.length === 0 ? 'none\n' : acts.map((act) => printAct(act, painter(isColoured))).join('\n')

interface AuditOptions {
  account?: string
  subject?: string
  since?: Date
  limit: number
}

export function addAuditCommand(program: Command, context: Context): void {
  const { list } = runnerOf(context.wiring, auditActs, () => ({}))
  program
    .command('audit')
    .description('administrative acts, the newest first: of a change, what differs before and after')
    .option('--account <id>', 'of this account')
    .option('--subject <id>', 'of this key, member, request, agent, knowledge base or account')
    .option('--since <time>', 'from this RFC 3339 time on', instant)
    .option('--limit <n>', 'how many', entryLimit, DEFAULT_ENTRIES)
    .example('audit --account acc_01J8Z3N4V9QKX2T5W7Y0ABCDEF --since 2030-01-31 --limit 20')
    .answers(async ({ account, subject, since, limit }: AuditOptions) => {
      const filters = { subject_id: subject, since: since?.toISOString() }
      const entries =
        account === undefined
          ? await list(listInstallationAudit, filters, limit)
          : await list(listAudit, { account_id: account, ...filters }, limit)
      const json = entries.map(withJson)
      return { json, text: () => printActs(json, context.output.isColoured) }
    })
}
