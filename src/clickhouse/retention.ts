/** How old calls leave the log: whole months at a time, of the calls and of their sums by day. PostgreSQL keeps its rows. */
import type { ClickHouseClient } from '@clickhouse/client'
import { LIVE_NAMES } from './calls-by-day.ts'
import { readKeptFrom, setKeptFrom } from './marks.ts'

const firstInstantOfMonth = (epochMs: number): number => {
  const date = new Date(epochMs)
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), 1)
}

/** `202601`, as the tables name their partitions. */
const partitionOf = (epochMs: number): string => new Date(epochMs).toISOString().slice(0, 7).replace('-', '')

async function monthsBefore(client: ClickHouseClient, table: string, month: string): Promise<string[]> {
  const answer = await client.query({
    query: `SELECT DISTINCT _partition_id AS month FROM ${table} WHERE _partition_id < {month:String} ORDER BY month`,
    query_params: { month },
    format: 'JSONEachRow',
  })
  return (await answer.json<{ month: string }>()).map((row) => row.month)
}

/** Sums and calls of a month go one after the other; whoever does it again finishes what was broken off. */
async function dropMonthsBefore(client: ClickHouseClient, epochMs: number): Promise<string[]> {
  const dropped = new Set<string>()
  for (const table of [LIVE_NAMES.byDay, LIVE_NAMES.calls])
    for (const month of await monthsBefore(client, table, partitionOf(epochMs))) {
      await client.command({
        query: `ALTER TABLE ${table} DROP PARTITION ID '${month}'`,
        // It is meant, however large the month.
        clickhouse_settings: { max_partition_size_to_drop: '0' },
      })
      dropped.add(month)
    }
  return [...dropped].sort()
}

/**
 * Drops each month whose last instant lies before `cutoffMs` (epoch milliseconds), for good: none of its calls is
 * inserted again. Answers the months that went: `202601`.
 */
export async function dropCallsBefore(client: ClickHouseClient, cutoffMs: number): Promise<string[]> {
  const keptFrom = await readKeptFrom(client)
  const proposed = firstInstantOfMonth(cutoffMs)
  // Known before anything goes, so that nobody brings it back meanwhile.
  if (proposed > keptFrom) await setKeptFrom(client, proposed)
  return dropMonthsBefore(client, Math.max(keptFrom, proposed))
}
