/** Prints answers of commands: one JSON value, or text in aligned columns. */

export type Json = null | boolean | number | string | readonly Json[] | { readonly [field: string]: Json }
export type JsonObject = { readonly [field: string]: Json }

const GAP = '  '
// Names are other people's text: nothing in them may move the cursor or turn the line around.
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu

export const isObject = (value: Json): value is JsonObject =>
  value !== null && typeof value === 'object' && !Array.isArray(value)

/** Escapes foreign text for a terminal. */
export const printable = (text: string): string => text.replace(UNPRINTABLE, '?')

const COLOURS = {
  dim: '\x1b[2m',
  red: '\x1b[31m',
  green: '\x1b[32m',
  yellow: '\x1b[33m',
  magenta: '\x1b[35m',
} as const
const RESET = '\x1b[0m'

export type Paint = (colour: keyof typeof COLOURS, text: string) => string

/** Returns a painter; it leaves text unchanged where colours are not shown. */
export const painter =
  (isColoured: boolean): Paint =>
  (colour, text) =>
    isColoured && text !== '' ? `${COLOURS[colour]}${text}${RESET}` : text

function cell(value: Json): string {
  if (value === null) return '-'
  if (isObject(value)) return printable(JSON.stringify(value))
  if (typeof value === 'object') return value.length === 0 ? '(none)' : value.map(cell).join(',')
  return printable(String(value))
}

function lines(rows: readonly (readonly string[])[]): string {
  const widths = rows[0]?.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0))) ?? []
  return rows
    .map((row) => row.map((text, column) => text.padEnd(widths[column] ?? 0)).join(GAP))
    .map((line) => `${line.trimEnd()}\n`)
    .join('')
}

/** Prints a line for each field. */
export const printRecord = (record: JsonObject): string =>
  lines(Object.entries(record).map(([name, value]) => [name, cell(value)]))

/** Prints a header and a line for each record, with the named fields in this order. */
export function printTable(records: readonly JsonObject[], fields: readonly string[]): string {
  if (records.length === 0) return 'none\n'
  return lines([fields, ...records.map((record) => fields.map((field) => cell(record[field] ?? null)))])
}

/** Returns such as `1 page` and `2 pages`. */
export const counted = (count: number, name: string): string => `${count} ${name}${count === 1 ? '' : 's'}`

export const printJson = (value: Json): string => `${JSON.stringify(value, null, 2)}\n`
