/**
 * A repository is a written interface to one domain in PostgreSQL, such as `database.keys`. Each folder has its
 * interfaces in `repository.ts`, with the pool that each function runs on.
 */
import type { Sql } from './connection.ts'
import { waitWithin } from './errors.ts'

/** For statements that a client's request waits for. */
export const READ_DEADLINE_MS = 5_000
export const BOOKING_DEADLINE_MS = 30_000

/** A standby, and until when it is not asked (`performance.now()`). */
export interface Standby {
  readonly sql: Sql
  restsUntil: number
}

/** The connections of one process. */
export interface Pools {
  readonly main: Sql
  /** One connection, for what a process repeats even without calls: at rest it keeps only this and that of its subscriptions. */
  readonly rounds: Sql
  /** For subscriptions to notifications, which belong to a session. */
  readonly session: Sql
  /** One connection that stays: its session is the copier's lock. */
  readonly copying: Sql
  /** One connection that stays: its session is the lock of a rebuild of the call log. */
  readonly rebuilding: Sql
  /** For long statements, such as an audit of a large ledger. */
  readonly auditing: Sql
  /** For searches, so that they never make a call wait for its key or its wallet. */
  readonly searching: Sql
  /** For lists and logs; null: the primary has them. */
  readonly standby: Standby | null
}

export type Work = (sql: never, ...args: never[]) => PromiseLike<unknown>

/** The functions without their first argument. */
type Bound<Functions> = {
  readonly [Name in keyof Functions]: Functions[Name] extends (
    sql: never,
    ...args: infer Args
  ) => infer Answer
    ? (...args: Args) => Answer
    : never
}

/**
 * Binds functions to a pool.
 * @param deadlineMs where given, an answer that takes longer is a `DeadlineExceeded`
 */
export function onPool<Functions extends Readonly<Record<string, Work>>>(
  pool: Sql,
  functions: Functions,
  deadlineMs?: number,
): Bound<Functions> {
  const bind = (work: Work) =>
    deadlineMs === undefined
      ? (...args: never[]) => work(pool as never, ...args)
      : (...args: never[]) => waitWithin(deadlineMs, work(pool as never, ...args))
  return Object.fromEntries(
    Object.entries(functions).map(([name, work]) => [name, bind(work)]),
  ) as Bound<Functions>
}
