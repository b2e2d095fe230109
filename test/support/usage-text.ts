/** Usage rows as the text that goes from PostgreSQL to the call log: printed and read here, apart from both. */
import type { Settlement } from '../../schemas/event.ts'
import { USAGE_COLUMNS, type UsageColumn } from '../../schemas/usage-row.ts'

/** One booked call: `cost` and `estimate` count 1e-8 credit, instants are epoch milliseconds. */
export interface BookedCall extends Settlement {
  readonly id: bigint
  readonly key_name: string
  readonly key_prefix: string
}

const ESCAPES = new Map([
  ['\\', '\\\\'],
  ['\t', '\\t'],
  ['\n', '\\n'],
  ['\r', '\\r'],
])
const NULLABLE: readonly UsageColumn[] = ['ttfb_ms', 'attempts_count']

const decimalCredits = (units: string): string => units.padStart(9, '0').replace(/(.{8})$/, '.$1')

function printed(call: BookedCall, column: UsageColumn): string {
  const value = call[column]
  if (column === 'created_at' || column === 'submitted_at')
    return new Date(call[column]).toISOString().replace('T', ' ').slice(0, -1)
  if (column === 'cost' || column === 'estimate') return decimalCredits(call[column])
  if (value === null) return NULLABLE.includes(column) ? '\\N' : ''
  if (typeof value === 'object') return value.length === 0 ? '' : escaped(JSON.stringify(value))
  return escaped(String(value))
}

const escaped = (text: string): string => text.replace(/[\\\t\n\r]/g, (char) => ESCAPES.get(char)!)

export function usageText(calls: readonly BookedCall[]): Buffer {
  const lines = calls.map((call) => `${USAGE_COLUMNS.map((column) => printed(call, column)).join('\t')}\n`)
  return Buffer.from(lines.join(''))
}

const unescaped = (text: string): string =>
  text.replace(/\\(.)/g, (_, char: string) => ({ t: '\t', n: '\n', r: '\r' })[char] ?? char)

/** The columns of each row. */
export function readUsageText(text: Buffer): Record<UsageColumn, string | null>[] {
  const lines = text.toString().split('\n')
  if (lines.pop() !== '') throw new Error('the last row is cut off')
  return lines.map((line) => {
    const values = line.split('\t').map((value) => (value === '\\N' ? null : unescaped(value)))
    if (values.length !== USAGE_COLUMNS.length) throw new Error(`${values.length} columns`)
    return Object.fromEntries(USAGE_COLUMNS.map((column, index) => [column, values[index]])) as never
  })
}
