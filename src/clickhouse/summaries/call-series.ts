/** Counts, costs and latencies of calls over time, by the same filter as a page of the log. */
import type { ClickHouseClient } from '@clickhouse/client'
import type { InstallationFilter } from '../../../schemas/call-log/page-query.ts'
import type { Credits } from '../../../schemas/money.ts'
import { readRows } from '../connection.ts'
import { selectCalls } from '../pages/statement.ts'
import { LIVE_NAMES } from '../tables/names.ts'

export interface CallSeriesQuery extends InstallationFilter {
  readonly bucketSeconds: number
}

export interface CallSeriesPoint {
  /** Start of the bucket, epoch seconds. A bucket without a call is absent. */
  readonly at: number
  readonly requests: number
  /** Those that did not succeed. */
  readonly failed: number
  readonly cost: Credits
  /** Milliseconds of the calls that succeeded, approximate; 0 where none did. */
  readonly latencyP50: number
  readonly latencyP99: number
}

interface Row {
  readonly at: number
  readonly requests: string
  readonly failed: string
  /** Counts 1e-8 credit. */
  readonly cost_units: string
  readonly latency: readonly [number, number]
}

export async function callSeries(
  client: ClickHouseClient,
  { bucketSeconds, ...filter }: CallSeriesQuery,
  signal: AbortSignal,
): Promise<CallSeriesPoint[]> {
  const { where, parameters } = selectCalls(filter)
  const rows = await readRows<Row>(client, {
    query: `
      SELECT toUnixTimestamp(toStartOfInterval(created_at, INTERVAL ${bucketSeconds} SECOND, 'UTC')) AS at,
        sum(call_count) AS requests, sumIf(call_count, status != 'success') AS failed,
        toString(toInt128(sum(cost) * 100000000)) AS cost_units,
        arrayMap(ms -> if(isNaN(ms), 0, round(ms)),
          quantilesTDigestIf(0.5, 0.99)(toFloat32(latency_ms), status = 'success')) AS latency
      FROM ${LIVE_NAMES.calls} ${where}
      GROUP BY at ORDER BY at`,
    query_params: parameters,
    abort_signal: signal,
  })
  return rows.map(({ at, requests, failed, cost_units, latency }) => ({
    at,
    requests: Number(requests),
    failed: Number(failed),
    cost: BigInt(cost_units),
    latencyP50: latency[0],
    latencyP99: latency[1],
  }))
}
