/** A row of the table of calls as it is read, and as the call log gives it. */
import type { AttemptRow, CallStatus, LogRow, UnitType } from '../../../schemas/call-log/row.ts'

/**
 * Names of a page's fields and their columns. The column `page_row` of the failed calls stores the values in this
 * order: a change here needs a migration that modifies that column.
 */
const PAGE_FIELDS = {
  id: 'id',
  created_ms: 'toUnixTimestamp64Milli(created_at)',
  submitted_ms: 'toUnixTimestamp64Milli(submitted_at)',
  key_id: 'key_id',
  key_name: 'key_name',
  key_prefix: 'key_prefix',
  model: 'model',
  status: 'status',
  error_code: 'error_code',
  error_message: 'error_message',
  input_tokens: 'input_tokens',
  output_tokens: 'output_tokens',
  cached_tokens: 'cached_tokens',
  cache_write_tokens: 'cache_write_tokens',
  reasoning_tokens: 'reasoning_tokens',
  server_tool_calls: 'server_tool_calls',
  unit_count: 'unit_count',
  unit_type: 'unit_type',
  cost_text: 'toString(cost)',
  latency_ms: 'latency_ms',
  request_id: 'request_id',
  task_id: 'task_id',
  result_urls: 'result_urls',
  result_expires_ms: 'toUnixTimestamp64Milli(result_expires_at)',
  attempts_count: 'attempts_count',
  attempts: 'attempts',
  call_count: 'call_count',
} as const

/** From any table of calls. */
export const PAGE_COLUMNS = Object.entries(PAGE_FIELDS)
  .map(([name, expression]) => (name === expression ? name : `${expression} AS ${name}`))
  .join(', ')
/** Column of the table of failed calls with all fields of a page: reading scattered rows costs a third less. */
export const STORED_PAGE_COLUMN = 'page_row'

/** 64-bit numbers are strings, or numbers when they come from the stored column. */
type Whole = string | number

export interface PageRow {
  readonly id: Whole
  readonly created_ms: Whole
  readonly submitted_ms: Whole
  readonly key_id: string
  readonly key_name: string
  readonly key_prefix: string
  readonly model: string
  readonly status: CallStatus
  readonly error_code: string
  readonly error_message: string
  readonly input_tokens: Whole
  readonly output_tokens: Whole
  readonly cached_tokens: Whole
  readonly cache_write_tokens: Whole
  readonly reasoning_tokens: Whole
  readonly server_tool_calls: Whole
  readonly unit_count: string
  readonly unit_type: UnitType | ''
  readonly cost_text: string
  readonly latency_ms: Whole
  readonly request_id: string
  readonly task_id: string
  readonly result_urls: string[]
  readonly result_expires_ms: Whole | null
  readonly attempts_count: number | null
  readonly attempts: string
  readonly call_count: number
}

const PAGE_NAMES = Object.keys(PAGE_FIELDS)

/** Returns the row of `stored`, the value of `page_row`, a JSON array. */
export function pageRowOf(stored: string): PageRow {
  const values = JSON.parse(stored) as unknown[]
  return Object.fromEntries(PAGE_NAMES.map((name, at) => [name, values[at]])) as unknown as PageRow
}

const isoInstant = (epochMs: Whole): string => new Date(Number(epochMs)).toISOString()

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
  call_count: row.call_count,
  attempts_count: row.attempts_count,
  attempts: row.attempts === '' ? [] : (JSON.parse(row.attempts) as AttemptRow[]),
})
