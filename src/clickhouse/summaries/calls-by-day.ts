/** The two rollups of calls by day, with keys and without: what feeds them, and how they are filled from calls of before. */
import type { ClickHouseClient } from '@clickhouse/client'
import { isInMonth, monthsOf } from '../tables/months.ts'
import type { LogNames, RollupNames } from '../tables/names.ts'

/** One block a statement is one part: there whole or not at all. So many calls are summed in one. */
const CALLS_PER_FILL = 2_000_000
/** Far beyond what a statement sums. */
const ONE_BLOCK_ROWS = 1_000_000_000

/** Migrations that are older than the column count rows; each row was one call then. */
export type CountedCalls = 'count()' | 'sum(call_count)'

export const selectByDay = (
  calls: string,
  { hasKeys }: RollupNames,
  condition: string,
  counted: CountedCalls,
): string => `
  SELECT
    account_id, toDate(created_at, 'UTC') AS day, model, ${hasKeys ? 'key_id, ' : ''}status, ${counted} AS requests,
    sum(${calls}.cost) AS cost, sum(${calls}.input_tokens) AS input_tokens,
    sum(${calls}.output_tokens) AS output_tokens, sum(${calls}.cached_tokens) AS cached_tokens
  FROM ${calls}
  WHERE ${condition}
  GROUP BY account_id, day, model, ${hasKeys ? 'key_id, ' : ''}status`

/** From now on each insert of calls with an id above `upto` is summed as well. */
export async function createView(
  client: ClickHouseClient,
  { calls }: LogNames,
  rollup: RollupNames,
  upto: bigint,
  counted: CountedCalls = 'count()',
): Promise<void> {
  await client.command({
    query: `CREATE MATERIALIZED VIEW IF NOT EXISTS ${rollup.view} TO ${rollup.table} AS ${selectByDay(calls, rollup, `id > ${upto}`, counted)}`,
  })
}

interface AccountCalls {
  readonly account_id: string
  readonly calls: string
}

/** Neighbours in the table's order, about as many calls in each; the same result for the same rows. */
function accountRanges(accounts: readonly AccountCalls[]): { first: string; last: string }[] {
  const ranges: { first: string; last: string }[] = []
  let calls = CALLS_PER_FILL
  for (const account of accounts) {
    if (calls >= CALLS_PER_FILL) {
      ranges.push({ first: account.account_id, last: account.account_id })
      calls = 0
    }
    ranges.at(-1)!.last = account.account_id
    calls += Number(account.calls)
  }
  return ranges
}

/**
 * Sums the calls with ids up to `upto`, which are all there and stay as they are. Each statement's token says what it
 * sums, so that a second run, even at the same time, adds nothing.
 */
export async function fillByDay(
  client: ClickHouseClient,
  { calls }: LogNames,
  rollup: RollupNames,
  upto: bigint,
): Promise<void> {
  for (const month of await monthsOf(client, [{ table: calls, at: 'created_at' }])) {
    const counted = await client.query({
      query: `
        SELECT account_id, count() AS calls FROM ${calls}
        WHERE ${isInMonth('created_at')} AND id <= {upto:UInt64}
        GROUP BY account_id ORDER BY account_id`,
      query_params: { month, upto: upto.toString() },
      format: 'JSONEachRow',
    })
    for (const { first, last } of accountRanges(await counted.json<AccountCalls>())) {
      const condition = `
        ${isInMonth('created_at')} AND id <= {upto:UInt64}
        AND account_id >= {first:String} AND account_id <= {last:String}`
      await client.command({
        query: `INSERT INTO ${rollup.table} ${selectByDay(calls, rollup, condition, 'count()')} ORDER BY ALL`,
        query_params: { month, upto: upto.toString(), first, last },
        clickhouse_settings: {
          insert_deduplicate: 1,
          insert_deduplication_token: `fill-${upto}-${month}-${first}`,
          min_insert_block_size_rows: String(ONE_BLOCK_ROWS),
          min_insert_block_size_bytes: '0',
          max_insert_threads: '1',
          max_execution_time: 0,
        },
      })
    }
  }
}
