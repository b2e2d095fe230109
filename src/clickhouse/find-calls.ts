/** A page of the call log: one account's calls in a window of time, in the order of their end. */
import type { ClickHouseClient } from '@clickhouse/client'
import type { AttemptRow, CallStatus, LogRow, UnitType } from '../../schemas/log.ts'
import { toClickHouseInstant } from './instant.ts'

/** Where in the order a page ended. */
export interface CallPosition {
  /** Epoch milliseconds. */
  readonly createdAt: number
  readonly id: number
}

/** What is null does not narrow. */
export interface CallFilter {
  readonly accountId: string
  readonly keyId: string | null
  readonly models: readonly string[] | null
  readonly statuses: readonly CallStatus[] | null
  /** `chat` stands for calls billed by tokens. */
  readonly unitTypes: readonly UnitType[] | null
  readonly errorCodes: readonly string[] | null
  /** A request id or a task id. */
  readonly ref: string | null
  /** Epoch milliseconds, the first instant that counts. */
  readonly from: number
  /** Epoch milliseconds, the first instant that counts no more. */
  readonly to: number
}

export interface CallPageQuery extends CallFilter {
  readonly order: 'asc' | 'desc'
  readonly limit: number
  /** The page begins behind this position; null: at the beginning. */
  readonly after: CallPosition | null
}

export interface CallPage {
  readonly rows: LogRow[]
  readonly hasMore: boolean
}

/** The unit type under which callers find what is billed by tokens; its rows have none. */
const TOKEN_BILLED: UnitType = 'chat'

const COLUMNS = `
  id, toUnixTimestamp64Milli(created_at) AS created_ms, toUnixTimestamp64Milli(submitted_at) AS submitted_ms,
  key_id, key_name, key_prefix, model, status, error_code, error_message, input_tokens, output_tokens,
  cached_tokens, cache_write_tokens, reasoning_tokens, server_tool_calls, unit_count, unit_type,
  toString(cost) AS cost_text, latency_ms, request_id, task_id, result_urls,
  toUnixTimestamp64Milli(result_expires_at) AS result_expires_ms, attempts_count, attempts`

/** 64-bit numbers come as strings. */
interface Row {
  readonly id: string
  readonly created_ms: string
  readonly submitted_ms: string
  readonly key_id: string
  readonly key_name: string
  readonly key_prefix: string
  readonly model: string
  readonly status: CallStatus
  readonly error_code: string
  readonly error_message: string
  readonly input_tokens: string
  readonly output_tokens: string
  readonly cached_tokens: string
  readonly cache_write_tokens: string
  readonly reasoning_tokens: string
  readonly server_tool_calls: string
  readonly unit_count: string
  readonly unit_type: UnitType | ''
  readonly cost_text: string
  readonly latency_ms: string
  readonly request_id: string
  readonly task_id: string
  readonly result_urls: string[]
  readonly result_expires_ms: string | null
  readonly attempts_count: number | null
  readonly attempts: string
}

const isoInstant = (epochMs: string): string => new Date(Number(epochMs)).toISOString()

const toLogRow = (row: Row): LogRow => ({
  object: 'log',
  id: Number(row.id),
  created_at: isoInstant(row.created_ms),
  submitted_at: isoInstant(row.submitted_ms),
  key_id: row.key_id,
  key_name: row.key_name,
  key_prefix: row.key_prefix,
  model: row.model,
  status: row.status,
  error_code: row.error_code || null,
  error_message: row.error_message || null,
  input_tokens: Number(row.input_tokens),
  output_tokens: Number(row.output_tokens),
  cached_tokens: Number(row.cached_tokens),
  cache_write_tokens: Number(row.cache_write_tokens),
  reasoning_tokens: Number(row.reasoning_tokens),
  server_tool_calls: Number(row.server_tool_calls),
  unit_count: row.unit_count || null,
  unit_type: row.unit_type || null,
  cost: row.cost_text,
  latency_ms: Number(row.latency_ms),
  request_id: row.request_id,
  task_id: row.task_id || null,
  result_urls: row.result_urls,
  result_expires_at: row.result_expires_ms === null ? null : isoInstant(row.result_expires_ms),
  attempts_count: row.attempts_count,
  attempts: row.attempts === '' ? [] : (JSON.parse(row.attempts) as AttemptRow[]),
})

function conditionsOf(filter: CallFilter) {
  const conditions = [
    'account_id = {accountId:String}',
    `created_at >= {from:DateTime64(3, 'UTC')}`,
    `created_at < {to:DateTime64(3, 'UTC')}`,
  ]
  const parameters: Record<string, unknown> = {
    accountId: filter.accountId,
    from: toClickHouseInstant(filter.from),
    to: toClickHouseInstant(filter.to),
  }
  const narrow = (condition: string, name: string, value: unknown) => {
    if (value === null) return
    conditions.push(condition)
    parameters[name] = value
  }
  const unitTypes = filter.unitTypes?.includes(TOKEN_BILLED) ? [...filter.unitTypes, ''] : filter.unitTypes
  narrow('key_id = {keyId:String}', 'keyId', filter.keyId)
  narrow('model IN {models:Array(String)}', 'models', filter.models)
  narrow('status IN {statuses:Array(String)}', 'statuses', filter.statuses)
  narrow('unit_type IN {unitTypes:Array(String)}', 'unitTypes', unitTypes)
  narrow('error_code IN {errorCodes:Array(String)}', 'errorCodes', filter.errorCodes)
  narrow('(request_id = {ref:String} OR task_id = {ref:String})', 'ref', filter.ref)
  return { conditions, parameters }
}

/** Rows strictly behind `after` in the order of the page; the first bound is the one the table's order can use. */
function positionOf(order: 'asc' | 'desc', after: CallPosition) {
  const behind = order === 'asc' ? '>' : '<'
  const at = `{afterAt:DateTime64(3, 'UTC')}`
  return {
    conditions: [
      `created_at ${behind}= ${at}`,
      `(created_at ${behind} ${at} OR id ${behind} {afterId:UInt64})`,
    ],
    parameters: { afterAt: toClickHouseInstant(after.createdAt), afterId: after.id },
  }
}

/** Equal instants are told apart by id, so that a walk over pages gives every row once. */
export async function findCalls(
  client: ClickHouseClient,
  query: CallPageQuery,
  signal?: AbortSignal,
): Promise<CallPage> {
  const filter = conditionsOf(query)
  const position = query.after && positionOf(query.order, query.after)
  const direction = query.order === 'asc' ? 'ASC' : 'DESC'
  const answer = await client.query({
    query: `
      SELECT ${COLUMNS} FROM calls
      WHERE ${[...filter.conditions, ...(position?.conditions ?? [])].join(' AND ')}
      ORDER BY created_at ${direction}, id ${direction}
      LIMIT {rows:UInt32}`,
    query_params: { ...filter.parameters, ...position?.parameters, rows: query.limit + 1 },
    format: 'JSONEachRow',
    ...(signal && { abort_signal: signal }),
  })
  const rows = await answer.json<Row>()
  return { rows: rows.slice(0, query.limit).map(toLogRow), hasMore: rows.length > query.limit }
}
