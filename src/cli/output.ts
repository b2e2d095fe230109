/** Prints answers of commands: one JSON value, or text in aligned columns. */
import { styleText } from 'node:util'

export type Json = null | boolean | number | string | readonly Json[] | { readonly [field: string]: Json }
export type JsonObject = { readonly [field: string]: Json }

const GAP = '  '
/** Control and format characters: a name that a stranger chose must not move the cursor or reverse the line. */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu
const TERMINAL_INTERVAL_MS = 200
const FILE_INTERVAL_MS = 10_000
const CLEAR_LINE = '\r\u001b[K'

export const isObject = (value: Json): value is JsonObject =>
  value !== null && typeof value === 'object' && !Array.isArray(value)

const isTable = (value: Json): value is readonly JsonObject[] =>
  Array.isArray(value) && value.length > 0 && value.every(isObject)

/** Replaces characters in other people's texts that must not reach a terminal. */
export const printable = (text: string): string => text.replace(UNPRINTABLE, '?')

export type Paint = (style: 'dim' | 'red' | 'green' | 'yellow' | 'magenta', text: string) => string

/** Returns a painter; it leaves text unchanged where colours are not shown. */
export const makePainter =
  (isColoured: boolean): Paint =>
  (style, text) =>
    isColoured && text !== '' ? styleText(style, text, { validateStream: false }) : text

function cell(value: Json): string {
  if (value === null) return '-'
  if (typeof value !== 'object') return printable(String(value))
  if (Object.keys(value).length === 0) return '(none)'
  return isObject(value) ? printable(JSON.stringify(value)) : value.map(cell).join(',')
}

function lines(rows: readonly (readonly string[])[]): string {
  const widths = rows[0]?.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0))) ?? []
  return rows
    .map((row) => row.map((text, column) => text.padEnd(widths[column] ?? 0)).join(GAP))
    .map((line) => `${line.trimEnd()}\n`)
    .join('')
}

/** Prints a line for each field. Records and tables in it follow as sections, each under the name of its field. */
export function printRecord(record: JsonObject): string {
  const plain: string[][] = []
  const sections: string[] = []
  for (const [name, value] of Object.entries(record)) {
    const isRecord = isObject(value) && Object.keys(value).length > 0
    if (isRecord) sections.push(`${name}\n${indent(printRecord(value))}`)
    else if (isTable(value)) sections.push(`${name}\n${indent(printTable(value))}`)
    else plain.push([name, cell(value)])
  }
  return [lines(plain), ...sections].filter((text) => text !== '').join('\n')
}

const indent = (text: string): string => text.replace(/^(?=.)/gm, GAP)

/** Prints a header and a line for each record; without `fields` each field of any record is a column. */
export function printTable(
  records: readonly JsonObject[],
  fields: readonly string[] = [...new Set(records.flatMap(Object.keys))],
): string {
  if (records.length === 0) return 'none\n'
  return lines([fields, ...records.map((record) => fields.map((field) => cell(record[field] ?? null)))])
}

/** Returns such as `1 page` and `2,000 pages`. */
export const printCount = (count: number, name: string): string =>
  `${count.toLocaleString('en-US')} ${name}${count === 1 ? '' : 's'}`

export const printJson = (value: Json): string => `${JSON.stringify(value, null, 2)}\n`

interface Progress {
  report(line: string): void
  end(): void
}

/** Returns a printer of progress: on a terminal one line that changes, else a line every 10 s. */
export function startProgress(
  print: (text: string) => void,
  isTerminal = process.stderr.isTTY === true,
): Progress {
  const intervalMs = isTerminal ? TERMINAL_INTERVAL_MS : FILE_INTERVAL_MS
  let printedAt = performance.now()
  let isOpen = false
  return {
    report(line) {
      const now = performance.now()
      if (now - printedAt < intervalMs) return
      printedAt = now
      print(isTerminal ? CLEAR_LINE + line : `${line}\n`)
      isOpen = isTerminal
    },
    end() {
      if (isOpen) print(CLEAR_LINE)
    },
  }
}
