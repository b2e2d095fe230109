import t from 'tap'
import {
  BOOKED_COLUMNS,
  COPIED_COLUMNS,
  columnOf,
  SETTLED_COLUMNS,
} from '../../../schemas/call-log/columns.ts'
import { connect } from '../../../src/clickhouse/connection.ts'
import { migrate as migrateCallLog } from '../../../src/clickhouse/migrate.ts'
import { STORED_PAGE_EXPRESSION } from '../../../src/clickhouse/pages/call-row.ts'
import { DEFAULTS } from '../../../src/core/call-log/settlement.ts'
import { migrate } from '../../../src/postgres/migrate.ts'
import { connectTo } from '../../support/connections.ts'
import { startEngines } from '../../support/engines.ts'
import { readText } from '../../support/source-files.ts'

/** The columns that the first release books, in their order. This list never changes. */
const FIRST_COLUMNS = [
  'created_at submitted_at account_id key_id model protocol stream status error_code error_message',
  'input_tokens output_tokens cached_tokens cache_write_tokens reasoning_tokens server_tool_calls unit_count unit_type',
  'cost estimate upstream_cost usage_source latency_ms ttfb_ms channel_id request_id task_id',
  'result_urls result_expires_at attempts_count attempts call_count detail session_id',
].flatMap((line) => line.split(' '))
/** Where settlements of calls and tasks get their values. */
const SETTLING = [
  'pipelines/calls/refusals.ts',
  'pipelines/chat/forward/call-record.ts',
  'pipelines/chat/precharge.ts',
  'pipelines/tasks/end/settlement.ts',
  'src/core/call-log/settlement.ts',
]

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

t.test('a column that was added is behind those of the first release, and has a default', async (t) => {
  t.same(SETTLED_COLUMNS.slice(0, FIRST_COLUMNS.length), FIRST_COLUMNS, 'the booking of an earlier version')
  t.same(
    SETTLED_COLUMNS.slice(FIRST_COLUMNS.length).filter((name) => !(name in DEFAULTS)),
    [],
  )
})

t.test('every column of a settlement gets a value where a call or a task ends', async (t) => {
  const settling = SETTLING.map(readText).join('\n')
  t.same(
    SETTLED_COLUMNS.filter((name) => !new RegExp(`\\b${name}\\b`).test(settling)),
    [],
  )
})
