/** The sums by day are those of the calls, whatever is sent twice or breaks off. */
import { ClickHouseLogLevel, createClient } from '@clickhouse/client'
import t, { type Test } from 'tap'
import { migrate, readMigrations } from '../../../src/clickhouse/migrate.ts'
import { PAGE_COLUMNS, type PageRow, pageRowOf, toLogRow } from '../../../src/clickhouse/pages/call-row.ts'
import { insertCalls } from '../../../src/clickhouse/tables/insert-calls.ts'
import { LIVE_NAMES, tablesOf, viewsOf } from '../../../src/clickhouse/tables/names.ts'
import { callLogAt } from '../../support/connections.ts'
import { startEngines } from '../../support/engines.ts'
import { usageText } from '../../support/usage-text.ts'
import { BASE_INSTANT, bookedCall } from './support.ts'

const DAY_END = Date.UTC(2026, 0, 31, 23, 59, 59, 999)
const TABLES = [...viewsOf(LIVE_NAMES), ...tablesOf(LIVE_NAMES), 'tollgate_marks', 'tollgate_migrations']

const SUMS = `
  account_id, day, model, key_id, status, sum(requests) AS requests, toString(sum(cost)) AS cost,
  sum(input_tokens) AS input, sum(output_tokens) AS output, sum(cached_tokens) AS cached`
const MODEL_SUMS = SUMS.replace('key_id, ', '')
const FROM_CALLS = `
  SELECT account_id, toDate(created_at, 'UTC') AS day, model, key_id, status, call_count AS requests, cost,
         input_tokens, output_tokens, cached_tokens FROM calls`

t.test('the sums by day', async (t) => {
  const engines = await startEngines(t, { only: ['clickhouse'] })
  // Errors are expected here, and checked.
  const client = createClient({ url: engines.clickhouseUrl, log: { level: ClickHouseLogLevel.OFF } })
  t.teardown(() => client.close())
  const run = (query: string) => client.command({ query })
  const list = async <Row = Record<string, string>>(query: string) =>
    (await client.query({ query, format: 'JSONEachRow' })).json<Row>()

  async function sums(from: string) {
    return list(`SELECT ${SUMS} FROM (${from}) GROUP BY ALL ORDER BY ALL`)
  }
  async function assertAgree(t: Test, requests: number, message: string) {
    const found = await sums('SELECT * FROM calls_by_day')
    t.strictSame(found, await sums(FROM_CALLS), message)
    t.strictSame(
      await list(`SELECT ${MODEL_SUMS} FROM calls_by_model GROUP BY ALL ORDER BY ALL`),
      await list(`SELECT ${MODEL_SUMS} FROM (${FROM_CALLS}) GROUP BY ALL ORDER BY ALL`),
      `${message}: without keys`,
    )
    const failed = `SELECT * EXCEPT (detail, upstream_cost) FROM calls WHERE status != 'success' OR error_code != '' ORDER BY id`
    t.strictSame(
      await list('SELECT * FROM calls_failed ORDER BY id'),
      await list(failed),
      `${message}: failed calls`,
    )
    const stored = await list<{ page_row: string }>('SELECT page_row FROM calls_failed ORDER BY id')
    const shown = await list<PageRow>(failed.replace('* EXCEPT (detail, upstream_cost)', PAGE_COLUMNS))
    t.strictSame(
      stored.map((row) => toLogRow(pageRowOf(row.page_row))),
      shown.map(toLogRow),
      `${message}: pages of failed calls`,
    )
    t.equal(
      found.reduce((total, row) => total + Number(row.requests), 0),
      requests,
      `${message}: ${requests} calls`,
    )
  }
  /** Ids from the first on, over two months, of different accounts, models, keys and states. */
  const calls = (first: number, count: number) =>
    usageText(
      Array.from({ length: count }, (_, index) => {
        const id = first + index
        return bookedCall(id, {
          account_id: `acc_${id % 3}`,
          created_at: DAY_END + (id % 2),
          model: id % 5 === 0 ? 'etude' : 'sonata-large',
          key_id: `key_${id % 4}`,
          status: id % 7 === 0 ? 'error' : 'success',
          cost: String(id * 1_000_003),
          cached_tokens: id,
          ...(id % 7 === 0 && {
            error_code: 'upstream_error',
            error_message: `The "upstream" said\n\\${id} ü`,
            result_urls: [`https://files.example/${id}?a=b`],
            result_expires_at: DAY_END,
            attempts: [
              { seq: 1, created_at: '', latency_ms: 4, error_code: 'upstream_error', error_message: null },
            ],
            attempts_count: 1,
          }),
        })
      }),
    )

  t.beforeEach(async () => {
    for (const table of TABLES) await run(`DROP TABLE IF EXISTS ${table} SYNC`)
  })

  t.test('a range that is sent again is summed once, also after rows were merged', async (t) => {
    await migrate(client)
    for (let round = 0; round < 2; round++) {
      await insertCalls(client, { token: 'usage-1-40', text: calls(1, 40) })
      await insertCalls(client, { token: 'usage-41-60', text: calls(41, 20) })
    }
    await assertAgree(t, 60, 'sent twice')
    await run('OPTIMIZE TABLE calls_by_day FINAL')
    await assertAgree(t, 60, 'merged')
    await insertCalls(client, { token: 'usage-1-40', text: calls(1, 40) })
    await assertAgree(t, 60, 'sent again after the merge')
  })

  t.test('a row that stands for many calls counts as many', async (t) => {
    await migrate(client)
    const refused = { status: 'rejected', error_code: 'quota_exceeded', cost: '0' } as const
    const rows = [bookedCall(1, refused), bookedCall(2, { ...refused, call_count: 1400 }), bookedCall(3)]
    await insertCalls(client, { token: 'usage-1-3', text: usageText(rows) })
    await assertAgree(t, 1402, 'in the sums')
    const log = callLogAt(t, engines.clickhouseUrl)
    const HOUR_MS = 3_600_000
    for (const hours of [1, 48]) {
      const window = { from: BASE_INSTANT - hours * HOUR_MS, to: BASE_INSTANT + hours * HOUR_MS }
      const { byStatus } = await log.summarizeCalls({ accountId: 'acc_a', keyId: null, ...window })
      t.match(
        byStatus.find(({ status }) => status === 'rejected'),
        { requests: 1401 },
        hours === 1 ? 'of a part of a day' : 'of whole days',
      )
    }
    t.match(await log.usageTotals({ keyId: null, accountId: 'acc_a', from: 0, to: DAY_END * 2 }), {
      requests: 1402,
    })
  })

  t.test('an insert that fails between table and sums is completed by the next try', async (t) => {
    await migrate(client)
    const [view] = await list(`SELECT as_select FROM system.tables WHERE name = 'calls_by_day_view'`)
    const query = view!.as_select!
    await run(
      `ALTER TABLE calls_by_day_view MODIFY QUERY ${query.replace('GROUP BY', 'WHERE NOT throwIf(id = 7) GROUP BY')}`,
    )
    await insertCalls(client, { token: 'usage-1-5', text: calls(1, 5) })
    await t.rejects(insertCalls(client, { token: 'usage-6-15', text: calls(6, 10) }), { code: '395' })
    const [counted] = await list(
      'SELECT (SELECT count() FROM calls) AS calls, (SELECT sum(requests) FROM calls_by_day) AS summed',
    )
    t.ok(Number(counted!.calls) > Number(counted!.summed), 'the table has rows that the sums lack')
    await run(`ALTER TABLE calls_by_day_view MODIFY QUERY ${query}`)
    await insertCalls(client, { token: 'usage-6-15', text: calls(6, 10) })
    await assertAgree(t, 15, 'sent again')
    await insertCalls(client, { token: 'usage-6-15', text: calls(6, 10) })
    await assertAgree(t, 15, 'and once more')
  })

  t.test('an insert that reached the table alone is completed by the next try', async (t) => {
    await migrate(client)
    await run('DETACH TABLE calls_by_day_view')
    await insertCalls(client, { token: 'usage-1-10', text: calls(1, 10) })
    await run('ATTACH TABLE calls_by_day_view')
    t.strictSame(await list('SELECT * FROM calls_by_day'), [])
    await insertCalls(client, { token: 'usage-1-10', text: calls(1, 10) })
    await assertAgree(t, 10, 'sent again')
  })

  t.test('migrations that are applied again, behind new calls, add nothing', async (t) => {
    await migrate(client)
    await insertCalls(client, { token: 'usage-1-30', text: calls(1, 30) })
    for (const { apply } of readMigrations()) await apply(client)
    await assertAgree(t, 30, 'applied again')
  })

  t.test('a start that was broken off behind any migration is completed by the next', async (t) => {
    for (const steps of [1, 3, 5, 6]) {
      for (const table of TABLES) await run(`DROP TABLE IF EXISTS ${table} SYNC`)
      for (const { apply } of readMigrations().slice(0, steps)) await apply(client)
      await Promise.all([migrate(client), migrate(client), migrate(client)])
      await insertCalls(client, { token: 'usage-1-30', text: calls(1, 30) })
      await assertAgree(t, 30, `broken off behind migration ${steps}`)
    }
  })
})
