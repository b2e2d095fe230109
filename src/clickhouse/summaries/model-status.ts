/** Counts, for each model over all accounts, the calls that succeeded and failed as customers saw them. */
import type { ClickHouseClient } from '@clickhouse/client'
import type { LogWindow } from '../../core/call-log/window.ts'
import { readRows } from '../connection.ts'
import { toClickHouseInstant } from '../instant.ts'
import { LIVE_NAMES } from '../tables/names.ts'

export interface Outcomes {
  readonly succeeded: number
  readonly failed: number
}

export interface ModelOutcomes extends Outcomes {
  readonly model: string
  /** Counts only the newest calls. */
  readonly newest: Outcomes
}

export interface ModelDay extends Outcomes {
  readonly model: string
  /** UTC: `2026-01-31`. */
  readonly day: string
}

/** Enough that one failure among many calls says nothing, and few enough that a recovery shows soon. */
const NEWEST_CALLS = 100

/**
 * The calls that failed, but by no mistake of their customers: those are `rejected`, like every refusal of the service. A 404
 * of an upstream is about what the request names; an interrupted call without an error was left by its client.
 */
const IS_FAILED = `((status = 'error' AND error_code != 'not_found')
  OR (status = 'interrupted' AND error_code = 'upstream_timeout'))`
const IS_IN_WINDOW = `created_at >= {from:DateTime64(3, 'UTC')} AND created_at < {to:DateTime64(3, 'UTC')}`

const toParameters = ({ from, to }: LogWindow) => ({
  from: toClickHouseInstant(from),
  to: toClickHouseInstant(to),
})

export async function readModelOutcomes(
  client: ClickHouseClient,
  window: LogWindow,
  signal: AbortSignal,
): Promise<ModelOutcomes[]> {
  const rows = await readRows<{ model: string; calls: string; failed: string; newest: readonly boolean[] }>(
    client,
    {
      query: `
        SELECT model, count() AS calls, countIf(is_failed) AS failed,
          arrayMap(call -> call.2, groupArraySorted(${NEWEST_CALLS})((-at, is_failed))) AS newest
        FROM (
          SELECT model, toUnixTimestamp64Milli(created_at) AS at, status != 'success' AS is_failed
          FROM ${LIVE_NAMES.calls} WHERE ${IS_IN_WINDOW} AND (status = 'success' OR ${IS_FAILED})
        )
        GROUP BY model`,
      query_params: toParameters(window),
      abort_signal: signal,
    },
  )
  return rows.map(({ model, calls, failed, newest }) => {
    const newestFailed = newest.filter(Boolean).length
    return {
      model,
      succeeded: Number(calls) - Number(failed),
      failed: Number(failed),
      newest: { succeeded: newest.length - newestFailed, failed: newestFailed },
    }
  })
}

/** @param window begins and ends with a UTC day */
export async function sumModelDays(
  client: ClickHouseClient,
  window: LogWindow,
  signal: AbortSignal,
): Promise<ModelDay[]> {
  const rows = await readRows<{ model: string; date: string; succeeded: string; failed: string }>(client, {
    query: `
      SELECT model, toString(day) AS date, sum(good) AS succeeded, sum(bad) AS failed
      FROM (
        SELECT model, day, requests AS good, toUInt64(0) AS bad
        FROM ${LIVE_NAMES.byModel}
        WHERE status = 'success' AND day >= toDate({from:DateTime64(3, 'UTC')}) AND day < toDate({to:DateTime64(3, 'UTC')})
        UNION ALL
        SELECT model, toDate(created_at, 'UTC') AS day, 0, toUInt64(call_count)
        FROM ${LIVE_NAMES.failed} WHERE ${IS_IN_WINDOW} AND ${IS_FAILED}
      )
      GROUP BY model, day`,
    query_params: toParameters(window),
    abort_signal: signal,
  })
  return rows.map(({ model, date, succeeded, failed }) => ({
    model,
    day: date,
    succeeded: Number(succeeded),
    failed: Number(failed),
  }))
}
