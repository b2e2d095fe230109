/** The calls of the log, read in the order on disk, and in full: to compare them with the usage rows one by one. */
import type { ClickHouseClient } from '@clickhouse/client'
import type { LoggedCall, LogPosition } from '../../../schemas/call-log/unbooked.ts'
import { type Settlement, settlement } from '../../../schemas/events/event.ts'
import { readRows } from '../connection.ts'

const ORDER = 'account_id, created_at, id'
const UNITS_OF_COST = 'toString(toInt128(cost * 100000000))'

interface CallsQuery {
  /** Epoch milliseconds. Calls admitted before are not compared. */
  readonly admittedSince: number
  /** Null: from the first one on. */
  readonly after: LogPosition | null
  readonly limit: number
}

/** Returns the next calls in the order of the log. */
export async function loggedCalls(
  client: ClickHouseClient,
  { admittedSince, after, limit }: CallsQuery,
): Promise<LoggedCall[]> {
  const rows = await readRows<Record<string, string>>(client, {
    query: `
      SELECT account_id AS account, toString(toUnixTimestamp64Milli(created_at)) AS at, toString(id) AS call_id,
        request_id, toString(toUnixTimestamp64Milli(submitted_at)) AS submitted, ${UNITS_OF_COST} AS cost_units
      FROM calls
      WHERE submitted_at >= fromUnixTimestamp64Milli({admittedSince:Int64}, 'UTC')
        AND (account_id > {account:String} OR account_id = {account:String} AND (
          created_at > fromUnixTimestamp64Milli({at:Int64}, 'UTC')
          OR created_at = fromUnixTimestamp64Milli({at:Int64}, 'UTC') AND calls.id > {id:UInt64}))
      ORDER BY ${ORDER} LIMIT {limit:UInt32}`,
    query_params: {
      admittedSince,
      account: after?.accountId ?? '',
      at: after?.createdAt ?? 0,
      id: after?.id.toString() ?? '0',
      limit,
    },
  })
  return rows.map((row) => ({
    accountId: row.account!,
    createdAt: Number(row.at),
    id: BigInt(row.call_id!),
    requestId: row.request_id!,
    submittedAt: Number(row.submitted),
    cost: BigInt(row.cost_units!),
  }))
}

const orNull = (text: unknown) => (text === '' ? null : text)
const numberOrNull = (value: unknown) => (value === null ? null : Number(value))

/** Returns calls as they were settled. */
export async function loggedSettlements(
  client: ClickHouseClient,
  calls: readonly LoggedCall[],
): Promise<Settlement[]> {
  if (calls.length === 0) return []
  const instants = calls.map(({ createdAt }) => createdAt)
  const rows = await readRows<Record<string, unknown>>(client, {
    query: `
      SELECT *, toString(toInt128(cost * 100000000)) AS cost_units,
        toString(toInt128(estimate * 100000000)) AS estimate_units,
        if(isNull(upstream_cost), NULL, toString(toInt128(assumeNotNull(upstream_cost) * 100000000))) AS upstream_units,
        toString(toUnixTimestamp64Milli(created_at)) AS created_ms,
        toString(toUnixTimestamp64Milli(submitted_at)) AS submitted_ms,
        if(isNull(result_expires_at), NULL, toString(toUnixTimestamp64Milli(assumeNotNull(result_expires_at)))) AS expires_ms
      FROM calls
      WHERE account_id IN {accounts:Array(String)} AND request_id IN {requests:Array(String)}
        AND created_at >= fromUnixTimestamp64Milli({from:Int64}, 'UTC')
        AND created_at <= fromUnixTimestamp64Milli({to:Int64}, 'UTC')
      LIMIT 1 BY request_id`,
    query_params: {
      accounts: [...new Set(calls.map(({ accountId }) => accountId))],
      requests: calls.map(({ requestId }) => requestId),
      from: Math.min(...instants),
      to: Math.max(...instants),
    },
  })
  return rows.map((row) =>
    settlement.parse({
      ...row,
      error_code: orNull(row.error_code),
      error_message: orNull(row.error_message),
      input_tokens: Number(row.input_tokens),
      output_tokens: Number(row.output_tokens),
      cached_tokens: Number(row.cached_tokens),
      cache_write_tokens: Number(row.cache_write_tokens),
      reasoning_tokens: Number(row.reasoning_tokens),
      server_tool_calls: Number(row.server_tool_calls),
      unit_count: orNull(row.unit_count),
      unit_type: orNull(row.unit_type),
      cost: row.cost_units,
      estimate: row.estimate_units,
      submitted_at: Number(row.submitted_ms),
      created_at: Number(row.created_ms),
      latency_ms: Number(row.latency_ms),
      ttfb_ms: numberOrNull(row.ttfb_ms),
      channel_id: orNull(row.channel_id),
      attempts_count: numberOrNull(row.attempts_count),
      attempts: row.attempts === '' ? [] : JSON.parse(String(row.attempts)),
      detail: row.detail === '' ? undefined : row.detail,
      task_id: row.task_id === '' ? undefined : row.task_id,
      result_expires_at: numberOrNull(row.expires_ms) ?? undefined,
      call_count: Number(row.call_count),
      upstream_cost: row.upstream_units ?? undefined,
    }),
  )
}
