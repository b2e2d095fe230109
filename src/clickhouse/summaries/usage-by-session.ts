/** Sums of one account's calls by the session that the client named. */
import type { ClickHouseClient } from '@clickhouse/client'
import { readRows } from '../connection.ts'
import { toClickHouseInstant } from '../instant.ts'
import { LIVE_NAMES } from '../tables/names.ts'
import { type AccountWindow, type CallSums, type SumsRow, toSums } from './summed-rows.ts'

export interface SessionUsage extends CallSums {
  readonly sessionId: string
  readonly models: readonly string[]
  /** The ends of its first and its last call in the window, epoch milliseconds. */
  readonly firstAt: number
  readonly lastAt: number
}

interface Row extends SumsRow {
  readonly session: string
  readonly models: readonly string[]
  readonly first_ms: string
  readonly last_ms: string
}

/** Returns the sessions that cost most, the dearest first. Calls without a session do not count. */
export async function sumUsageBySession(
  client: ClickHouseClient,
  { accountId, keyIds, from, to, limit }: AccountWindow & { readonly limit: number },
  signal: AbortSignal,
): Promise<SessionUsage[]> {
  const rows = await readRows<Row>(client, {
    query: `
      SELECT session_id AS session, arraySort(groupUniqArrayIf(model, status != 'rejected')) AS models,
        sum(call_count) AS calls, toString(toInt128(sum(cost) * 100000000)) AS cost_units,
        sum(input_tokens) AS input, sum(output_tokens) AS output, sum(cached_tokens) AS cached,
        toUnixTimestamp64Milli(min(created_at)) AS first_ms, toUnixTimestamp64Milli(max(created_at)) AS last_ms
      FROM ${LIVE_NAMES.calls}
      WHERE account_id = {accountId:String} AND session_id != '' ${keyIds === null ? '' : 'AND key_id IN {keyIds:Array(String)}'}
        AND created_at >= {from:DateTime64(3, 'UTC')} AND created_at < {to:DateTime64(3, 'UTC')}
      GROUP BY session ORDER BY sum(cost) DESC, session LIMIT {limit:UInt32}`,
    query_params: {
      accountId,
      ...(keyIds !== null && { keyIds }),
      from: toClickHouseInstant(from),
      to: toClickHouseInstant(to),
      limit,
    },
    abort_signal: signal,
  })
  return rows.map((row) => ({
    sessionId: row.session,
    models: row.models,
    firstAt: Number(row.first_ms),
    lastAt: Number(row.last_ms),
    ...toSums(row),
  }))
}
