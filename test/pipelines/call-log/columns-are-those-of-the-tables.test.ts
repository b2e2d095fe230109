import t from 'tap'
import { BOOKED_COLUMNS, COPIED_COLUMNS, columnOf } from '../../../schemas/call-log/columns.ts'
import { connect } from '../../../src/clickhouse/connection.ts'
import { migrate as migrateCallLog } from '../../../src/clickhouse/migrate.ts'
import { STORED_PAGE_EXPRESSION } from '../../../src/clickhouse/pages/call-row.ts'
import { migrate } from '../../../src/postgres/migrate.ts'
import { connectTo } from '../../support/connections.ts'
import { startEngines } from '../../support/engines.ts'

const engines = await startEngines(t, { only: ['postgres', 'clickhouse'] })

t.test('usage rows have the columns that are declared, with their types', async (t) => {
  await migrate(engines.databaseUrl)
  const sql = connectTo(t, engines.databaseUrl, 1)
  const rows = await sql<{ name: string; type: string }[]>`
    SELECT attname AS name, format_type(atttypid, atttypmod) AS type FROM pg_attribute
    WHERE attrelid = 'usage_rows'::regclass AND attnum > 0 AND NOT attisdropped`
  t.same(
    Object.fromEntries(rows.map(({ name, type }) => [name, type])),
    Object.fromEntries(BOOKED_COLUMNS.map((name) => [name, columnOf(name).postgres])),
  )
})

t.test('the call log has the columns that are declared, with their types', async (t) => {
  const client = connect(engines.clickhouseUrl)
  t.teardown(() => client.close())
  await migrateCallLog(client)
  const columnsOf = async (table: string) => {
    const answer = await client.query({
      query: `SELECT name, type, default_expression AS made FROM system.columns
        WHERE database = currentDatabase() AND table = {table:String}`,
      query_params: { table },
      format: 'JSONEachRow',
    })
    return answer.json<{ name: string; type: string; made: string }>()
  }
  const typesOf = (columns: Awaited<ReturnType<typeof columnsOf>>) =>
    Object.fromEntries(columns.map(({ name, type }) => [name, type]))
  const declared = Object.fromEntries(COPIED_COLUMNS.map((name) => [name, columnOf(name).clickhouse]))
  t.same(typesOf(await columnsOf('calls')), declared)

  const failed = await columnsOf('calls_failed')
  const { detail: _, upstream_cost: __, ...kept } = declared
  t.same(typesOf(failed), { ...kept, page_row: 'String' }, 'failed calls lack what only the detail shows')
  const plain = (expression: string) => expression.replaceAll(/\s/g, '')
  t.equal(plain(failed.find(({ name }) => name === 'page_row')!.made), plain(STORED_PAGE_EXPRESSION))
})
