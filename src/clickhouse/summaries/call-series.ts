/** Counts, costs and latencies of calls over time, by the same filter as a page of the log. */
import type { ClickHouseClient } from '@clickhouse/client'
import type { InstallationFilter } from '../../../schemas/call-log/page-query.ts'
import type { CallStatus } from '../../../schemas/call-log/row.ts'
import { CALL_STATUSES } from '../../../schemas/call-log/words.ts'
import type { Credits } from '../../../schemas/money.ts'
import { readRows } from '../connection.ts'
import { selectCalls } from '../pages/statement.ts'
import { LIVE_NAMES } from '../tables/names.ts'

export interface CallSeriesQuery extends InstallationFilter {
  readonly bucketSeconds: number
  /** In which days begin. */
  readonly timezone: string
}

export interface CallSeriesPoint {
  /** Start of the bucket, epoch seconds. A bucket without a call is absent. */
  readonly at: number
  readonly requests: number
  /** Those that did not succeed. */
  readonly failed: number
  readonly byStatus: Readonly<Record<CallStatus, number>>
  readonly cost: Credits
  /** Milliseconds of the calls that succeeded, approximate; null where none did. */
  readonly latencyP50: number | null
  readonly latencyP99: number | null
}

interface Row {
  readonly at: number
  readonly requests: string
  /** In the order of `CALL_STATUSES`. */
  readonly counts: readonly string[]
  /** Counts 1e-8 credit. */
  readonly cost_units: string
  readonly latency: readonly [number | null, number | null]
}

const DAY_SECONDS = 86_400

/** Returns the start of a bucket. Days begin in the time zone; shorter buckets begin alike in all of them. */
const printStart = (bucketSeconds: number): string =>
  bucketSeconds < DAY_SECONDS
    ? `toUnixTimestamp(toStartOfInterval(created_at, INTERVAL ${bucketSeconds} SECOND, 'UTC'))`
    : `toUnixTimestamp(toDateTime(toStartOfInterval(toTimeZone(created_at, {timezone:String}),
        INTERVAL ${bucketSeconds / DAY_SECONDS} DAY), {timezone:String}))`

export async function callSeries(
  client: ClickHouseClient,
  { bucketSeconds, timezone, ...filter }: CallSeriesQuery,
  signal: AbortSignal,
): Promise<CallSeriesPoint[]> {
  const { where, parameters } = selectCalls(filter)
  const rows = await readRows<Row>(client, {
    query: `
      SELECT ${printStart(bucketSeconds)} AS at, sum(call_count) AS requests,
        [${CALL_STATUSES.map((status) => `sumIf(call_count, status = '${status}')`).join(', ')}] AS counts,
        toString(toInt128(sum(cost) * 100000000)) AS cost_units,
        arrayMap(ms -> if(isNaN(ms), NULL, round(ms)),
          quantilesTDigestIf(0.5, 0.99)(toFloat32(latency_ms), status = 'success')) AS latency
      FROM ${LIVE_NAMES.calls} ${where}
      GROUP BY at ORDER BY at`,
    query_params: { ...parameters, timezone },
    abort_signal: signal,
  })
  return rows.map(({ at, requests, counts, cost_units, latency }) => ({
    at,
    requests: Number(requests),
    failed: Number(requests) - Number(counts[CALL_STATUSES.indexOf('success')]),
    byStatus: Object.fromEntries(
      CALL_STATUSES.map((status, index) => [status, Number(counts[index])]),
    ) as CallSeriesPoint['byStatus'],
    cost: BigInt(cost_units),
    latencyP50: latency[0],
    latencyP99: latency[1],
  }))
}
