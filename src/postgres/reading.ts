/** Lists and logs read from a standby, as current as on the primary, which has the statements of calls to itself. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Sql } from './connection.ts'
import { isTransient, waitWithin } from './errors.ts'
import { onPool, type Pools, type Standby, type Work } from './repository.ts'

/** How long a page waits for the standby. */
const CATCH_UP_BOUND_MS = 100
const CATCH_UP_POLL_MS = 5
/** The standby's answer to a question without work. */
const ANSWER_BOUND_MS = 500
/** A read takes milliseconds; after this time the primary is asked. */
const READ_BOUND_MS = 3_000
/** How long reads go straight to the primary after the standby was behind or down. */
const REST_MS = 2_000

export const toStandby = (sql: Sql): Standby => ({ sql, restsUntil: 0 })

/**
 * Binds functions that only read. Each runs on the standby where it has replayed all that the primary had written when
 * the function was called: so it shows every operation that was answered before, of any process. Else it runs on the primary.
 */
export function onStandby<Functions extends Readonly<Record<string, Work>>>(
  { main, standby }: Pools,
  functions: Functions,
  deadlineMs?: number,
): ReturnType<typeof onPool<Functions>> {
  if (standby === null) return onPool(main, functions, deadlineMs)
  const readFrom =
    (work: Work): Work =>
    async (sql: never, ...args: never[]) => {
      const isAsked = performance.now() > standby.restsUntil
      if (isAsked && (await isCurrent(main, standby)))
        try {
          return await waitWithin(READ_BOUND_MS, work(standby.sql as never, ...args))
        } catch (error) {
          // Cancelled in favour of replication, or down.
          if (!isTransient(error)) throw error
          standby.restsUntil = performance.now() + REST_MS
        }
      return work(sql, ...args)
    }
  const entries = Object.entries(functions).map(([name, work]) => [name, readFrom(work)])
  return onPool(main, Object.fromEntries(entries) as Functions, deadlineMs)
}

/**
 * Returns whether the standby has replayed what the primary has written by now. A server that is no longer a standby
 * does not count: it may be a former primary.
 */
async function isCurrent(main: Sql, standby: Standby): Promise<boolean> {
  const [{ written }] = await main<[{ written: string }]>`SELECT pg_current_wal_flush_lsn()::text AS written`
  const deadline = performance.now() + CATCH_UP_BOUND_MS
  try {
    for (;;) {
      const [row] = await waitWithin(
        ANSWER_BOUND_MS,
        standby.sql<[{ has_replayed: boolean | null }]>`
          SELECT pg_is_in_recovery() AND pg_last_wal_replay_lsn() >= ${written}::text::pg_lsn AS has_replayed`,
      )
      if (row.has_replayed === true) return true
      if (performance.now() > deadline) break
      await sleep(CATCH_UP_POLL_MS)
    }
  } catch {
    // It is down.
  }
  standby.restsUntil = performance.now() + REST_MS
  return false
}
