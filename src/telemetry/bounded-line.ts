/** Bounds log lines: what a client or an upstream sends may be a part of one, however long it is. */

/** Beyond this a value is cut. A stack of an error with its causes is shorter. */
export const MAX_VALUE_CHARS = 4_000
/** Beyond this a line has its values cut further. */
export const MAX_LINE_CHARS = 16_000
const SHORT_VALUE_CHARS = 200
const MAX_ENTRIES = 100

const cut = (text: string, most: number): string =>
  text.length <= most ? text : `${text.slice(0, most)}… (${text.length - most} more characters)`

function bounded(value: unknown, most: number): unknown {
  if (typeof value === 'string') return cut(value, most)
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.slice(0, MAX_ENTRIES).map((item) => bounded(item, most))
  const entries = Object.entries(value).slice(0, MAX_ENTRIES)
  return Object.fromEntries(entries.map(([name, item]) => [cut(name, most), bounded(item, most)]))
}

function read(line: string): unknown {
  try {
    return JSON.parse(line)
  } catch {
    // A blanked secret has taken a part of the line's form.
    return { level: 'error', msg: 'Log line that cannot be read', line }
  }
}

/** Returns a line of JSON with its newline, of which no value and not the whole is longer than a log should be. */
export function boundLine(line: string): string {
  if (line.length <= MAX_VALUE_CHARS) return line
  const { level, time, msg, ...rest } = read(line) as Record<string, unknown>
  const withFields = (fields: object, most: number) => {
    const bounds = bounded({ level, time, ...fields }, most) as object
    return `${JSON.stringify({ ...bounds, msg: bounded(msg, MAX_VALUE_CHARS) })}\n`
  }
  const usual = withFields(rest, MAX_VALUE_CHARS)
  if (usual.length <= MAX_LINE_CHARS) return usual
  const short = withFields(rest, SHORT_VALUE_CHARS)
  if (short.length <= MAX_LINE_CHARS) return short
  return withFields({ fields: JSON.stringify(rest) }, MAX_VALUE_CHARS)
}
