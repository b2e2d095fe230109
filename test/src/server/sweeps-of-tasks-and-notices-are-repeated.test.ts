/** What a task worker repeats: every sweep of notices has a timer, and goes on after a failure. */
import { mock } from 'node:test'
import t from 'tap'
import { startSweeps } from '../../../src/server/tasks/sweeps.ts'
import { sourceFiles } from '../../support/source-files.ts'

/** As long as the longest interval. */
const MINUTE_MS = 60_000

/** A function of the database that records events by what its rows say: no act and no call causes it. */
const RECORDER = /export async function (record\w+)\(sql: \w+\): Promise<number>/g
const recorders = sourceFiles('src/postgres')
  .filter(({ text }) => text.includes('SELECT record_event('))
  .flatMap(({ text }) => [...text.matchAll(RECORDER)].map(([, name]) => name!))

t.test('all run again and again', async (t) => {
  mock.timers.enable({ apis: ['setInterval'] })
  t.teardown(() => mock.timers.reset())
  const runs = new Map<string, number>()
  const failures: string[] = []
  /** Has every method: each is counted, and fails the first time. */
  const counting = (name: string) =>
    new Proxy({} as never, {
      get: (_, method) => async () => {
        const key = `${name}.${String(method)}`
        const run = (runs.get(key) ?? 0) + 1
        runs.set(key, run)
        if (run === 1) throw new Error(key)
      },
    })
  const log = { warn: (_: object, message: string) => failures.push(message) }
  startSweeps({
    work: counting('work'),
    sweep: counting('sweep'),
    followLost: async () => undefined,
    database: counting('database'),
    log,
  } as never)
  for (let minute = 0; minute < 2; minute++) {
    mock.timers.tick(MINUTE_MS)
    await new Promise(setImmediate)
  }
  t.ok(recorders.length > 1)
  for (const name of [
    'work.touch',
    'sweep.tasks',
    'sweep.objects',
    ...recorders.map((one) => `database.${one}`),
  ])
    t.ok(runs.get(name)! >= 2, name)
  t.equal(failures.length, runs.size, 'each failure is logged')
  t.ok(failures.every((message) => /^Failed to .+; retrying$/.test(message)))
})
