/**
 * Drops old calls from the log: whole months at a time, of the calls and of all derived tables. A whole past year is
 * dropped as a partition; in the year of the oldest kept month the rows before it are deleted. PostgreSQL keeps its
 * rows.
 */
import { setTimeout as delay } from 'node:timers/promises'
import type { ClickHouseClient } from '@clickhouse/client'
import { readRows } from '../connection.ts'
import { readRetainedFrom, setRetainedFrom } from './marks.ts'
import { type Dated, toMonth } from './months.ts'
import { LIVE_NAMES } from './names.ts'

/** Derived tables are dropped before the calls; `at` is the column with the time of a call. */
const TABLES = [
  { table: LIVE_NAMES.byDay, at: 'day' },
  { table: LIVE_NAMES.byModel, at: 'day' },
  { table: LIVE_NAMES.costs, at: 'day' },
  { table: LIVE_NAMES.failed, at: 'created_at' },
  { table: LIVE_NAMES.calls, at: 'created_at' },
] as const

const YEAR_CHARS = 4
const DELETION_POLL_MS = 100
/** Rewriting the rest of a year may take this long; it runs in the background. */
const DELETION_BOUND_MS = 30 * 60 * 1000

const firstInstantOfMonth = (epochMs: number): number => {
  const date = new Date(epochMs)
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), 1)
}

interface MonthRow {
  readonly year: string
  readonly month: string
}

/** Returns the months before `month` of which the table has rows. Reads nothing of a year without such rows. */
const listMonthsBefore = (
  client: ClickHouseClient,
  { table, at }: Dated,
  month: string,
): Promise<MonthRow[]> =>
  readRows(client, {
    query: `
      SELECT DISTINCT _partition_id AS year, toString(toYYYYMM(${at})) AS month FROM ${table}
      WHERE toYYYYMM(${at}) < {month:UInt32} ORDER BY month`,
    query_params: { month },
    clickhouse_settings: { max_execution_time: 0 },
  })

async function isDeleting(client: ClickHouseClient, table: string): Promise<boolean> {
  const [row] = await readRows<{ open: string; trouble: string }>(client, {
    query: `
      SELECT count() AS open, max(latest_fail_reason) AS trouble FROM system.mutations
      WHERE database = currentDatabase() AND table = {table:String} AND NOT is_done`,
    query_params: { table },
  })
  if (row!.trouble !== '') throw new Error(`Old calls cannot be deleted from ${table}: ${row!.trouble}`)
  return row!.open !== '0'
}

/** Waits until nothing is being deleted from the table. */
async function untilDeleted(client: ClickHouseClient, table: string): Promise<void> {
  const deadline = Date.now() + DELETION_BOUND_MS
  while (await isDeleting(client, table)) {
    if (Date.now() > deadline) throw new Error(`Old calls are still being deleted from ${table}`)
    await delay(DELETION_POLL_MS)
  }
}

/** Drops months, which must all be of one partition, and before `month`. */
async function dropMonths(client: ClickHouseClient, { table, at }: Dated, year: string, month: string) {
  if (year < month.slice(0, YEAR_CHARS)) {
    await client.command({
      query: `ALTER TABLE ${table} DROP PARTITION ID '${year}'`,
      // It is meant, however large the year.
      clickhouse_settings: { max_partition_size_to_drop: '0' },
    })
    return
  }
  await client.command({
    query: `ALTER TABLE ${table} DELETE IN PARTITION ID '${year}' WHERE toYYYYMM(${at}) < ${month}`,
    clickhouse_settings: { mutations_sync: '0' },
  })
  await untilDeleted(client, table)
}

/** Drops from one table after the other; a second run finishes an interrupted one. */
async function dropMonthsBefore(client: ClickHouseClient, epochMs: number): Promise<string[]> {
  const dropped = new Set<string>()
  const first = toMonth(epochMs)
  for (const table of TABLES) {
    // A deletion that is still under way is not started again.
    await untilDeleted(client, table.table)
    const months = await listMonthsBefore(client, table, first)
    for (const year of new Set(months.map((row) => row.year))) await dropMonths(client, table, year, first)
    for (const { month } of months) dropped.add(month)
  }
  return [...dropped].sort()
}

/**
 * Drops each month whose last instant is before `cutoffMs` (epoch milliseconds) permanently: none of its calls is
 * inserted again. Returns the dropped months: `202601`.
 */
export async function dropCallsBefore(client: ClickHouseClient, cutoffMs: number): Promise<string[]> {
  const keptFrom = await readRetainedFrom(client)
  const proposed = firstInstantOfMonth(cutoffMs)
  // Recorded before the deletion, so that no process inserts the rows again meanwhile.
  if (proposed > keptFrom) await setRetainedFrom(client, proposed)
  return dropMonthsBefore(client, Math.max(keptFrom, proposed))
}
