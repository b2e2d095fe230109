import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { createLog } from '../../../src/telemetry/log.ts'

const LOG = new URL('../../../src/telemetry/log.ts', import.meta.url).href

t.test('a process whose log has no reader any more ends when it is to end', async (t) => {
  const program = `
    import { createLog } from ${JSON.stringify(LOG)}
    const log = createLog({ level: 'info' })
    process.stdin.once('data', () => {
      log.info({}, 'Ended')
      log.flush()
      process.exit(3)
    })
    process.stdout.write('ready')`
  const child = spawn(process.execPath, ['--input-type=module', '-e', program])
  t.teardown(() => child.kill('SIGKILL'))
  await once(child.stdout, 'data')
  child.stderr.destroy()
  child.stdin.write('end')
  const [code] = await once(child, 'exit', { signal: AbortSignal.timeout(20_000) })
  t.equal(code, 3)
})

t.test('every line is written, whole and in order', async (t) => {
  const path = join(t.testdir(), 'log')
  const log = createLog({ level: 'info', pretty: false, destination: path })
  const written = () => readFileSync(path, 'utf8').split('\n').slice(0, -1)
  for (let at = 0; at < 2_000; at++) {
    log.info({ at, more: at % 500 === 0 ? 'x'.repeat(10_000) : '' }, 'A line')
    if (at % 100 === 0) await new Promise(setImmediate)
  }
  while (written().length < 2_000) await new Promise((resolve) => setTimeout(resolve, 20))
  t.same(
    written().map((line) => JSON.parse(line).at),
    Array.from({ length: 2_000 }, (_, at) => at),
  )
  log.info({}, 'The last one')
  log.flush()
  t.match(written().at(-1), /The last one/)
})
