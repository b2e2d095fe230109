/** The mark of dropped calls, stored in ClickHouse next to the tables that it describes: it outlives a process. */
import type { ClickHouseClient } from '@clickhouse/client'
import { readRows } from '../connection.ts'

export const MARKS_TABLE = 'tollgate_marks'

/** Calls that ended before this instant, the first of a month, were dropped by age. It only ever rises. */
const RETAINED_FROM = 'calls_kept_from_ms'

/** Returns epoch milliseconds; 0 while nothing was dropped. */
export async function readRetainedFrom(client: ClickHouseClient): Promise<number> {
  const [mark] = await readRows<{ value: string }>(client, {
    query: `SELECT max(value) AS value FROM ${MARKS_TABLE} WHERE name = {name:String}`,
    query_params: { name: RETAINED_FROM },
    clickhouse_settings: { select_sequential_consistency: '1' },
  })
  return Number(mark!.value)
}

export async function setRetainedFrom(client: ClickHouseClient, epochMs: number): Promise<void> {
  await client.insert({
    table: MARKS_TABLE,
    columns: ['name', 'value'],
    values: [{ name: RETAINED_FROM, value: String(epochMs) }],
    format: 'JSONEachRow',
    clickhouse_settings: {
      async_insert: 0,
      insert_deduplicate: 1,
      insert_deduplication_token: `${RETAINED_FROM}-${epochMs}`,
      // On a cluster: what the reader above sees on any replica.
      insert_quorum_parallel: 0,
    },
  })
}
