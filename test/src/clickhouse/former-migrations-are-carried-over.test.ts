/** A call log of the seventeen former migrations becomes one of the present ones: the same tables, and every row. */
import { ClickHouseLogLevel, createClient } from '@clickhouse/client'
import t from 'tap'
import { migrate, readMigrations } from '../../../src/clickhouse/migrate.ts'
import { insertCalls } from '../../../src/clickhouse/tables/insert-calls.ts'
import { LIVE_NAMES, tablesOf, viewsOf } from '../../../src/clickhouse/tables/names.ts'
import { callLogAt } from '../../support/connections.ts'
import { startEngines } from '../../support/engines.ts'
import { readText } from '../../support/source-files.ts'
import { usageText } from '../../support/usage-text.ts'
import { bookedCall } from './support.ts'

const FORMER = readText('test/fixtures/clickhouse-before-squash.sql').split(';\n\n')
/** Views first: they are dropped before what they feed. */
const PRESENT_TABLES = [
  ...viewsOf(LIVE_NAMES),
  ...tablesOf(LIVE_NAMES),
  'tollgate_marks',
  'tollgate_migrations',
]

const isFormer = (table: string): boolean => !table.startsWith(LIVE_NAMES.costs)
const TABLES = PRESENT_TABLES.filter(isFormer)

const { clickhouseUrl } = await startEngines(t, { only: ['clickhouse'] })
// Errors are expected here, and checked.
const client = createClient({ url: clickhouseUrl, log: { level: ClickHouseLogLevel.OFF } })
t.teardown(() => client.close())
const run = (query: string) => client.command({ query })
const list = async (query: string) => (await client.query({ query, format: 'JSONEachRow' })).json()

/** Without the condition that former views have: calls with ids up to 7 are older than they are. */
async function describe(tables = TABLES): Promise<string[]> {
  const statements = await Promise.all(tables.map((table) => list(`SHOW CREATE TABLE ${table}`)))
  return statements.map((rows) =>
    (rows[0] as { statement: string }).statement
      .replace('\nWHERE id > 7', '')
      // Former views pass the cost on to a table that has no column for it, which ignores it.
      .replace('EXCEPT (detail, upstream_cost)', 'EXCEPT detail')
      .replace(/WHERE \((.+)\) AND \(id > 7\)$/, 'WHERE $1'),
  )
}
const applied = () => list('SELECT DISTINCT number, file FROM tollgate_migrations ORDER BY number')
const rows = () =>
  Promise.all(
    tablesOf(LIVE_NAMES)
      .filter(isFormer)
      .map((table) => list(`SELECT * FROM ${table} ORDER BY ALL`)),
  )
const requests = () => list(`SELECT toUInt64(sum(requests)) AS count FROM calls_by_day`)

/** Ids from the first on; every second call failed. */
const range = (first: number, count: number) => ({
  token: `usage-${first}`,
  text: usageText(
    Array.from({ length: count }, (_, index) =>
      bookedCall(first + index, index % 2 === 0 ? {} : { status: 'error', error_code: 'upstream_error' }),
    ),
  ),
})

const PRESENT = readMigrations().map(({ number, file }) => ({ number, file }))

t.beforeEach(async () => {
  for (const table of PRESENT_TABLES) await run(`DROP TABLE IF EXISTS ${table} SYNC`)
  for (const statement of FORMER) await run(statement)
  // The present program inserts it.
  await run(readText('src/clickhouse/migrations/007-upstream-cost.sql'))
})

t.test('tables and views are those of a new log, and no row is lost or counted twice', async (t) => {
  await insertCalls(client, range(8, 20))
  const before = await rows()
  await Promise.all([migrate(client), migrate(client), migrate(client)])
  t.same(await rows(), before)
  t.same(await applied(), PRESENT)
  t.same(await migrate(client), [], 'once')
  const carried = await describe(PRESENT_TABLES)
  await insertCalls(client, range(8, 20))
  t.same(await rows(), before, 'a range that is sent again changes nothing')
  await insertCalls(client, range(28, 4))
  t.same(await requests(), [{ count: 24 }])
  for (const table of PRESENT_TABLES) await run(`DROP TABLE ${table} SYNC`)
  await migrate(client)
  t.same(carried, await describe(PRESENT_TABLES))
})

t.test('a start that was broken off in between is completed by the next', async (t) => {
  await insertCalls(client, range(8, 20))
  const before = await rows()
  await client.insert({ table: 'tollgate_migrations', values: PRESENT, format: 'JSONEachRow' })
  await run('DELETE FROM tollgate_migrations WHERE number > 12')
  await migrate(client)
  t.same(await applied(), PRESENT)
  t.same(await rows(), before)
})

t.test('an older log is refused, and stays as it is', async (t) => {
  await run('DELETE FROM tollgate_migrations WHERE number > 16')
  const was = [await describe(), await applied()]
  const message = /up to 016-page-row-call-count.sql, and .* needs all of them up to 017-sum-call-counts.ts/
  await t.rejects(migrate(client), { message })
  const log = callLogAt(t, clickhouseUrl)
  await t.rejects(log.insertCalls(range(8, 20)), { message })
  t.same([await describe(), await applied()], was)
})
