-- What a page of the log shows of a failed call, once more as one JSON array. The rows of a page that asks for what is
-- rare lie far apart, and each column of each is a block of its own to find and unpack: one instead of twenty-six.
-- Rows from before are given theirs when they are read, until the next file is through with them.
ALTER TABLE calls_failed ADD COLUMN IF NOT EXISTS page_row String MATERIALIZED formatRowNoNewline(
  'JSONCompactEachRow',
  id, toUnixTimestamp64Milli(created_at), toUnixTimestamp64Milli(submitted_at), key_id, key_name, key_prefix, model,
  status, error_code, error_message, input_tokens, output_tokens, cached_tokens, cache_write_tokens, reasoning_tokens,
  server_tool_calls, unit_count, unit_type, toString(cost), latency_ms, request_id, task_id, result_urls,
  toUnixTimestamp64Milli(result_expires_at), attempts_count, attempts
) CODEC(ZSTD(3))
