/** A job that takes its time is run by one process alone, and stops when it is cancelled. */
import t from 'tap'
import { runJobs } from '../../pipelines/jobs/run-jobs.ts'
import { startDatabase } from '../src/postgres/support.ts'
import { eventually, until } from '../support/eventually.ts'

const log = { info() {}, warn() {}, error() {} }

t.test('a step without a report is no sign that its process is gone', async (t) => {
  const { database, sql } = await startDatabase(t)
  const { id } = await database.jobs.start({ kind: 'rebuild' })
  const steps: string[] = []
  const waiting = Promise.withResolvers<void>()
  const jobs = runJobs({
    database,
    work: {
      async rebuild(_, report) {
        await report(1, 3)
        steps.push('begun')
        await waiting.promise
        steps.push('waited')
        await report(3, 3)
        return { result: steps.push('ended') }
      },
    },
    log,
    touchMs: 20,
  })
  t.teardown(async () => {
    waiting.resolve()
    await jobs.stop()
  })
  await until('the job runs', () => steps.length > 0)
  await sql`UPDATE jobs SET touched_at = now() - interval '59 seconds'`
  await eventually('the job is touched', async () => {
    const [row] = await sql`SELECT FROM jobs WHERE touched_at > now() - interval '30 seconds'`
    return row
  })
  t.equal(await database.jobs.claim(['rebuild']), null)
  t.match(await database.jobs.read(id), { state: 'running', done: 1n, total: 3n })
  await database.jobs.cancel(id)
  waiting.resolve()
  await jobs.stop()
  t.same(steps, ['begun', 'waited'])
  t.match(await database.jobs.read(id), { state: 'cancelled', result: null })
})

t.test('a job that ends its process each time fails', async (t) => {
  const { database, sql } = await startDatabase(t)
  const { id } = await database.jobs.start({ kind: 'verify' })
  for (let attempt = 1; attempt <= 3; attempt++) {
    t.match(await database.jobs.claim(['verify']), { id }, `attempt ${attempt}`)
    t.equal(await database.jobs.claim(['verify']), null)
    await sql`UPDATE jobs SET touched_at = now() - interval '61 seconds'`
  }
  t.equal(await database.jobs.claim(['rebuild']), null, 'another kind')
  t.match(await database.jobs.read(id), { state: 'running' })
  t.equal(await database.jobs.claim(['verify']), null)
  t.match(await database.jobs.read(id), { state: 'failed', error: /^The process that ran it ended 3 times / })
  await database.jobs.start({ kind: 'verify' })
})

t.test('a process that ends in order gives its job back', async (t) => {
  const { database } = await startDatabase(t)
  const { id } = await database.jobs.start({ kind: 'rebuild' })
  for (let restart = 0; restart < 4; restart++) {
    const begun = Promise.withResolvers<void>()
    const jobs = runJobs({
      database,
      work: {
        async rebuild(_, report) {
          begun.resolve()
          for (;;) await report(1, 3)
        },
      },
      log,
    })
    await begun.promise
    await jobs.stop()
    t.match(await database.jobs.read(id), { state: 'queued' }, `restart ${restart}`)
  }
  t.match(await database.jobs.claim(['rebuild']), { id })
})
