/** How the value of a field is printed as text in the forms of the catalog, and read back. */
import { t } from '../../i18n.ts'
import type { FieldSpec, Kind } from './fields.ts'

export const readField = (entry: unknown, path: readonly string[]): unknown =>
  path.reduce<unknown>((value, name) => (value as Record<string, unknown> | null | undefined)?.[name], entry)

const printPairs = (pairs: object, between: string): string =>
  Object.entries(pairs)
    .map(([name, value]) => `${name}: ${value}`)
    .join(between)

const printRecord = ([name, pairs]: [string, object]): string => `${name}: { ${printPairs(pairs, ', ')} }`

export function printField(value: unknown, kind: Kind): string {
  if (value === undefined || value === null) return ''
  if (typeof value !== 'object') return String(value)
  if (kind === 'features')
    return Object.keys(value)
      .filter((name) => readField(value, [name]) === true)
      .join(', ')
  if (kind === 'map') return printPairs(value, '\n')
  if (kind === 'records') return Object.entries(value).map(printRecord).join('\n')
  if (kind === 'rows' && Array.isArray(value)) return value.map((row) => printPairs(row, ', ')).join('\n')
  return Array.isArray(value) ? value.join(kind === 'lines' ? '\n' : ', ') : String(value)
}

/** Fields of rows that are no texts. */
const NUMBERS = ['from_prompt_tokens', 'from_pixels']
const FLAGS = ['discount_server_tools']

const listScalars = (value: unknown): unknown[] =>
  typeof value === 'object' && value !== null ? Object.values(value).flatMap(listScalars) : [value]

const split = (text: string, by: string): string[] =>
  text
    .split(by)
    .map((one) => one.trim())
    .filter((one) => one !== '')

/**
 * Returns the value that a text stands for; null for none. What was written before keeps its type: `5` stays a number.
 * @throws Error for a line without a name
 */
export function parseField(text: string, { kind, options = [] }: FieldSpec, former: unknown): unknown {
  const trimmed = text.trim()
  if (kind === 'features') {
    const ticked = split(trimmed, ',')
    const named = options.filter((name) => ticked.includes(name) || readField(former, [name]) != null)
    return named.length === 0 ? null : Object.fromEntries(named.map((name) => [name, ticked.includes(name)]))
  }
  const known = new Map(listScalars(former).map((one) => [String(one), one]))
  const toScalar = (one: string, name = ''): unknown => {
    if (known.has(one)) return known.get(one)
    if (NUMBERS.includes(name)) return Number(one)
    return FLAGS.includes(name) ? one === 'true' : one
  }
  const toPair = (line: string): [name: string, value: string] => {
    const at = line.indexOf(':')
    if (at <= 0) throw new Error(t('“{line}” has no name with a colon.', { line }))
    return [line.slice(0, at).trim(), line.slice(at + 1).trim()]
  }
  const toPairs = (lines: readonly string[]) =>
    Object.fromEntries(lines.map(toPair).map(([name, value]) => [name, toScalar(value, name)]))
  if (trimmed === '') return null
  if (kind === 'count') return Number(trimmed)
  if (kind === 'flag') return trimmed === 'true'
  if (kind === 'list' || kind === 'choices') return split(trimmed, ',').map((one) => toScalar(one))
  const lines = split(trimmed, '\n')
  if (kind === 'lines') return lines.map((one) => toScalar(one))
  if (kind === 'map') return toPairs(lines)
  if (kind === 'rows') return lines.map((line) => toPairs(split(line, ',')))
  if (kind === 'records')
    return Object.fromEntries(
      lines.map(toPair).map(([name, pairs]) => [name, toPairs(split(pairs.replace(/^\{|\}$/g, ''), ','))]),
    )
  return trimmed
}

/** Returns whether a form can hold the value: printed and read back, it is the same. */
export function fitsForm(spec: FieldSpec, value: unknown): boolean {
  const printed = printField(value, spec.kind)
  if (printed === '' || spec.kind === 'features') return true
  try {
    return JSON.stringify(parseField(printed, spec, value)) === JSON.stringify(value)
  } catch {
    return false
  }
}
