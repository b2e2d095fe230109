/** The plain PostgreSQL table to compare with, with indexes for the queries. */
import { once } from 'node:events'
import { finished } from 'node:stream/promises'
import type { Sql } from '../../../src/postgres/connection.ts'
import type { Statements } from '../engines/clickhouse-statements.ts'
import { COLUMNS, type RowsWanted, rowsSql } from './generator.ts'
import { END_MS } from './population.ts'

export const TABLE = 'plain_calls'

const TYPES: Readonly<Record<(typeof COLUMNS)[number], string>> = {
  id: 'bigint',
  account_id: 'text',
  created_at: 'timestamptz',
  submitted_at: 'timestamptz',
  key_id: 'text',
  key_name: 'text',
  key_prefix: 'text',
  model: 'text',
  protocol: 'text',
  stream: 'boolean',
  status: 'text',
  error_code: 'text',
  error_message: 'text',
  input_tokens: 'bigint',
  output_tokens: 'bigint',
  cached_tokens: 'bigint',
  cache_write_tokens: 'bigint',
  reasoning_tokens: 'bigint',
  server_tool_calls: 'bigint',
  unit_count: 'text',
  unit_type: 'text',
  cost: 'numeric(18, 8)',
  estimate: 'numeric(18, 8)',
  usage_source: 'text',
  latency_ms: 'bigint',
  ttfb_ms: 'bigint',
  channel_id: 'text',
  request_id: 'text',
  task_id: 'text',
  result_urls: 'text',
  result_expires_at: 'timestamptz',
  attempts_count: 'integer',
  attempts: 'text',
  detail: 'text',
}

/** A page of the log does not return these. */
const DETAIL_ONLY = new Set<string>([
  'account_id',
  'protocol',
  'stream',
  'estimate',
  'usage_source',
  'ttfb_ms',
  'channel_id',
  'detail',
])
export const PAGE_COLUMNS = COLUMNS.filter((column) => !DETAIL_ONLY.has(column))

const INDEXES: readonly string[] = [
  'UNIQUE (id)',
  'UNIQUE (request_id)',
  "(task_id) WHERE task_id <> ''",
  '(account_id, created_at, id)',
  '(account_id, key_id, created_at, id)',
]

const ROWS_A_COPY = 100_000
const INDEX_MEMORY = '1GB'

/** Prints a column in ClickHouse so that PostgreSQL can read it. */
const printed = (column: string): string =>
  column === 'result_urls' ? 'toJSONString(result_urls) AS result_urls' : column

const statementFor = (wanted: RowsWanted): string =>
  `SELECT ${COLUMNS.map(printed).join(', ')} FROM (${rowsSql(wanted)}) FORMAT TabSeparated`

interface TableWanted extends Pick<RowsWanted, 'seed' | 'accounts' | 'total'> {
  /** Called after each part with the number of stored rows. Throws to end the work. */
  onRows(rows: number): void
  onIndex(index: string): void
}

/** Appends rows, a line each. They are frozen, which only the transaction that created the table may do. */
const copyIn = async (sql: Sql, rows: Buffer): Promise<void> => {
  const into = await sql.unsafe(`COPY ${TABLE} (${COLUMNS.join(', ')}) FROM STDIN (FREEZE)`).writable()
  if (!into.write(rows)) await once(into, 'drain')
  into.end()
  await finished(into)
}

/** Replaces the table, fills it with rows from ClickHouse, and creates its indexes. */
export const buildTable = async (sql: Sql, rows: Statements, wanted: TableWanted): Promise<void> => {
  const { seed, accounts, total, onRows, onIndex } = wanted
  await sql.unsafe(`DROP TABLE IF EXISTS ${TABLE}`)
  // In one transaction PostgreSQL writes the rows of a new table once, without WAL, and frozen.
  await sql.begin(async (transaction) => {
    const columns = COLUMNS.map(
      (column) =>
        `${column} ${TYPES[column]} ${column.endsWith('expires_at') || column === 'ttfb_ms' ? '' : 'NOT NULL'}`,
    )
    await transaction.unsafe(`CREATE TABLE ${TABLE} (${columns.join(', ')})`)
    for (let from = 0; from < total; from += ROWS_A_COPY) {
      const to = Math.min(total, from + ROWS_A_COPY)
      await copyIn(
        transaction as unknown as Sql,
        await rows.text(statementFor({ seed, accounts, total, from, to, before: END_MS })),
      )
      onRows(to)
    }
  })
  await sql.begin(async (transaction) => {
    await transaction.unsafe(`SET LOCAL maintenance_work_mem = '${INDEX_MEMORY}'`)
    for (const index of INDEXES) {
      onIndex(index)
      const [, unique = '', rest] = /^(UNIQUE )?(.+)$/.exec(index)!
      await transaction.unsafe(`CREATE ${unique}INDEX ON ${TABLE} ${rest}`)
    }
  })
  await sql.unsafe(`VACUUM ANALYZE ${TABLE}`)
}

/** Returns the bytes of the table and of its indexes. */
export const tableBytes = async (sql: Sql): Promise<{ table: number; indexes: number }> => {
  const [row] = await sql.unsafe(
    `SELECT pg_table_size('${TABLE}')::float8 AS table, pg_indexes_size('${TABLE}')::float8 AS indexes`,
  )
  return { table: row!.table, indexes: row!.indexes }
}
