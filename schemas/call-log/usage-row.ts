/**
 * A usage row as text, on its way from PostgreSQL, which prints it, to the call log in ClickHouse, which reads it; what
 * lies between reads nothing but the month. A row is a line, its columns are parted by tabs; `\N` is null, and a
 * backslash escapes as in PostgreSQL's COPY, which ClickHouse's TabSeparated understands. A list is `['a','b']`.
 */

/**
 * Columns in their order. Instants are `2026-01-31 23:59:59.999` in UTC; amounts are decimal credits; absent values
 * are empty, except for `ttfb_ms`, `attempts_count` and `upstream_cost`, which are null. `created_at` comes first: so a line begins
 * with its month.
 */
export const USAGE_COLUMNS = [
  'created_at',
  'submitted_at',
  'id',
  'account_id',
  'key_id',
  'key_name',
  'key_prefix',
  'model',
  'protocol',
  'stream',
  'status',
  'error_code',
  'error_message',
  'input_tokens',
  'output_tokens',
  'cached_tokens',
  'cache_write_tokens',
  'reasoning_tokens',
  'server_tool_calls',
  'unit_count',
  'unit_type',
  'cost',
  'estimate',
  'usage_source',
  'latency_ms',
  'ttfb_ms',
  'channel_id',
  'request_id',
  'attempts_count',
  'attempts',
  'detail',
  'task_id',
  'result_urls',
  'result_expires_at',
  'call_count',
  'upstream_cost',
] as const
export type UsageColumn = (typeof USAGE_COLUMNS)[number]

/** The first and the last instant (epoch milliseconds) that the log holds; others are taken for the nearer of them. */
export const FIRST_LOG_INSTANT_MS = 0
export const LAST_LOG_INSTANT_MS = Date.UTC(2299, 0, 1)

/** Rows that are copied into the log at once, at most. */
export const MAX_RANGE_ROWS = 20_000
