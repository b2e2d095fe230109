/** Partitions by month of the tables that grow for ever. The functions in `functions/partitions.sql` do the work. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Queryable, Sql } from '../connection.ts'
import { isLockTimeout } from '../errors.ts'
import { LOCKS } from '../locks.ts'

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

/**
 * Makes the index by time of partitions of the ledger that are older than the index, and that an audit of what was written
 * since may read. Entries are booked meanwhile. One that another transaction keeps waiting is left to the next start; a
 * role that does not own the tables leaves all of them.
 */
export async function makeTimeIndexes(sql: Sql): Promise<void> {
  const [{ isMine }] = await sql<
    [{ isMine: boolean }]
  >`SELECT pg_try_advisory_lock(${LOCKS.timeIndexes}) AS "isMine"`
  if (!isMine) return
  const partitions = await sql<{ name: string; index: string }[]>`
    SELECT p.name, p.name || '_time' AS index FROM partitions AS p JOIN pg_class AS c ON c.oid = to_regclass(p.name)
    LEFT JOIN pg_index AS x ON x.indexrelid = to_regclass(p.name || '_time')
    WHERE p.table_name = 'ledger_entries' AND p.state = 'attached' AND p.ends_at > now() - interval '62 days'
      AND x.indisvalid IS NOT TRUE AND pg_has_role(c.relowner, 'USAGE')`
  for (const { name, index } of partitions) {
    try {
      // What a former attempt has left.
      await sql`DROP INDEX CONCURRENTLY IF EXISTS ${sql(index)}`
      await sql`CREATE INDEX CONCURRENTLY ${sql(index)} ON ${sql(name)} USING brin (created_at) WITH (autosummarize)`
    } catch (error) {
      if (!isLockTimeout(error)) throw error
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
