/** `tollgate usage`: what customers used in a window of time, from the sums of the call log. */
import { Option } from 'commander'
import { installationUsageActs } from '../../../pipelines/management/calls/installation-usage.ts'
import { LOG_PERIODS, type LogPeriod } from '../../../schemas/call-log/row.ts'
import { Failure } from '../../../schemas/failure.ts'
import {
  showInstallationUsage,
  USAGE_GROUPS,
  USAGE_MAX_ROWS,
  type UsageGroup,
} from '../../../schemas/management/calls/usage.ts'
import type { AnswerOf, InputOf } from '../../../schemas/management/operation.ts'
import { csvRecord } from '../../core/call-log/csv-records.ts'
import type { Answer, Command, Context } from '../context.ts'
import { runCommandAct } from '../management.ts'
import { windowEndText } from '../option-values.ts'
import { printTable } from '../output.ts'

const FORMATS = ['text', 'csv'] as const
const SUM_FIELDS = ['requests', 'cost', 'input_tokens', 'output_tokens', 'cached_tokens'] as const
/** Columns behind the sums, where the cost of any call is known. */
const MARGIN_FIELDS = ['upstream_cost', 'margin', 'requests_with_cost'] as const
/** Columns before the sums. */
const GROUP_FIELDS = {
  account: ['account_id', 'name'],
  model: ['model'],
  day: ['day'],
  key: ['key_id', 'name', 'account_id'],
  channel: ['channel_id'],
} as const satisfies Record<UsageGroup, readonly string[]>

type Usage = AnswerOf<typeof showInstallationUsage>

interface UsageFlags {
  readonly account?: string
  readonly period?: LogPeriod
  readonly from?: string
  readonly to?: string
  readonly by?: UsageGroup
  readonly format: (typeof FORMATS)[number]
}

export function addUsageCommand(program: Command, { wiring, output }: Context): void {
  const usage = program
    .command('usage')
    .description('what customers used in a window of time, from the sums of the call log')
    .option('--account <id>', 'of this account (default: of all)')
    .addOption(
      new Option('--period <name>', 'window that ends now (default: 30d)')
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
    .example('usage --from 2026-10-01 --to 2026-10-31 --by account --format csv')
  const read = (input: InputOf<typeof showInstallationUsage>): Promise<Usage> =>
    wiring.withUsage(({ database, callLog }) =>
      runCommandAct(wiring, installationUsageActs, showInstallationUsage, input, {
        database,
        deps: { callLog },
      }).catch((error: unknown) => {
        if (error instanceof Failure && error.code === 'invalid_request')
          usage.error(`error: ${error.message}`)
        throw error
      }),
    )
  usage.answers(async ({ account, format, ...input }: UsageFlags): Promise<Answer> => {
    if ((input.from === undefined) !== (input.to === undefined))
      usage.error('error: name --from and --to together')
    const found = await read({ account_id: account, limit: USAGE_MAX_ROWS, ...input })
    if (found.has_more)
      output.error(`The first ${USAGE_MAX_ROWS} rows are shown; the total counts those beyond too.\n`)
    const margins = found.total.upstream_cost === null ? [] : MARGIN_FIELDS
    const fields = [...GROUP_FIELDS[found.by], ...SUM_FIELDS, ...margins]
    return {
      json: found,
      text: () => (format === 'csv' ? printCsv(found, fields) : printUsage(found, fields)),
    }
  })
}

function printUsage(
  { period_from, period_to, rows, total, lost_submits: lost }: Usage,
  fields: readonly string[],
): string {
  const [first = ''] = fields
  const table = printTable([...rows, { [first]: 'total', ...total }], fields)
  const note =
    lost.submits === 0
      ? ''
      : `\nIn no sum: ${lost.submits} lost submits, whose known cost is ${lost.upstream_cost}. See: tollgate task lost --all\n`
  return `${period_from} to ${period_to}\n\n${table}${note}`
}

const printCsv = ({ rows }: Usage, fields: readonly string[]): string =>
  [fields, ...rows.map((row) => fields.map((field) => row[field as keyof typeof row] ?? null))]
    .map(csvRecord)
    .join('')
