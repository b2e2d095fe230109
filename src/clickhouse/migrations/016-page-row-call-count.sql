-- The count is part of what a page shows. Rows from before have it not in their stored text, and stand for one call.
ALTER TABLE calls_failed MODIFY COLUMN page_row String MATERIALIZED formatRowNoNewline(
  'JSONCompactEachRow',
  id, toUnixTimestamp64Milli(created_at), toUnixTimestamp64Milli(submitted_at), key_id, key_name, key_prefix, model,
  status, error_code, error_message, input_tokens, output_tokens, cached_tokens, cache_write_tokens, reasoning_tokens,
  server_tool_calls, unit_count, unit_type, toString(cost), latency_ms, request_id, task_id, result_urls,
  toUnixTimestamp64Milli(result_expires_at), attempts_count, attempts, call_count
) CODEC(ZSTD(3))
