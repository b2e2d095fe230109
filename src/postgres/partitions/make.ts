/** Partitions by month of the tables that keep growing. The functions in `functions/partitions.sql` do the work. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Queryable, Sql } from '../connection.ts'
import { isLockTimeout } from '../errors.ts'

/** Time after which a lock that does not come is an error. */
const LOCK_WAIT_MS = 60_000
const PAUSE_MS = 100

/** Runs `work`, again while a lock does not come within the short time that the work waits for it. */
export async function untilLocked<T>(work: () => Promise<T>): Promise<T> {
  for (const giveUpAt = Date.now() + LOCK_WAIT_MS; ; ) {
    try {
      return await work()
    } catch (error) {
      if (!isLockTimeout(error) || Date.now() > giveUpAt) throw error
      await sleep(PAUSE_MS)
    }
  }
}

export type PartitionedTable = 'usage_rows' | 'ledger_entries' | 'audit_entries' | 'tasks'

/** Returns the instant before which retention has taken rows away; null: it has taken none. */
export async function readKeptSince(sql: Queryable, table: PartitionedTable): Promise<Date | null> {
  const [row] = await sql<[{ since: Date | null }]>`SELECT kept_since(${table}) AS since`
  return row.since
}

/** Returns that instant where an id is of a time before it; else null. */
export async function readTakenBefore(
  sql: Queryable,
  table: PartitionedTable,
  id: string,
): Promise<Date | null> {
  const [row] = await sql<{ since: Date }[]>`
    SELECT since FROM kept_since(${table}) AS since WHERE id_ms(${id}) < ms_of(since)`
  return row?.since ?? null
}

/** Returns whether the database has the functions of partitions. */
export async function hasPartitions(sql: Queryable): Promise<boolean> {
  const [row] = await sql<
    [{ has: boolean }]
  >`SELECT to_regprocedure('make_next_partition(integer)') IS NOT NULL AS has`
  return row.has
}

/** Makes the partitions of this month and the next ones, where they are missing. Returns their names. */
export async function makePartitions(sql: Sql): Promise<string[]> {
  const made: string[] = []
  for (;;) {
    const [row] = await untilLocked(
      async () => sql<[{ name: string | null }]>`SELECT make_next_partition() AS name`,
    )
    if (row.name === null) return made
    made.push(row.name)
  }
}
