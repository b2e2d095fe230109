/** The client by itself answers these with an uncaught exception and a pool that is of no use any more. */
import t from 'tap'
import { emptyResult } from '../../../../schemas/media/job.ts'
import { ONE_CREDIT } from '../../../../schemas/money.ts'
import { isTransient } from '../../../../src/postgres/errors.ts'
import { LOCKS } from '../../../../src/postgres/locks.ts'
import { retryOnStaleEnd } from '../../../../src/postgres/tasks/stale-end.ts'
import { inTransaction } from '../../../../src/postgres/transaction.ts'
import { eventually, until } from '../../../support/eventually.ts'
import { newAccount, startDatabase } from '../support.ts'
import { hold, move, newVideo } from '../tasks/support.ts'

const { engines, database, sql } = await startDatabase(t)

const uncaught: Error[] = []
const note = (error: Error) => void uncaught.push(error)
process.on('uncaughtException', note)
t.teardown(() => process.off('uncaughtException', note))

const works = (query: () => Promise<unknown>) =>
  eventually('the pool works again', () =>
    query().then(
      () => true,
      () => undefined,
    ),
  )

t.test('an error that has nothing to do with the session rolls back and comes through', async (t) => {
  const failing = inTransaction(sql, async (transaction) => {
    await transaction`CREATE TABLE never_made (n integer)`
    throw new Error('ours')
  })
  await t.rejects(failing, { message: 'ours' })
  t.same(await sql`SELECT FROM pg_tables WHERE tablename = 'never_made'`, [])
})

t.test('a session that the server ends while one statement follows another', async (t) => {
  for (let round = 0; round < 4; round++) {
    let pid = 0
    const working = inTransaction(sql, async (transaction) => {
      for (;;) {
        const [own] = await transaction<[{ pid: number }]>`SELECT pg_backend_pid() AS pid`
        pid = own.pid
      }
    })
    const ended = working.catch((error: unknown) => error)
    await until('the transaction works', () => pid !== 0)
    await retryOnStaleEnd(sql, () => sql`SELECT pg_terminate_backend(${pid}::int, 5000)`)
    const error = await ended
    t.ok(isTransient(error), `is reported as worth another try: ${error}`)
    await works(() => sql`SELECT 1`)
  }
})

t.test('a session that ends itself within a statement', async (t) => {
  for (let round = 0; round < 3; round++) {
    const failing = inTransaction(
      sql,
      (transaction) => transaction`SELECT pg_terminate_backend(pg_backend_pid(), 5000), pg_sleep(1)`,
    )
    await t.rejects(failing)
    t.ok(await retryOnStaleEnd(sql, () => sql`SELECT 1`), 'and the old error is not met again')
  }
})

t.test('PostgreSQL is killed while holds wait for the lock of their wallet', async (t) => {
  const accountId = await newAccount(database)
  let isLocked = false
  const locking = inTransaction(sql, async (transaction) => {
    await transaction`SELECT FROM wallets WHERE account_id = ${accountId} FOR UPDATE`
    isLocked = true
    await transaction`SELECT pg_sleep(30)`
  })
  const isWaiting = async () => {
    const [row] = await retryOnStaleEnd(
      sql,
      () => sql`SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock'`,
    )
    return row === undefined ? undefined : true
  }
  await until('the wallet is locked', () => isLocked)
  const task = newVideo(accountId, { hold: ONE_CREDIT })
  const place = () => database.tasks.create(task)
  const placing = place()
  const results = Promise.allSettled([locking, placing])
  await eventually('a hold waits', isWaiting)
  engines.killEngine('postgres')
  for (const result of await results) t.equal(result.status, 'rejected')
  await works(place)
  t.equal((await place()).outcome, 'created')
  t.equal((await database.wallets.read([accountId]))[0]?.held, ONE_CREDIT, 'held once')
  t.equal((await database.audits.verifyWallets()).ok, true)
})

t.test('PostgreSQL is killed while a task’s end waits for the booking lock: it ended or not', async (t) => {
  const accountId = await newAccount(database)
  const task = await hold(database, accountId, ONE_CREDIT)
  const claimed = (await database.tasks.applyTransition(move(task, 'claimed'))).task
  const storing = (await database.tasks.applyTransition(move(claimed, 'produced'))).task
  let isLocked = false
  const locking = inTransaction(sql, async (transaction) => {
    await transaction`SELECT pg_advisory_xact_lock(${LOCKS.booking})`
    isLocked = true
    await transaction`SELECT pg_sleep(30)`
  })
  await until('the lock is taken', () => isLocked)
  const end = move(storing, 'stored', {}, 7n)
  const results = Promise.allSettled([locking, database.tasks.applyTransition(end)])
  await eventually('the end waits', async () => {
    const [row] = await retryOnStaleEnd(
      sql,
      () => sql`SELECT FROM pg_stat_activity WHERE wait_event = 'advisory'`,
    )
    return row === undefined ? undefined : true
  })
  engines.killEngine('postgres')
  for (const result of await results) t.equal(result.status, 'rejected')
  await works(() => database.tasks.applyTransition(end))
  t.match((await database.tasks.applyTransition(end)).task, {
    state: 'succeeded',
    version: storing.version + 1,
    cost: 7n,
  })
  t.match((await database.wallets.read([accountId]))[0], { held: 0n, used: 7n })
  t.equal((await database.audits.verifyWallets()).ok, true)
})

t.test('a session that the server ends while the files of a task wait to be removed', async (t) => {
  const accountId = await newAccount(database)
  const created = await database.tasks.create(newVideo(accountId, { hold: ONE_CREDIT }))
  if (created.outcome !== 'created') throw new Error(created.outcome)
  const { id } = (await database.tasks.applyTransition(move(created.task, 'cancelled'))).task
  let isLocked = false
  const locking = inTransaction(sql, async (transaction) => {
    await transaction`SELECT FROM tasks WHERE id = ${id} FOR UPDATE`
    isLocked = true
    await transaction`SELECT pg_sleep(30)`
  })
  await eventually('the task is locked', () => isLocked || undefined)
  const results = Promise.allSettled([locking, database.tasks.removeFiles({ id, result: emptyResult() }, [])])
  await eventually('both are ended', async () => {
    const { count } = await retryOnStaleEnd(
      sql,
      () => sql`
        SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity, (
          SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock') AS waiting
        WHERE wait_event = 'PgSleep' OR wait_event_type = 'Lock'`,
    )
    return count > 1 || undefined
  })
  for (const result of await results) t.equal(result.status, 'rejected')
  await works(() => database.tasks.removeFiles({ id, result: emptyResult() }, []))
})

t.test('nothing of it was uncaught', async (t) => t.same(uncaught, []))
