/** No value of a log line is long, from a client or from anywhere else. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { boundLine, MAX_LINE_CHARS, MAX_VALUE_CHARS } from '../../../src/telemetry/bounded-line.ts'
import { createLog } from '../../../src/telemetry/log.ts'

const MORE = 100

/** Logs once, and returns the line. */
function logged(t: Test, fields: object): string {
  const destination = join(t.testdir({}), 'log')
  const log = createLog({ level: 'info', pretty: false, destination })
  log.error(fields as Record<string, unknown>, 'Failed.')
  log.flush()
  return readFileSync(destination, 'utf8')
}

t.test('a usual line is left as it is', async (t) => {
  const line = `${JSON.stringify({ level: 'info', msg: 'x'.repeat(100), n: 1, list: [1, 'a', null] })}\n`
  t.equal(boundLine(line), line)
})

t.test('a long value is cut, and says by how much', async (t) => {
  const line = logged(t, { directory: 'd'.repeat(MAX_VALUE_CHARS + MORE), short: 's' })
  const { directory, short, msg } = JSON.parse(line)
  t.equal(directory, `${'d'.repeat(MAX_VALUE_CHARS)}… (${MORE} more characters)`)
  t.same([short, msg], ['s', 'Failed.'])
  t.equal(line.at(-1), '\n')
})

t.test('an error with long fields and causes makes no long line', async (t) => {
  const path = '/x'.repeat(20_000)
  const cause = Object.assign(new Error(`ENAMETOOLONG: name too long, scandir '${path}'`), { path })
  const line = logged(t, {
    err: Object.assign(new Error(path, { cause }), { path }),
    list: Array(50).fill(path),
  })
  t.ok(line.length <= MAX_LINE_CHARS, `${line.length} characters`)
  t.match(JSON.parse(line), { level: 'error', msg: 'Failed.' })
})

t.test('neither do very many fields', async (t) => {
  const fields = Object.fromEntries(
    Array.from({ length: 5_000 }, (_, at) => [`field ${at}`, 'v'.repeat(MORE)]),
  )
  const line = logged(t, fields)
  t.ok(line.length <= MAX_LINE_CHARS, `${line.length} characters`)
  t.match(JSON.parse(line), { level: 'error', msg: 'Failed.' })
})

t.test('a secret at the edge of the cut does not show', async (t) => {
  const destination = join(t.testdir({}), 'log')
  const log = createLog({ level: 'info', pretty: false, destination })
  log.hide(['open sesame'])
  log.info({ text: `${'x'.repeat(MAX_VALUE_CHARS - 4)}open sesame${'y'.repeat(MORE)}` }, 'Said.')
  log.flush()
  t.notMatch(readFileSync(destination, 'utf8'), /open/)
})

t.test('a line that is no JSON any more becomes one', async (t) => {
  const line = boundLine(`{"a":"${'x'.repeat(MAX_VALUE_CHARS)}\n`)
  t.match(JSON.parse(line), { level: 'error', msg: 'Log line that cannot be read' })
})
