-- The same sums without the keys, for queries about all of them: those of an account with many keys are a tenth of the
-- rows, or fewer.
CREATE TABLE IF NOT EXISTS calls_by_model (
  account_id    LowCardinality(String),
  day           Date                   CODEC(DoubleDelta, ZSTD(1)),
  model         LowCardinality(String),
  status        LowCardinality(String),
  requests      UInt64                 CODEC(T64, ZSTD(1)),
  cost          Decimal(38, 8)         CODEC(ZSTD(1)),
  input_tokens  UInt64                 CODEC(T64, ZSTD(1)),
  output_tokens UInt64                 CODEC(T64, ZSTD(1)),
  cached_tokens UInt64                 CODEC(T64, ZSTD(1))
)
ENGINE = SummingMergeTree((requests, cost, input_tokens, output_tokens, cached_tokens))
PARTITION BY toYear(day)
ORDER BY (account_id, day, model, status)
SETTINGS index_granularity = 1024, non_replicated_deduplication_window = 10000,
         fsync_after_insert = 1, fsync_part_directory = 1
