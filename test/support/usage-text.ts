/** Usage rows as the text that goes from PostgreSQL to the call log, printed apart from both. */

import { COPIED_COLUMNS, type Settlement } from '../../schemas/call-log/columns.ts'

/** One booked call: `cost` and `estimate` count 1e-8 credit, instants are epoch milliseconds. */
export interface BookedCall extends Settlement {
  readonly id: bigint
  readonly key_name: string
  readonly key_prefix: string
}

type UsageColumn = keyof BookedCall

const ESCAPES = new Map([
  ['\\', '\\\\'],
  ['\t', '\\t'],
  ['\n', '\\n'],
  ['\r', '\\r'],
])
const NULLABLE: readonly UsageColumn[] = ['ttfb_ms', 'attempts_count', 'result_expires_at', 'upstream_cost']

const decimalCredits = (units: string): string => units.padStart(9, '0').replace(/(.{8})$/, '.$1')

/** As PostgreSQL prints it: without zeros at the end of the fraction. */
const instant = (epochMs: number): string =>
  new Date(epochMs)
    .toISOString()
    .replace('T', ' ')
    .slice(0, -1)
    .replace(/\.?0+$/, '')

function printed(call: BookedCall, column: UsageColumn): string {
  const value = call[column]
  if (column === 'created_at' || column === 'submitted_at') return instant(call[column])
  if (typeof value === 'boolean') return value ? 't' : 'f'
  if (column === 'cost' || column === 'estimate') return decimalCredits(call[column])
  if (column === 'result_urls') return `[${call[column].map((url) => `'${url}'`).join()}]`
  if (column === 'result_expires_at' && call[column] !== null) return instant(call[column])
  if (column === 'upstream_cost' && call[column] !== null) return decimalCredits(call[column])
  if (value == null) return NULLABLE.includes(column) ? '\\N' : ''
  if (typeof value === 'object') return value.length === 0 ? '' : escaped(JSON.stringify(value))
  return escaped(String(value))
}

const escaped = (text: string): string => text.replace(/[\\\t\n\r]/g, (char) => ESCAPES.get(char)!)

export function usageText(calls: readonly BookedCall[]): Buffer {
  const lines = calls.map(
    (call) => `${COPIED_COLUMNS.map((column) => printed(call, column as UsageColumn)).join('\t')}\n`,
  )
  return Buffer.from(lines.join(''))
}
