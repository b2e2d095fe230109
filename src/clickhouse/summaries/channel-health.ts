/** How the channels did lately, by the call log: from the first failure on, whichever processes are still up. */
import type { ClickHouseClient } from '@clickhouse/client'
import { readRows } from '../connection.ts'
import { toClickHouseInstant } from '../instant.ts'
import { LIVE_NAMES } from '../tables/names.ts'

export interface ChannelHealthQuery {
  /** Epoch milliseconds: the start of the last hour and of the last day. */
  readonly hourFrom: number
  readonly dayFrom: number
}

export interface ChannelHealth {
  readonly channelId: string
  /** Attempts that succeeded or failed by the channel's fault, and only the failures. */
  readonly hour: { readonly attempts: number; readonly failures: number }
  readonly day: { readonly attempts: number; readonly failures: number }
  /** Null: none failed. */
  readonly lastError: { readonly at: number; readonly code: string; readonly message: string } | null
  /** Epoch milliseconds; null: none succeeded. */
  readonly lastSuccessAt: number | null
}

interface Row {
  readonly channel: string
  readonly hour_attempts: string
  readonly hour_failures: string
  readonly day_attempts: string
  readonly day_failures: string
  /** Epoch milliseconds; 0: none. */
  readonly failed_at: string
  readonly succeeded_at: string
  readonly code: string
  readonly message: string
}

/** The blamed attempts of a call, as its detail has them: `1:primary 2:spare`. */
const FAULTS = `splitByChar(' ', JSONExtractString(detail, 'failed_channels'))`

export async function readChannelHealth(
  client: ClickHouseClient,
  { hourFrom, dayFrom }: ChannelHealthQuery,
  signal: AbortSignal,
): Promise<ChannelHealth[]> {
  const since = `created_at >= {dayFrom:DateTime64(3, 'UTC')}`
  const isInHour = `at >= {hourFrom:DateTime64(3, 'UTC')}`
  const rows = await readRows<Row>(client, {
    query: `
      SELECT channel, countIf(${isInHour}) AS hour_attempts, countIf(failed AND ${isInHour}) AS hour_failures,
        count() AS day_attempts, countIf(failed) AS day_failures,
        toUnixTimestamp64Milli(maxIf(at, failed)) AS failed_at,
        toUnixTimestamp64Milli(maxIf(at, NOT failed)) AS succeeded_at,
        argMaxIf(code, at, failed) AS code, argMaxIf(message, at, failed) AS message
      FROM (
        SELECT channel_id AS channel, created_at AS at, false AS failed, '' AS code, '' AS message
        FROM ${LIVE_NAMES.calls} WHERE ${since} AND channel_id != '' AND status = 'success'
        UNION ALL
        SELECT substring(fault, position(fault, ':') + 1), created_at, true,
          JSONExtractString(attempts, toUInt32(substringIndex(fault, ':', 1)), 'error_code'),
          JSONExtractString(attempts, toUInt32(substringIndex(fault, ':', 1)), 'error_message')
        FROM ${LIVE_NAMES.calls} ARRAY JOIN ${FAULTS} AS fault
        PREWHERE status != 'success' OR attempts_count > 1
        WHERE ${since} AND fault != ''
        UNION ALL
        -- Tasks do not name their attempts' channels: the last one answers for the task.
        SELECT channel_id, created_at, true, error_code, error_message
        FROM ${LIVE_NAMES.failed} WHERE ${since} AND channel_id != '' AND task_id != '' AND status = 'error'
      )
      GROUP BY channel`,
    query_params: { hourFrom: toClickHouseInstant(hourFrom), dayFrom: toClickHouseInstant(dayFrom) },
    abort_signal: signal,
  })
  return rows.map((row) => ({
    channelId: row.channel,
    hour: { attempts: Number(row.hour_attempts), failures: Number(row.hour_failures) },
    day: { attempts: Number(row.day_attempts), failures: Number(row.day_failures) },
    lastError:
      row.failed_at === '0' ? null : { at: Number(row.failed_at), code: row.code, message: row.message },
    lastSuccessAt: row.succeeded_at === '0' ? null : Number(row.succeeded_at),
  }))
}
