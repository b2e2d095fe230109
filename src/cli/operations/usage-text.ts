/** Prints the answer of `tollgate usage`. */
import type { showInstallationUsage, UsageGroup } from '../../../schemas/management/calls/usage.ts'
import type { AnswerOf } from '../../../schemas/management/operation.ts'
import { printCsvRecord } from '../../core/call-log/csv-records.ts'
import { printTable } from '../output.ts'

const SUM_FIELDS = ['requests', 'cost', 'input_tokens', 'output_tokens', 'cached_tokens'] as const
/** Columns after the sums, where the cost of any call is known. */
const MARGIN_FIELDS = ['upstream_cost', 'margin', 'requests_with_cost'] as const
/** Columns before the sums. */
const GROUP_FIELDS = {
  account: ['account_id', 'name'],
  model: ['model'],
  day: ['day'],
  key: ['key_id', 'name', 'account_id'],
  channel: ['channel_id'],
} as const satisfies Record<UsageGroup, readonly string[]>

export function printUsage(usage: AnswerOf<typeof showInstallationUsage>, format: 'text' | 'csv'): string {
  const { period_from, period_to, by, rows, total, lost_submits: lost } = usage
  const fields = [...GROUP_FIELDS[by], ...SUM_FIELDS, ...(total.upstream_cost === null ? [] : MARGIN_FIELDS)]
  if (format === 'csv')
    return [fields, ...rows.map((row) => fields.map((field) => row[field] ?? null))]
      .map(printCsvRecord)
      .join('')
  const table = printTable([...rows, { [fields[0]!]: 'total', ...total }], fields)
  const note =
    lost.submits === 0
      ? ''
      : `\nIn no sum: ${lost.submits} lost submits, whose known cost is ${lost.upstream_cost}. See: tollgate task lost --all\n`
  return `${period_from} to ${period_to}\n\n${table}${note}`
}
