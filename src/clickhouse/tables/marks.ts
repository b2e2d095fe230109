/** Points that outlive a process, kept in ClickHouse beside what they are about. */
import type { ClickHouseClient } from '@clickhouse/client'

export const MARKS_TABLE = 'tollgate_marks'

async function insertMark(client: ClickHouseClient, name: string, value: bigint, token: string) {
  await client.insert({
    table: MARKS_TABLE,
    columns: ['name', 'value'],
    values: [{ name, value: value.toString() }],
    format: 'JSONEachRow',
    clickhouse_settings: { async_insert: 0, insert_deduplicate: 1, insert_deduplication_token: token },
  })
}

async function readMark(client: ClickHouseClient, pick: 'min' | 'max', name: string): Promise<bigint | null> {
  const answer = await client.query({
    query: `SELECT count() AS marks, ${pick}(value) AS value FROM ${MARKS_TABLE} WHERE name = {name:String}`,
    query_params: { name },
    format: 'JSONEachRow',
  })
  const [row] = await answer.json<{ marks: string; value: string }>()
  return row === undefined || Number(row.marks) === 0 ? null : BigInt(row.value)
}

/** Calls with ids up to this mark are filled into the table; those above come by its view. The first value stays. */
export type FilledUpto =
  | 'calls_by_day_filled_upto'
  | 'calls_by_model_filled_upto'
  | 'calls_failed_filled_upto'

/** Returns the stored value: a second writer gets the first one's. */
export async function fixFilledUpto(
  client: ClickHouseClient,
  name: FilledUpto,
  proposed: bigint,
): Promise<bigint> {
  await insertMark(client, name, proposed, name)
  return (await readMark(client, 'min', name))!
}

/** Calls that ended before this instant, the first of a month, were dropped by age. It only ever rises. */
const RETAINED_FROM = 'calls_kept_from_ms'

/** Epoch milliseconds; 0 while nothing was dropped. */
export const readRetainedFrom = async (client: ClickHouseClient): Promise<number> =>
  Number((await readMark(client, 'max', RETAINED_FROM)) ?? 0n)

export const setRetainedFrom = (client: ClickHouseClient, epochMs: number): Promise<void> =>
  insertMark(client, RETAINED_FROM, BigInt(epochMs), `${RETAINED_FROM}-${epochMs}`)
