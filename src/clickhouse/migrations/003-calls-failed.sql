-- The calls that did not succeed, once more: their columns but the detail, in the order of `calls`. A query for an
-- error code, or for states without `success`, reads one row in twenty, and finds those that are rare side by side.
-- Granules are smaller still: so few rows need no more.
CREATE TABLE IF NOT EXISTS calls_failed (
  id                 UInt64                     CODEC(Delta(8), ZSTD(1)),
  account_id         LowCardinality(String),
  created_at         DateTime64(3, 'UTC')       CODEC(DoubleDelta, ZSTD(1)),
  submitted_at       DateTime64(3, 'UTC')       CODEC(DoubleDelta, ZSTD(1)),
  key_id             LowCardinality(String),
  key_name           LowCardinality(String),
  key_prefix         LowCardinality(String),
  model              LowCardinality(String),
  protocol           LowCardinality(String),
  stream             Bool,
  status             LowCardinality(String),
  error_code         LowCardinality(String),
  error_message      String                     CODEC(ZSTD(3)),
  input_tokens       UInt64                     CODEC(T64, ZSTD(1)),
  output_tokens      UInt64                     CODEC(T64, ZSTD(1)),
  cached_tokens      UInt64                     CODEC(T64, ZSTD(1)),
  cache_write_tokens UInt64                     CODEC(T64, ZSTD(1)),
  reasoning_tokens   UInt64                     CODEC(T64, ZSTD(1)),
  server_tool_calls  UInt64                     CODEC(T64, ZSTD(1)),
  unit_count         String                     CODEC(ZSTD(1)),
  unit_type          LowCardinality(String),
  cost               Decimal(18, 8)             CODEC(T64, ZSTD(1)),
  estimate           Decimal(18, 8)             CODEC(T64, ZSTD(1)),
  usage_source       LowCardinality(String),
  latency_ms         UInt64                     CODEC(T64, ZSTD(1)),
  ttfb_ms            Nullable(UInt64)           CODEC(T64, ZSTD(1)),
  channel_id         LowCardinality(String),
  request_id         String                     CODEC(ZSTD(1)),
  task_id            String                     CODEC(ZSTD(1)),
  result_urls        Array(String)              CODEC(ZSTD(3)),
  result_expires_at  Nullable(DateTime64(3, 'UTC')) CODEC(ZSTD(1)),
  attempts_count     Nullable(UInt32)           CODEC(T64, ZSTD(1)),
  attempts           String                     CODEC(ZSTD(3)),
  -- What a page of the log shows of a call, as one JSON array, in the order of PAGE_FIELDS. The rows of a page that asks
  -- for what is rare lie far apart, and each column of each is a block to find and unpack: one instead of twenty-seven.
  page_row           String MATERIALIZED formatRowNoNewline(
    'JSONCompactEachRow',
    id, toUnixTimestamp64Milli(created_at), toUnixTimestamp64Milli(submitted_at), key_id, key_name, key_prefix, model,
    status, error_code, error_message, input_tokens, output_tokens, cached_tokens, cache_write_tokens, reasoning_tokens,
    server_tool_calls, unit_count, unit_type, toString(cost), latency_ms, request_id, task_id, result_urls,
    toUnixTimestamp64Milli(result_expires_at), attempts_count, attempts, call_count
  ) CODEC(ZSTD(3)),
  call_count         UInt32 DEFAULT 1           CODEC(T64, ZSTD(1)),
  INDEX by_request    request_id TYPE bloom_filter(0.01) GRANULARITY 1,
  INDEX by_task       task_id    TYPE bloom_filter(0.01) GRANULARITY 1,
  INDEX by_key        key_id     TYPE bloom_filter(0.01) GRANULARITY 1,
  INDEX by_model      model      TYPE bloom_filter(0.01) GRANULARITY 1,
  INDEX by_error_code error_code TYPE bloom_filter(0.01) GRANULARITY 1,
  INDEX by_id         id         TYPE minmax             GRANULARITY 1,
  INDEX by_state      status     TYPE bloom_filter(0.01) GRANULARITY 1,
  INDEX by_unit       unit_type  TYPE bloom_filter(0.01) GRANULARITY 1
)
ENGINE = MergeTree
PARTITION BY toYear(created_at)
ORDER BY (account_id, created_at, id)
SETTINGS index_granularity = 512, min_compress_block_size = 8192, non_replicated_deduplication_window = 10000,
         fsync_after_insert = 1, fsync_part_directory = 1
