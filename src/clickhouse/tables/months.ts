/** Months of the log. A partition is a year; what takes long, or goes by age, is done a month at a time. */
import type { ClickHouseClient } from '@clickhouse/client'

/** `202601`, UTC. */
export const monthOf = (epochMs: number): string =>
  new Date(epochMs).toISOString().slice(0, 7).replace('-', '')

/** A condition on the column, for the parameter `month`. ClickHouse finds the month's rows by it without reading others. */
export const isInMonth = (column: string): string => `toYYYYMM(${column}) = {month:UInt32}`

/** A table, and the column that says when a call of it was. */
export interface Dated {
  readonly table: string
  readonly at: string
}

/** Each month from the first to the last row of the tables, in their order; some of them may have none. */
export async function monthsOf(client: ClickHouseClient, tables: readonly Dated[]): Promise<string[]> {
  const ends = tables.map(
    ({ table, at }) =>
      `SELECT toYYYYMM(min(${at})) AS first, toYYYYMM(max(${at})) AS last, count() AS n FROM ${table}`,
  )
  const answer = await client.query({
    query: `SELECT min(first) AS first, max(last) AS last FROM (${ends.join(' UNION ALL ')}) WHERE n > 0`,
    format: 'JSONEachRow',
  })
  const [row] = await answer.json<{ first: number; last: number }>()
  const months: string[] = []
  // Without a row both are 0.
  for (let month = row!.first; month !== 0 && month <= row!.last; month += month % 100 === 12 ? 89 : 1)
    months.push(String(month))
  return months
}
