/**
 * Sets how the tables write parts from now on. Merged parts reach the disk before those that they replace are removed:
 * a server keeps these for eight minutes, the embedded ClickHouse does not, and a power failure would take the rows.
 * Small parts have a fifth of the files, because an insert waits for each of them, and a merge writes them again.
 */
import type { ClickHouseClient } from '@clickhouse/client'
import { MARKS_TABLE } from '../tables/marks.ts'
import { LIVE_NAMES, tablesOf } from '../tables/names.ts'

const SETTINGS = {
  min_compressed_bytes_to_fsync_after_merge: 1,
  // A part below this size has one file for all columns.
  min_bytes_for_wide_part: 100 * 1024 * 1024,
  // One file for all skip indexes that are smaller. Servers before 26 do not know it.
  packed_skip_index_max_bytes: 1024 * 1024,
}

async function knownSettings(client: ClickHouseClient): Promise<string[]> {
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
  const settings = (await knownSettings(client)).join(', ')
  for (const table of [...tablesOf(LIVE_NAMES), MARKS_TABLE])
    await client.command({ query: `ALTER TABLE ${table} MODIFY SETTING ${settings}` })
}
