/** A row of the table of calls as it is read, and as the call log gives it. */
import type { AttemptRow, CallStatus, LogRow, UnitType } from '../../schemas/log.ts'

/** What a page shows of a row. */
export const PAGE_COLUMNS = `
  id, toUnixTimestamp64Milli(created_at) AS created_ms, toUnixTimestamp64Milli(submitted_at) AS submitted_ms,
  key_id, key_name, key_prefix, model, status, error_code, error_message, input_tokens, output_tokens,
  cached_tokens, cache_write_tokens, reasoning_tokens, server_tool_calls, unit_count, unit_type,
  toString(cost) AS cost_text, latency_ms, request_id, task_id, result_urls,
  toUnixTimestamp64Milli(result_expires_at) AS result_expires_ms, attempts_count, attempts`

/** 64-bit numbers come as strings. */
export interface PageRow {
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

export const toLogRow = (row: PageRow): LogRow => ({
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
