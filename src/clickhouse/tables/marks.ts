/** Marks that outlive a process, stored in ClickHouse next to the tables that they describe. */
import type { ClickHouseClient } from '@clickhouse/client'

export const MARKS_TABLE = 'tollgate_marks'

async function insertMark(client: ClickHouseClient, name: string, value: bigint, token: string) {
  await client.insert({
    table: MARKS_TABLE,
    columns: ['name', 'value'],
    values: [{ name, value: value.toString() }],
    format: 'JSONEachRow',
    clickhouse_settings: {
      async_insert: 0,
      insert_deduplicate: 1,
      insert_deduplication_token: token,
      // On a cluster: what the reader below sees on any replica.
      insert_quorum_parallel: 0,
    },
  })
}

async function readMark(client: ClickHouseClient, name: string): Promise<bigint | null> {
  const answer = await client.query({
    query: `SELECT count() AS marks, max(value) AS value FROM ${MARKS_TABLE} WHERE name = {name:String}`,
    query_params: { name },
    format: 'JSONEachRow',
    clickhouse_settings: { select_sequential_consistency: '1' },
  })
  const [row] = await answer.json<{ marks: string; value: string }>()
  return row === undefined || Number(row.marks) === 0 ? null : BigInt(row.value)
}

/** Calls that ended before this instant, the first of a month, were dropped by age. It only ever rises. */
const RETAINED_FROM = 'calls_kept_from_ms'

/** Returns epoch milliseconds; 0 while nothing was dropped. */
export const readRetainedFrom = async (client: ClickHouseClient): Promise<number> =>
  Number((await readMark(client, RETAINED_FROM)) ?? 0n)

export const setRetainedFrom = (client: ClickHouseClient, epochMs: number): Promise<void> =>
  insertMark(client, RETAINED_FROM, BigInt(epochMs), `${RETAINED_FROM}-${epochMs}`)
