-- What was called and what it cost, for each account, UTC day, model, key and status: a summary over a year reads
-- some thousand of these rows, whatever the number of calls. Rows of one key are summed when parts are merged, and by
-- each query. Small granules: most accounts have few rows in a month.
-- The deduplication window is for what `calls` passes on again when a range is sent again.
CREATE TABLE IF NOT EXISTS calls_by_day (
  account_id    LowCardinality(String),
  day           Date                   CODEC(DoubleDelta, ZSTD(1)),
  model         LowCardinality(String),
  key_id        LowCardinality(String),
  status        LowCardinality(String),
  requests      UInt64                 CODEC(T64, ZSTD(1)),
  cost          Decimal(38, 8)         CODEC(ZSTD(1)),
  input_tokens  UInt64                 CODEC(T64, ZSTD(1)),
  output_tokens UInt64                 CODEC(T64, ZSTD(1)),
  cached_tokens UInt64                 CODEC(T64, ZSTD(1))
)
ENGINE = SummingMergeTree((requests, cost, input_tokens, output_tokens, cached_tokens))
PARTITION BY toYear(day)
ORDER BY (account_id, day, model, key_id, status)
SETTINGS index_granularity = 1024, non_replicated_deduplication_window = 10000,
         fsync_after_insert = 1, fsync_part_directory = 1
