/** Every table of the call log writes merged parts to the disk before it removes the former ones, in few files. */
import t from 'tap'
import { connect } from '../../../src/clickhouse/connection.ts'
import { migrate } from '../../../src/clickhouse/migrate.ts'
import { insertCalls } from '../../../src/clickhouse/tables/insert-calls.ts'
import { MARKS_TABLE } from '../../../src/clickhouse/tables/marks.ts'
import { FRESH_NAMES, LIVE_NAMES, tablesOf } from '../../../src/clickhouse/tables/names.ts'
import { createRebuildTables } from '../../../src/clickhouse/tables/rebuild.ts'
import { startEngines } from '../../support/engines.ts'
import { usageText } from '../../support/usage-text.ts'
import { bookedCall } from './support.ts'

/** 22 where each skip index has two files. */
const MAX_FILES = 15

t.test('the parts of the call log', async (t) => {
  const { clickhouseUrl } = await startEngines(t, { only: ['clickhouse'] })
  const client = connect(clickhouseUrl)
  t.teardown(() => client.close())
  const list = async <Row>(query: string) =>
    (await client.query({ query, format: 'JSONEachRow' })).json<Row>()
  await migrate(client)
  await createRebuildTables(client)

  t.test('of each table, also of a rebuilt one', async (t) => {
    const tables = await list<{ name: string; engine_full: string }>(
      'SELECT name, engine_full FROM system.tables WHERE database = currentDatabase()',
    )
    for (const name of [...tablesOf(LIVE_NAMES), ...tablesOf(FRESH_NAMES), MARKS_TABLE])
      t.match(
        tables.find((table) => table.name === name)?.engine_full,
        /fsync_after_insert = 1,.* min_compressed_bytes_to_fsync_after_merge = 1\b/,
        name,
      )
  })

  t.test('have few files, inserted and merged', async (t) => {
    const files = async () => {
      const parts = await list<{ files: string }>(
        "SELECT files FROM system.parts WHERE database = currentDatabase() AND table = 'calls' AND active",
      )
      return parts.map((part) => Number(part.files))
    }
    const texts = [1, 2].map((id) => usageText([bookedCall(id)]))
    for (const [index, text] of texts.entries()) await insertCalls(client, { token: `usage-${index}`, text })
    const inserted = await files()
    await client.command({ query: 'OPTIMIZE TABLE calls FINAL' })
    const merged = await files()
    t.equal(merged.length, 1)
    for (const count of [...inserted, ...merged]) t.ok(count <= MAX_FILES, `${count} files`)
  })
})
