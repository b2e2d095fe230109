/**
 * Two settlers write to the same wallets at once. Their connections are ended again and again and cannot be replaced
 * for a while, and no settlement is lost. See docs/failure-modes.md, "Engines", row 45.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { connect, type Sql } from '../../../src/postgres/connection.ts'
import { retryOnStaleEnd } from '../../../src/postgres/tasks/stale-end.ts'
import { connectTo } from '../../support/connections.ts'
import { startService } from '../../support/service.ts'
import { refusals, underLoad } from './outage.ts'
import { seedNote, seeds, TIMEOUT_MS } from './plan.ts'

const ENOUGH = 60
const ROUNDS = 8
const ROUND_MS = 100
const TOO_MANY_CONNECTIONS = '53300'

/** Ends every session that books; answers how many there were. */
const endWriters = async (sql: Sql): Promise<number> => {
  const rows = await retryOnStaleEnd(
    sql,
    () => sql`
      SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'tollgate settler%'`,
  )
  return rows.length
}

/** Takes connections until there are no more; answers how to give them back. */
async function takeAllConnections(url: string): Promise<() => Promise<void>> {
  const taken: Sql[] = []
  for (;;) {
    const one = connect(url, { max: 1, name: 'test takes all' })
    const error = await one`SELECT 1`.then(
      () => null,
      (reason: { code?: string }) => reason,
    )
    if (error === null) {
      taken.push(one)
      continue
    }
    await one.end({ timeout: 1 })
    if (error.code !== TOO_MANY_CONNECTIONS) throw error
    return async () => {
      await Promise.all(taken.map((sql) => sql.end({ timeout: 1 })))
    }
  }
}

t.setTimeout(TIMEOUT_MS)
for (const seed of seeds())
  await t.test(seedNote(seed), async (t) => {
    const { service, load, more, finish } = await underLoad(t, seed)
    await startService(t, { engines: service.engines, env: { TOLLGATE_ROLES: 'settler' } })
    const { databaseUrl } = service.engines
    const sql = connectTo(t, databaseUrl)
    await more(ENOUGH)
    const writers = await sql`
      SELECT DISTINCT client_port FROM pg_stat_activity WHERE application_name = 'tollgate settler'`
    t.ok(writers.length >= 2, 'two settlers write')
    // A round may find the writers still without a session: how often they lost one is what counts.
    for (let ended = 0; ended < ROUNDS; ) {
      ended += await endWriters(sql)
      await sleep(ROUND_MS)
    }

    const giveBack = await takeAllConnections(databaseUrl)
    await endWriters(sql)
    const giveBackMore = await takeAllConnections(databaseUrl)
    await more(ENOUGH)
    await giveBack()
    await giveBackMore()
    await more(ENOUGH)
    const deadlocks = await sql`SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()`
    t.equal(Number(deadlocks[0]?.deadlocks), 0, 'nobody waited in a circle')
    t.same(refusals(load.seen), [], 'no call was refused for it')
    await finish(t)
  })
