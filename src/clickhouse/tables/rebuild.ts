/**
 * A new log beside the live one, and the moment in which it takes its place. ClickHouse ties a view to the names of its
 * tables: when tables change places, the live view feeds the new ones.
 */
import type { ClickHouseClient } from '@clickhouse/client'
import { readMigrations } from '../migrate.ts'
import { type CallRange, insertCalls } from './insert-calls.ts'
import { MARKS_TABLE } from './marks.ts'
import { FRESH_NAMES, LIVE_NAMES, type LogNames, tablesOf, viewsOf } from './names.ts'
import { createViews } from './views.ts'

/** Nothing is in it yet. Nobody reads it. */
export interface RebuildTables {
  /** As `CallLog.insertCalls`. */
  insertCalls(range: CallRange): Promise<number>
  /** From here on this is the log, and what was the log is gone for its readers. */
  swap(): Promise<void>
  /** Removes what was the log; or, where it is still the log, this one. */
  drop(): Promise<void>
}

/** Views first: they are dropped before what they feed. */
const namesOf = (names: LogNames): string[] => [...viewsOf(names), ...tablesOf(names).toReversed()]

const pairs = (): [fresh: string, live: string][] => {
  const live = tablesOf(LIVE_NAMES)
  return tablesOf(FRESH_NAMES).map((fresh, index) => [fresh, live[index]!])
}

async function existing(client: ClickHouseClient, names: readonly string[]): Promise<Set<string>> {
  const answer = await client.query({
    query:
      'SELECT name FROM system.tables WHERE database = currentDatabase() AND name IN {names:Array(String)}',
    query_params: { names },
    format: 'JSONEachRow',
  })
  return new Set((await answer.json<{ name: string }>()).map(({ name }) => name))
}

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
  const names = [...namesOf(LIVE_NAMES), MARKS_TABLE]
  if ((await existing(client, names)).size === names.length) return
  await dropAll(client, viewsOf(LIVE_NAMES))
  for (const { apply } of readMigrations()) await apply(client)
}

/** What a rebuild that was broken off has left is removed first. Only one may be under way. */
export async function createRebuildTables(client: ClickHouseClient): Promise<RebuildTables> {
  await restoreTables(client)
  const drop = () => dropAll(client, namesOf(FRESH_NAMES))
  await drop()
  for (const [fresh, live] of pairs()) await client.command({ query: `CREATE TABLE ${fresh} AS ${live}` })
  await createViews(client, FRESH_NAMES)
  return {
    insertCalls: (range) => insertCalls(client, range, FRESH_NAMES.calls),
    async swap() {
      // The calls first: should it end in between, what is made from them is of the same calls, as it was before.
      for (const [fresh, live] of pairs())
        await client.command({ query: `EXCHANGE TABLES ${live} AND ${fresh}` })
    },
    drop,
  }
}
