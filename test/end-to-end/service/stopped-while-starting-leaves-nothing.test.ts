import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { readRunning } from '../../../src/embedded/data-dir.ts'
import { readPrivateJson } from '../../../src/embedded/private-file.ts'
import { EngineRecord } from '../../../src/embedded/supervisor.ts'
import { testDataDir } from '../../support/engines.ts'
import { until } from '../../support/eventually.ts'
import { isRunning } from '../chaos/processes.ts'
import { serveProcess } from './serve-process.ts'

const ROOT = fileURLToPath(new URL('../../../', import.meta.url))
/** From before the first engine runs to about when the gateways begin. */
const MOMENTS_MS = [150, 700, 1_500]

const cwd = await testDataDir(t)
const dataDir = join(cwd, '.tollgate')

for (const moment of MOMENTS_MS)
  await t.test(`Ctrl-C ${moment} ms after the start`, async (t) => {
    const serve = serveProcess(t, { cwd, env: { TOLLGATE_PORT: '0', LOG_LEVEL: 'debug' } })
    await sleep(moment)
    serve.signalGroup('SIGINT')
    const code = await serve.ended
    // Before the program is loaded nobody hears the signal, and nothing has been started.
    t.ok(code === 0 || serve.stderr() === '', `ended with ${code}`)
    const started = [...serve.stderr().matchAll(/"event":"started","pid":(\d+)/g)].map(([, pid]) =>
      Number(pid),
    )
    t.same(started.filter(isRunning), [], `of ${started.length} engines`)
    t.same(recorded().filter(isRunning), [])
    t.notOk(serve.stderr().includes('"level":"error"'), serve.stderr())
  })

await t.test('a start afterwards works, and a signal to npm ends it', async (t) => {
  const env = { TOLLGATE_PORT: '0', TOLLGATE_DATA_DIR: dataDir }
  const serve = serveProcess(t, { cwd: ROOT, env, command: ['npm', 'start'] })
  await until('it is ready', () => serve.stdout().includes('Stop with Ctrl-C'))
  const pid = readRunning(dataDir)?.pid
  t.type(pid, 'number')
  serve.signal('SIGTERM')
  await serve.ended
  t.notOk(isRunning(pid ?? 0), 'the service has ended with npm')
  t.same(recorded().filter(isRunning), [], 'and so have its engines')
})

function recorded(): number[] {
  const folder = join(dataDir, 'engines')
  try {
    return readdirSync(folder)
      .map((file) => readPrivateJson(join(folder, file), EngineRecord)?.process?.pid)
      .filter((pid) => pid !== undefined)
  } catch {
    return []
  }
}
