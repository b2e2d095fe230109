/**
 * Adds the session that a client names, with an index of the calls of one. The failed calls get it as well, at the end of
 * what a page shows; pages of before have none there.
 */
import type { ClickHouseClient } from '@clickhouse/client'
import { queryOfFailed } from '../tables/views.ts'

const PAGE_ROW = `formatRowNoNewline(
  'JSONCompactEachRow',
  id, toUnixTimestamp64Milli(created_at), toUnixTimestamp64Milli(submitted_at), key_id, key_name, key_prefix, model,
  status, error_code, error_message, input_tokens, output_tokens, cached_tokens, cache_write_tokens, reasoning_tokens,
  server_tool_calls, unit_count, unit_type, toString(cost), latency_ms, request_id, task_id, result_urls,
  toUnixTimestamp64Milli(result_expires_at), attempts_count, attempts, call_count, session_id)`

export async function apply(client: ClickHouseClient): Promise<void> {
  for (const table of ['calls', 'calls_failed']) {
    await client.command({
      query: `ALTER TABLE ${table} ADD COLUMN IF NOT EXISTS session_id String CODEC(ZSTD(1))`,
    })
    await client.command({
      query: `ALTER TABLE ${table} ADD INDEX IF NOT EXISTS by_session session_id TYPE bloom_filter(0.01) GRANULARITY 1`,
    })
  }
  await client.command({
    query: `ALTER TABLE calls_failed MODIFY COLUMN page_row String MATERIALIZED ${PAGE_ROW} CODEC(ZSTD(3))`,
  })
  const query = await queryOfFailed(client, 'calls', 'calls_failed')
  await client.command({ query: `ALTER TABLE calls_failed_view MODIFY QUERY ${query}` })
}
