-- One row for every call of a known account, copied from PostgreSQL's usage rows and never changed.
-- A page of the log is one account's rows from an instant on, so that is the order on disk; a page then reads
-- a few granules, however long the history. What is filtered within an account is found by skip indexes: Bloom filters,
-- because an index of sets costs a page ten milliseconds to read and drops hardly a granule. There is none of states:
-- failed calls have a table for themselves.
-- Each part that a page looks into costs it some milliseconds: a partition is a year, so that long histories have few.
-- Granules and compressed blocks are small, because a page of what is rare reads one of each for every row and column.
-- The deduplication window remembers the ranges copied last: one that is sent again leaves no second row.
CREATE TABLE IF NOT EXISTS calls (
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
  -- What shaped a call and what became of it, as JSON text.
  detail             String                     CODEC(ZSTD(3)),
  -- How many calls a row stands for: refused calls of one key, model and reason share a row where there are too many.
  call_count         UInt32 DEFAULT 1           CODEC(T64, ZSTD(1)),
  INDEX by_request    request_id TYPE bloom_filter(0.01) GRANULARITY 1,
  INDEX by_task       task_id    TYPE bloom_filter(0.01) GRANULARITY 1,
  INDEX by_key        key_id     TYPE bloom_filter(0.01) GRANULARITY 1,
  INDEX by_model      model      TYPE bloom_filter(0.01) GRANULARITY 1,
  INDEX by_error_code error_code TYPE bloom_filter(0.01) GRANULARITY 1,
  INDEX by_id         id         TYPE minmax             GRANULARITY 1,
  INDEX by_unit       unit_type  TYPE bloom_filter(0.01) GRANULARITY 1
)
ENGINE = MergeTree
PARTITION BY toYear(created_at)
ORDER BY (account_id, created_at, id)
SETTINGS index_granularity = 2048, min_compress_block_size = 16384, non_replicated_deduplication_window = 10000,
         fsync_after_insert = 1, fsync_part_directory = 1
