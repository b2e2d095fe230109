/** `tollgate usage`: what customers used in a window of time, from the sums of the call log. */
import { type Command, Option } from 'commander'
import { type WindowParameters, windowOf } from '../../../pipelines/query.ts'
import type { WindowEnd } from '../../../schemas/call-log/query.ts'
import { CURRENCY, LOG_PERIODS, type LogPeriod } from '../../../schemas/call-log/row.ts'
import { Failure } from '../../../schemas/failure.ts'
import { printCredits } from '../../../schemas/money.ts'
import { USAGE_GROUPS, type UsageGroup, type UsageSums } from '../../clickhouse/summaries/usage-by.ts'
import { csvRecord } from '../../core/call-log/csv-records.ts'
import { DAY_MS, type LogWindow } from '../../core/call-log/window.ts'
import type { Accounts, Keys } from '../../postgres/accounts/repository.ts'
import { type Answer, answers, type Context } from '../context.ts'
import { windowEndText } from '../option-values.ts'
import { printTable } from '../output.ts'

const DEFAULT_PERIOD: LogPeriod = '30d'
const FORMATS = ['text', 'csv'] as const
const SUM_FIELDS = ['requests', 'cost', 'input_tokens', 'output_tokens', 'cached_tokens'] as const
/** Columns before the sums. */
const GROUP_FIELDS = {
  account: ['account_id', 'name'],
  model: ['model'],
  day: ['day'],
  key: ['key_id', 'name', 'account_id'],
} as const satisfies Record<UsageGroup, readonly string[]>

interface UsageFlags {
  readonly account?: string
  readonly period?: LogPeriod
  readonly from?: WindowEnd
  readonly to?: WindowEnd
  readonly by?: UsageGroup
  readonly format: (typeof FORMATS)[number]
}

const sumsShape = (
  sums: Pick<UsageSums, 'requests' | 'cost' | 'inputTokens' | 'outputTokens' | 'cachedTokens'>,
) => ({
  requests: sums.requests,
  cost: printCredits(sums.cost),
  input_tokens: sums.inputTokens,
  output_tokens: sums.outputTokens,
  cached_tokens: sums.cachedTokens,
})

function totalOf(rows: readonly UsageSums[]) {
  const sum = (part: (row: UsageSums) => number): number => rows.reduce((total, row) => total + part(row), 0)
  return sumsShape({
    requests: sum(({ requests }) => requests),
    cost: rows.reduce((total, { cost }) => total + cost, 0n),
    inputTokens: sum(({ inputTokens }) => inputTokens),
    outputTokens: sum(({ outputTokens }) => outputTokens),
    cachedTokens: sum(({ cachedTokens }) => cachedTokens),
  })
}

type Named = Pick<Accounts, 'listAccounts'> & Pick<Keys, 'keyNames'>

/** Returns the names of the groups, by id. */
async function namesOf(
  database: Named,
  by: UsageGroup,
  rows: readonly UsageSums[],
): Promise<ReadonlyMap<string, string>> {
  if (by === 'account')
    return new Map((await database.listAccounts()).map(({ account: { id, name } }) => [id, name]))
  return by === 'key' ? database.keyNames(rows.flatMap(({ keyId }) => keyId ?? [])) : new Map()
}

function rowShape(row: UsageSums, by: UsageGroup, names: ReadonlyMap<string, string>) {
  const sums = sumsShape(row)
  const nameOf = (id: string | null): string | null => (id === null ? null : (names.get(id) ?? null))
  switch (by) {
    case 'account':
      return { account_id: row.accountId, name: nameOf(row.accountId), ...sums }
    case 'key':
      return { key_id: row.keyId, name: nameOf(row.keyId), account_id: row.accountId, ...sums }
    case 'model':
      return { model: row.model, ...sums }
    case 'day':
      return { day: row.day, ...sums }
  }
}

/** Days are counted from 1970 on, and nothing has ended that is still to come. */
const withCalls = ({ from, to }: LogWindow, now: number): LogWindow => ({
  from: Math.max(from, 0),
  to: Math.min(to, now + DAY_MS),
})

export function addUsageCommand(program: Command, context: Context): void {
  const { wiring } = context
  const usage = program
    .command('usage')
    .description('what customers used in a window of time, from the sums of the call log')
    .option('--account <id>', 'of this account (default: of all)')
    .addOption(
      new Option('--period <name>', `window that ends now (default: ${DEFAULT_PERIOD})`)
        .choices(LOG_PERIODS)
        .conflicts(['from', 'to']),
    )
    .option('--from <time>', 'first day of UTC, or instant; together with --to', windowEndText)
    .option('--to <time>', 'last day, included whole, or instant that counts no more', windowEndText)
    .addOption(
      new Option('--by <what>', 'a row for each (default: account; of one account, model)').choices(
        USAGE_GROUPS,
      ),
    )
    .addOption(
      new Option('--format <format>', 'csv: RFC 4180 with a header, without the total')
        .choices(FORMATS)
        .default('text'),
    )
  const windowOrUsage = (given: WindowParameters, now: number): LogWindow => {
    try {
      return windowOf(given, DEFAULT_PERIOD, now)
    } catch (error) {
      if (error instanceof Failure) usage.error(`error: ${error.message}`)
      throw error
    }
  }
  answers(
    context,
    usage,
    'usage --from 2026-10-01 --to 2026-10-31 --by account --format csv',
    async ({ account, period, from, to, by: asked, format }: UsageFlags): Promise<Answer> => {
      if ((from === undefined) !== (to === undefined)) usage.error('error: name --from and --to together')
      const now = Date.now()
      const window = windowOrUsage({ from, to, period }, now)
      const by = asked ?? (account === undefined ? 'account' : 'model')
      const rows = await wiring.withUsage(async ({ database, log }) => {
        if (account !== undefined) await database.showAccount(account)
        const sums = await log.usageBy({ accountId: account ?? null, by, ...withCalls(window, now) })
        const names = await namesOf(database, by, sums)
        return { shapes: sums.map((row) => rowShape(row, by, names)), total: totalOf(sums) }
      })
      const json = {
        object: 'usage',
        currency: CURRENCY,
        period_from: new Date(window.from).toISOString(),
        period_to: new Date(window.to).toISOString(),
        account_id: account ?? null,
        by,
        rows: rows.shapes,
        total: rows.total,
      }
      const fields = [...GROUP_FIELDS[by], ...SUM_FIELDS]
      return { json, text: () => (format === 'csv' ? printCsv(json, fields) : printUsage(json, fields)) }
    },
  )
}

interface Printed {
  readonly period_from: string
  readonly period_to: string
  readonly rows: readonly ReturnType<typeof rowShape>[]
  readonly total: ReturnType<typeof sumsShape>
}

function printUsage({ period_from, period_to, rows, total }: Printed, fields: readonly string[]): string {
  const [first = ''] = fields
  const table = printTable([...rows, { [first]: 'total', ...total }], fields)
  return `${period_from} to ${period_to}\n\n${table}`
}

const printCsv = ({ rows }: Printed, fields: readonly string[]): string =>
  [fields, ...rows.map((row) => fields.map((field) => row[field as keyof typeof row] ?? null))]
    .map(csvRecord)
    .join('')
