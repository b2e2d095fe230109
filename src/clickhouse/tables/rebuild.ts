/**
 * A new log beside the live one, and the moment in which it takes its place. ClickHouse ties a view to the names of its
 * tables: when tables change places, the live view feeds the new ones.
 */
import type { ClickHouseClient } from '@clickhouse/client'
import { readRows } from '../connection.ts'
import { readMigrations } from '../migrate.ts'
import { type CallRange, insertCalls } from './insert-calls.ts'
import { MARKS_TABLE } from './marks.ts'
import { FRESH_NAMES, LIVE_NAMES, type LogNames, listTables, listViews } from './names.ts'
import { createViews } from './views.ts'

/** Rows that one statement takes over: a second's work, far below the limits of a statement. */
const KEPT_ROWS = 100_000
/** The order on disk: a statement reads its own rows, and no others. */
const ORDER = 'account_id, created_at, id'
const IS_AFTER = `(account_id > {account:String} OR account_id = {account:String} AND (
  created_at > fromUnixTimestamp64Milli({at:Int64}, 'UTC')
  OR created_at = fromUnixTimestamp64Milli({at:Int64}, 'UTC') AND id > {id:UInt64}))`
const IS_OLD = "submitted_at < fromUnixTimestamp64Milli({before:Int64}, 'UTC')"

/** Of a row in that order. */
interface Position {
  readonly account: string
  /** Epoch milliseconds. */
  readonly at: string
  readonly id: string
}

/** Returns the names, views first: they are dropped before their tables. */
const listNames = (names: LogNames): string[] => [...listViews(names), ...listTables(names).toReversed()]

const LIVE_TABLES = listTables(LIVE_NAMES)
/** Of each table. */
const PAIRS = listTables(FRESH_NAMES).map((fresh, index) => ({ fresh, live: LIVE_TABLES[index]! }))

async function dropAll(client: ClickHouseClient, names: readonly string[]): Promise<void> {
  for (const name of names)
    await client.command({
      query: `DROP TABLE IF EXISTS ${name}`,
      // It is meant, however large the table.
      clickhouse_settings: { max_table_size_to_drop: '0' },
    })
}

/** Tables of the log that were lost are created again, empty; their migrations stay marked as done. */
async function restoreTables(client: ClickHouseClient): Promise<void> {
  const names = [...listNames(LIVE_NAMES), MARKS_TABLE]
  const [found] = await readRows<{ tables: string }>(client, {
    query: `SELECT count() AS tables FROM system.tables
      WHERE database = currentDatabase() AND name IN {names:Array(String)}`,
    query_params: { names },
  })
  if (Number(found!.tables) === names.length) return
  await dropAll(client, listViews(LIVE_NAMES))
  for (const { apply } of readMigrations()) await apply(client)
}

/** Takes over the calls admitted before an instant from the live log, some rows at a time. Returns how many. */
async function keepCallsBefore(
  client: ClickHouseClient,
  epochMs: number,
  rowsAtATime: number,
): Promise<number> {
  const old = `FROM ${LIVE_NAMES.calls} WHERE ${IS_OLD} AND ${IS_AFTER} ORDER BY ${ORDER}`
  let after: Position | undefined = { account: '', at: '0', id: '0' }
  while (after !== undefined) {
    const query_params: Record<string, unknown> = { ...after, before: epochMs, rows: rowsAtATime }
    const [last] = await readRows<Position>(client, {
      query: `SELECT account_id AS account, toUnixTimestamp64Milli(created_at) AS at, id ${old}
        LIMIT 1 OFFSET ${rowsAtATime - 1}`,
      query_params,
    })
    await client.command({
      query: `INSERT INTO ${FRESH_NAMES.calls} SELECT * ${old} LIMIT {rows:UInt32}`,
      query_params,
    })
    after = last
  }
  const [kept] = await readRows<{ rows: number }>(client, {
    query: `SELECT toUInt32(count()) AS rows FROM ${FRESH_NAMES.calls} WHERE ${IS_OLD}`,
    query_params: { before: epochMs },
  })
  return kept!.rows
}

export interface RebuildTables {
  /** Adds rows as `CallLog.insertCalls` does. */
  insertCalls(range: CallRange): Promise<number>
  /** Takes over the calls admitted before an instant (epoch milliseconds) from the live log. Returns how many. */
  keepCallsBefore(epochMs: number, rowsAtATime?: number): Promise<number>
  /** Makes this the log; readers no longer see the former one. */
  swap(): Promise<void>
  /** Removes the former log; before a swap, this one. */
  drop(): Promise<void>
}

/**
 * Creates an empty second log without readers; removes the tables of an interrupted rebuild first. Only one rebuild may be
 * under way.
 */
export async function createRebuildTables(client: ClickHouseClient): Promise<RebuildTables> {
  await restoreTables(client)
  const drop = () => dropAll(client, listNames(FRESH_NAMES))
  await drop()
  for (const { fresh, live } of PAIRS) await client.command({ query: `CREATE TABLE ${fresh} AS ${live}` })
  await createViews(client, FRESH_NAMES)
  return {
    insertCalls: (range: CallRange) => insertCalls(client, range, FRESH_NAMES.calls),
    keepCallsBefore: (epochMs: number, rowsAtATime = KEPT_ROWS) =>
      keepCallsBefore(client, epochMs, rowsAtATime),
    swap: async () => {
      // The calls first: after an interruption the derived tables still match the same calls.
      for (const { fresh, live } of PAIRS)
        await client.command({ query: `EXCHANGE TABLES ${live} AND ${fresh}` })
    },
    drop,
  }
}
