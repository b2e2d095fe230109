/** Months of the log. A partition is a year; long operations, and those by age, run a month at a time. */
import type { ClickHouseClient } from '@clickhouse/client'
import { readRows } from '../connection.ts'

/** Returns `202601`, UTC. */
export const toMonth = (epochMs: number): string =>
  new Date(epochMs).toISOString().slice(0, 7).replace('-', '')

/**
 * Returns a condition on the column, for the parameter `month`. ClickHouse finds the month's rows by it without
 * reading others.
 */
export const isInMonth = (column: string): string => `toYYYYMM(${column}) = {month:UInt32}`

/** A table, and the column with the time of its calls. */
export interface Dated {
  readonly table: string
  readonly at: string
}

/** Returns each month from the first to the last row of the tables, in order; some of them may have no rows. */
export async function listMonths(client: ClickHouseClient, tables: readonly Dated[]): Promise<string[]> {
  const ends = tables.map(
    ({ table, at }) =>
      `SELECT toYYYYMM(min(${at})) AS first, toYYYYMM(max(${at})) AS last, count() AS n FROM ${table}`,
  )
  const [row] = await readRows<{ first: number; last: number }>(client, {
    query: `SELECT min(first) AS first, max(last) AS last FROM (${ends.join(' UNION ALL ')}) WHERE n > 0`,
  })
  const months: string[] = []
  // Without a row both are 0.
  for (let month = row!.first; month !== 0 && month <= row!.last; month += month % 100 === 12 ? 89 : 1)
    months.push(String(month))
  return months
}
