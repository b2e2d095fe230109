/** A JSON log line as a person at a terminal reads it. */

const RESET = '\x1b[0m'
const DIM = '\x1b[2m'
const COLOURS: Readonly<Record<string, string>> = {
  trace: '\x1b[2m',
  debug: '\x1b[36m',
  info: '\x1b[32m',
  warn: '\x1b[33m',
  error: '\x1b[31m',
  fatal: '\x1b[41m',
}
const LEVEL_WIDTH_CHARS = 5
/** `HH:MM:SS.mmm` of an ISO instant. */
const TIME_OF_DAY = [11, 23] as const

/** `12:00:00.000 info  Ready.  port=8080`; a line that is not JSON comes back as it is. */
export function prettyLine(line: string): string {
  let parsed: Record<string, unknown>
  try {
    parsed = JSON.parse(line)
  } catch {
    return line
  }
  const { level, time, msg, err, process: _, ...fields } = parsed
  const label = String(level)
  const shown = Object.entries(fields).map(([name, value]) => `${DIM}${name}=${RESET}${plain(value)}`)
  const head = [
    `${DIM}${String(time).slice(...TIME_OF_DAY)}${RESET}`,
    `${COLOURS[label] ?? ''}${label.padEnd(LEVEL_WIDTH_CHARS)}${RESET}`,
    String(msg ?? ''),
  ]
  return `${[...head, ...shown].join(' ')}\n${errorLines(err)}`
}

const plain = (value: unknown) => (typeof value === 'string' ? value : JSON.stringify(value))

function errorLines(err: unknown): string {
  if (typeof err !== 'object' || err === null) return ''
  const text = 'stack' in err ? String(err.stack) : JSON.stringify(err)
  return text.replace(/^/gm, '  ').concat('\n')
}
