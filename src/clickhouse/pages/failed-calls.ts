/**
 * The calls that did not succeed, once more and by themselves: one in twenty, so that a page of a rare failure finds its
 * rows side by side where in the table of all calls each would lie in another granule.
 */
import type { ClickHouseClient } from '@clickhouse/client'
import { isInMonth, monthsOf } from '../tables/months.ts'
import type { LogNames } from '../tables/names.ts'

/** A query for an error code, or for states without `success`, reads these rows alone. */
const IS_FAILED = `status != 'success' OR error_code != ''`
/** One block a statement is one part: there whole or not at all. Far beyond the failures of a month. */
const ONE_BLOCK_ROWS = 1_000_000_000

/** The count is not in the table yet when the migrations run that are older than it. */
export type LeftOut = 'detail' | 'detail, call_count'
const BEFORE_COUNTS: LeftOut = 'detail, call_count'

/** What a page shows; the detail of a call is read from the table of all. */
export const selectFailed = (calls: string, condition: string, leftOut: LeftOut): string => `
  SELECT * EXCEPT (${leftOut}) FROM ${calls} WHERE (${IS_FAILED}) AND ${condition}`

/** From now on each insert of calls with an id above `upto` is passed on as well. */
export async function createFailedView(
  client: ClickHouseClient,
  { calls, failed, failedView }: LogNames,
  upto: bigint,
  leftOut: LeftOut = BEFORE_COUNTS,
): Promise<void> {
  await client.command({
    query: `CREATE MATERIALIZED VIEW IF NOT EXISTS ${failedView} TO ${failed} AS ${selectFailed(calls, `id > ${upto}`, leftOut)}`,
  })
}

/** Copies the failed calls with ids up to `upto`. Idempotent, also when run twice at the same time. */
export async function fillFailed(
  client: ClickHouseClient,
  { calls, failed }: LogNames,
  upto: bigint,
): Promise<void> {
  for (const month of await monthsOf(client, [{ table: calls, at: 'created_at' }])) {
    const condition = `${isInMonth('created_at')} AND id <= {upto:UInt64}`
    await client.command({
      query: `INSERT INTO ${failed} (* EXCEPT (call_count)) ${selectFailed(calls, condition, BEFORE_COUNTS)} ORDER BY account_id, created_at, id`,
      query_params: { month, upto: upto.toString() },
      clickhouse_settings: {
        insert_deduplicate: 1,
        insert_deduplication_token: `failed-${upto}-${month}`,
        min_insert_block_size_rows: String(ONE_BLOCK_ROWS),
        min_insert_block_size_bytes: '0',
        max_insert_threads: '1',
        max_execution_time: 0,
      },
    })
  }
}
