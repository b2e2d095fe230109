/**
 * Creates the tables of the call log, the views that fill some of them, and the settings by which they write parts. A later
 * change of a view is a migration that modifies its query, and a change of `views.ts`. No range may be under way then:
 * ClickHouse counts one twice that is sent before and after a view is modified.
 */
import type { ClickHouseClient } from '@clickhouse/client'
import { MARKS_TABLE } from '../tables/marks.ts'
import { LIVE_NAMES, listTables } from '../tables/names.ts'
import { createViews } from '../tables/views.ts'

/**
 * Points that outlive a process, such as the instant from which calls are kept. Of inserts with one token the first stays.
 */
const MARKS = `
CREATE TABLE IF NOT EXISTS tollgate_marks (
  name   String,
  value  UInt64,
  set_at DateTime DEFAULT now()
)
ENGINE = MergeTree
ORDER BY name
SETTINGS non_replicated_deduplication_window = 1000, fsync_after_insert = 1, fsync_part_directory = 1`

/** The columns that both tables of calls have. */
const CALL_COLUMNS = `
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
  attempts           String                     CODEC(ZSTD(3))`

const CALL_INDEXES = `
  INDEX by_request    request_id TYPE bloom_filter(0.01) GRANULARITY 1,
  INDEX by_task       task_id    TYPE bloom_filter(0.01) GRANULARITY 1,
  INDEX by_key        key_id     TYPE bloom_filter(0.01) GRANULARITY 1,
  INDEX by_model      model      TYPE bloom_filter(0.01) GRANULARITY 1,
  INDEX by_error_code error_code TYPE bloom_filter(0.01) GRANULARITY 1,
  INDEX by_id         id         TYPE minmax             GRANULARITY 1,
  INDEX by_unit       unit_type  TYPE bloom_filter(0.01) GRANULARITY 1,
  INDEX by_session    session_id TYPE bloom_filter(0.01) GRANULARITY 1`

const printCallLayout = (granularity: number, minCompressBlock: number) => `
ENGINE = MergeTree
PARTITION BY toYear(created_at)
ORDER BY (account_id, created_at, id)
SETTINGS index_granularity = ${granularity}, min_compress_block_size = ${minCompressBlock},
         non_replicated_deduplication_window = 10000, fsync_after_insert = 1, fsync_part_directory = 1`

/**
 * One row for every call of a known account, copied from PostgreSQL's usage rows and never changed.
 * A page of the log is one account's rows from an instant on, so that is the order on disk; a page then reads
 * a few granules, however long the history. What is filtered within an account is found by skip indexes: Bloom filters,
 * because an index of sets costs a page ten milliseconds to read and drops hardly a granule. There is none of states:
 * failed calls have a table for themselves.
 * Each part that a page looks into costs it some milliseconds: a partition is a year, so that long histories have few.
 * Granules and compressed blocks are small, because a page of what is rare reads one of each for every row and column.
 * The deduplication window remembers the ranges copied last: one that is sent again leaves no second row.
 */
const CALLS = `
CREATE TABLE IF NOT EXISTS calls (${CALL_COLUMNS},
  -- What shaped a call and what became of it, as JSON text.
  detail             String                     CODEC(ZSTD(3)),
  -- How many calls a row stands for: refused calls of one key, model and reason share a row where there are too many.
  call_count         UInt32 DEFAULT 1           CODEC(T64, ZSTD(1)),
  -- What the operator pays for a call, by the cost of its channel; null where that is not known.
  upstream_cost      Nullable(Decimal(18, 8))   CODEC(ZSTD(1)),
  session_id         String                     CODEC(ZSTD(1)),${CALL_INDEXES}
)${printCallLayout(2048, 16_384)}`

/**
 * The calls that did not succeed, once more: their columns but the detail, in the order of `calls`. A query for an
 * error code, or for states without `success`, reads one row in twenty, and finds those that are rare side by side.
 * Granules are smaller still, because there are few rows.
 */
const FAILED = `
CREATE TABLE IF NOT EXISTS calls_failed (${CALL_COLUMNS},
  -- What a page of the log shows of a call, as one JSON array, in the order of PAGE_FIELDS. The rows of a page that asks
  -- for what is rare lie far apart, and each column of each is a block to find and unpack: one instead of twenty-seven.
  page_row           String MATERIALIZED formatRowNoNewline(
    'JSONCompactEachRow',
    id, toUnixTimestamp64Milli(created_at), toUnixTimestamp64Milli(submitted_at), key_id, key_name, key_prefix, model,
    status, error_code, error_message, input_tokens, output_tokens, cached_tokens, cache_write_tokens, reasoning_tokens,
    server_tool_calls, unit_count, unit_type, toString(cost), latency_ms, request_id, task_id, result_urls,
    toUnixTimestamp64Milli(result_expires_at), attempts_count, attempts, call_count, session_id
  ) CODEC(ZSTD(3)),
  call_count         UInt32 DEFAULT 1           CODEC(T64, ZSTD(1)),
  session_id         String                     CODEC(ZSTD(1)),
  INDEX by_state      status     TYPE bloom_filter(0.01) GRANULARITY 1,${CALL_INDEXES}
)${printCallLayout(512, 8_192)}`

const DAY_COLUMNS = `
  account_id    LowCardinality(String),
  day           Date                   CODEC(DoubleDelta, ZSTD(1)),
  model         LowCardinality(String)`

const SUMS = `
  requests      UInt64                 CODEC(T64, ZSTD(1)),
  cost          Decimal(38, 8)         CODEC(ZSTD(1)),
  input_tokens  UInt64                 CODEC(T64, ZSTD(1)),
  output_tokens UInt64                 CODEC(T64, ZSTD(1)),
  cached_tokens UInt64                 CODEC(T64, ZSTD(1))`

const DAY_SETTINGS = `
SETTINGS index_granularity = 1024, non_replicated_deduplication_window = 10000,
         fsync_after_insert = 1, fsync_part_directory = 1`

/**
 * What was called and what it cost, for each account, UTC day, model, key and status: a summary over a year reads
 * some thousand of these rows, whatever the number of calls. Rows of one key are summed when parts are merged, and by
 * each query. Small granules: most accounts have few rows in a month.
 * The deduplication window is for what `calls` passes on again when a range is sent again.
 */
const BY_DAY = `
CREATE TABLE IF NOT EXISTS calls_by_day (${DAY_COLUMNS},
  key_id        LowCardinality(String),
  status        LowCardinality(String),${SUMS}
)
ENGINE = SummingMergeTree((requests, cost, input_tokens, output_tokens, cached_tokens))
PARTITION BY toYear(day)
ORDER BY (account_id, day, model, key_id, status)${DAY_SETTINGS}`

/**
 * The same sums without the keys, for queries about all of them: those of an account with many keys are a tenth of the
 * rows, or fewer.
 */
const BY_MODEL = `
CREATE TABLE IF NOT EXISTS calls_by_model (${DAY_COLUMNS},
  status        LowCardinality(String),${SUMS}
)
ENGINE = SummingMergeTree((requests, cost, input_tokens, output_tokens, cached_tokens))
PARTITION BY toYear(day)
ORDER BY (account_id, day, model, status)${DAY_SETTINGS}`

/**
 * What the calls with a known upstream cost were charged, and what they cost the operator, for each account, UTC day, model,
 * key and channel: margins are summed up from these rows. Other calls have no row here.
 */
const COSTS = `
CREATE TABLE IF NOT EXISTS costs_by_day (${DAY_COLUMNS},
  key_id        LowCardinality(String),
  channel_id    LowCardinality(String),${SUMS},
  upstream_cost Decimal(38, 8)         CODEC(ZSTD(1))
)
ENGINE = SummingMergeTree((requests, cost, input_tokens, output_tokens, cached_tokens, upstream_cost))
PARTITION BY toYear(day)
ORDER BY (account_id, day, model, key_id, channel_id)${DAY_SETTINGS}`

/**
 * How the tables write parts. Merged parts reach the disk before those that they replace are removed: a server keeps these
 * for eight minutes, the embedded ClickHouse does not, and a power failure would take the rows. Small parts have a fifth of
 * the files, because an insert waits for each of them, and a merge writes them again.
 */
const SETTINGS = {
  min_compressed_bytes_to_fsync_after_merge: 1,
  // A part below this size has one file for all columns.
  min_bytes_for_wide_part: 100 * 1024 * 1024,
  // One file for all skip indexes that are smaller. Servers before 26 do not know it.
  packed_skip_index_max_bytes: 1024 * 1024,
}

async function readKnownSettings(client: ClickHouseClient): Promise<string[]> {
  const answer = await client.query({
    query: 'SELECT name FROM system.merge_tree_settings WHERE name IN {names:Array(String)}',
    query_params: { names: Object.keys(SETTINGS) },
    format: 'JSONEachRow',
  })
  const known = new Set((await answer.json<{ name: string }>()).map(({ name }) => name))
  return Object.entries(SETTINGS)
    .filter(([name]) => known.has(name))
    .map(([name, value]) => `${name} = ${value}`)
}

export async function apply(client: ClickHouseClient): Promise<void> {
  for (const query of [MARKS, CALLS, FAILED, BY_DAY, BY_MODEL, COSTS]) await client.command({ query })
  await createViews(client, LIVE_NAMES)
  const settings = (await readKnownSettings(client)).join(', ')
  for (const table of [...listTables(LIVE_NAMES), MARKS_TABLE])
    await client.command({ query: `ALTER TABLE ${table} MODIFY SETTING ${settings}` })
}
