-- What the calls with a known upstream cost were charged, and what they cost the operator, for each account, UTC day, model,
-- key and channel: margins are summed up from these rows. Other calls have no row here.
CREATE TABLE IF NOT EXISTS costs_by_day (
  account_id    LowCardinality(String),
  day           Date                   CODEC(DoubleDelta, ZSTD(1)),
  model         LowCardinality(String),
  key_id        LowCardinality(String),
  channel_id    LowCardinality(String),
  requests      UInt64                 CODEC(T64, ZSTD(1)),
  cost          Decimal(38, 8)         CODEC(ZSTD(1)),
  input_tokens  UInt64                 CODEC(T64, ZSTD(1)),
  output_tokens UInt64                 CODEC(T64, ZSTD(1)),
  cached_tokens UInt64                 CODEC(T64, ZSTD(1)),
  upstream_cost Decimal(38, 8)         CODEC(ZSTD(1))
)
ENGINE = SummingMergeTree((requests, cost, input_tokens, output_tokens, cached_tokens, upstream_cost))
PARTITION BY toYear(day)
ORDER BY (account_id, day, model, key_id, channel_id)
SETTINGS index_granularity = 1024, non_replicated_deduplication_window = 10000,
         fsync_after_insert = 1, fsync_part_directory = 1
