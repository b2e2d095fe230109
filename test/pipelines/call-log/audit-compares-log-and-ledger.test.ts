/** `tollgate wallet verify` on the real call log: each difference that is planted there is found, and named. */
import t from 'tap'
import { LIVE_NAMES, tablesOf } from '../../../src/clickhouse/tables/names.ts'
import type { Difference } from '../../../src/postgres/billing/audit-report.ts'
import { CopyBench } from './usage-copy-support.ts'

const BOOKED = 2_500
const BATCH = 500
const DAY = '2025-12-31'
const NEXT_DAY = '2026-01-01'

t.test('the audit of the call log', async (t) => {
  const bench = await CopyBench.open(t)
  const { database, callLog, client, account } = bench
  const run = (query: string) =>
    client.command({ query, clickhouse_settings: { mutations_sync: '2', insert_deduplicate: 0 } })
  const differences = async (): Promise<readonly Difference[]> => {
    const report = await database.audits.verifyWallets(callLog)
    t.equal(report.ok, report.differences.length === 0)
    return report.differences
  }
  const refOf = async (id: number): Promise<string> => {
    const [row] = await bench.sql<
      [{ request_id: string }]
    >`SELECT request_id FROM usage_rows WHERE id = ${id}`
    return row.request_id
  }

  // So that each is known here.
  await bench.countIds()
  // On both sides of the turn of a month: odd ids before it, even ones behind it, and all cost the same.
  for (let left = BOOKED; left > 0; left -= BATCH) await bench.book(BATCH)
  await t.test('all is copied', async (t) => {
    await bench.newCopier(t)
    await bench.untilCopied()
  })
  await run('CREATE TABLE sound AS calls')
  await run('INSERT INTO sound SELECT * FROM calls')
  const makeSound = async (): Promise<void> => {
    for (const table of tablesOf(LIVE_NAMES)) await run(`TRUNCATE TABLE ${table}`)
    await run('INSERT INTO calls SELECT * FROM sound')
  }
  t.beforeEach(makeSound)

  const missing = async (id: number): Promise<Difference> => ({
    account_id: account,
    kind: 'log_missing',
    ref: await refOf(id),
    expected: '1',
    found: '0',
  })
  const doubled = async (id: number): Promise<Difference> => ({
    account_id: account,
    kind: 'log_doubled',
    ref: await refOf(id),
    expected: '1',
    found: '2',
  })
  const rows = (found: number): Difference => ({
    account_id: account,
    kind: 'log_rows',
    expected: String(BOOKED),
    found: String(found),
  })
  const cost = (found: string): Difference => ({
    account_id: account,
    kind: 'log_cost',
    expected: '0.0025',
    found,
  })

  t.test('a sound log has none', async (t) => {
    t.same(await differences(), [])
  })

  t.test('a row that is missing', async (t) => {
    await run('ALTER TABLE calls DELETE WHERE id = 2001')
    t.same(await differences(), [
      rows(BOOKED - 1),
      cost('0.002499'),
      await missing(2001),
      { account_id: account, kind: 'day_requests', ref: DAY, expected: '1249', found: '1250' },
      { account_id: account, kind: 'day_cost', ref: DAY, expected: '0.001249', found: '0.00125' },
      { account_id: account, kind: 'day_input_tokens', ref: DAY, expected: '1498800', found: '1500000' },
      { account_id: account, kind: 'day_output_tokens', ref: DAY, expected: '424660', found: '425000' },
      { account_id: account, kind: 'day_cached_tokens', ref: DAY, expected: '124900', found: '125000' },
    ])
  })

  t.test('a row that is there twice', async (t) => {
    await run('INSERT INTO calls SELECT * FROM sound WHERE id = 2')
    t.same(await differences(), [rows(BOOKED + 1), cost('0.002501'), await doubled(2)])
  })

  t.test('one row instead of another that costs as much', async (t) => {
    await run('ALTER TABLE calls DELETE WHERE id = 4')
    await run('INSERT INTO calls SELECT * FROM sound WHERE id = 1502')
    const found = await differences()
    t.same(
      found.filter(({ kind }) => kind.startsWith('log_')),
      [await missing(4), await doubled(1502)],
    )
  })

  t.test('a cost that is another', async (t) => {
    await run('ALTER TABLE calls UPDATE cost = cost + 0.5 WHERE id = 6')
    t.same(await differences(), [
      cost('0.5025'),
      {
        account_id: account,
        kind: 'log_call_cost',
        ref: await refOf(6),
        expected: '0.000001',
        found: '0.500001',
      },
      { account_id: account, kind: 'day_cost', ref: NEXT_DAY, expected: '0.50125', found: '0.00125' },
    ])
  })

  t.test('a row of an account that nobody knows', async (t) => {
    await run("INSERT INTO calls SELECT * REPLACE ('acc_nobody' AS account_id) FROM sound WHERE id = 8")
    const nobody = { account_id: 'acc_nobody', expected: '0' }
    t.same(await differences(), [
      { ...nobody, kind: 'log_rows', found: '1' },
      { ...nobody, kind: 'log_cost', found: '0.000001' },
      { ...nobody, kind: 'log_unknown', ref: await refOf(8), found: '1' },
    ])
  })

  t.test('a row of an instant in another month', async (t) => {
    await run(
      'INSERT INTO calls SELECT * REPLACE (addMonths(created_at, 3) AS created_at) FROM sound WHERE id = 9',
    )
    await run('ALTER TABLE calls DELETE WHERE id = 9 AND toYYYYMM(created_at) < 202602')
    const found = await differences()
    t.same(
      found.filter(({ kind }) => kind.startsWith('log_')),
      [
        await missing(9),
        { account_id: account, kind: 'log_unknown', ref: await refOf(9), expected: '0', found: '1' },
      ],
    )
  })

  t.test('sums by day that are off, in either direction, and of an account that nobody knows', async (t) => {
    await run(`
      INSERT INTO calls_by_day (account_id, day, model, key_id, status, requests, cost)
      SELECT account_id, day, model, key_id, status, 3, 0.25 FROM calls_by_day WHERE day = '${DAY}' LIMIT 1`)
    await run(`
      INSERT INTO calls_by_day (account_id, day, model, key_id, status, output_tokens)
      VALUES ('acc_nobody', '2026-02-01', 'm', 'k', 'success', 5)`)
    t.same(await differences(), [
      { account_id: account, kind: 'day_requests', ref: DAY, expected: '1250', found: '1253' },
      { account_id: account, kind: 'day_cost', ref: DAY, expected: '0.00125', found: '0.25125' },
      { account_id: 'acc_nobody', kind: 'day_output_tokens', ref: '2026-02-01', expected: '0', found: '5' },
    ])
    for (const rollup of ['calls_by_day', 'calls_by_model']) {
      await makeSound()
      await run(`TRUNCATE TABLE ${rollup}`)
      t.same(
        (await differences()).filter(({ kind }) => kind === 'day_requests'),
        [DAY, NEXT_DAY].map((ref) => ({
          account_id: account,
          kind: 'day_requests',
          ref,
          expected: '1250',
          found: '0',
        })),
        rollup,
      )
    }
  })

  t.test('what is on its way is no difference: wholly, in the table alone, and not at all', async (t) => {
    await bench.book(3)
    await bench.dieAt('claimed')
    t.same(await differences(), [])
    await bench.dieAt('between months')
    t.same(await differences(), [])
    await run('DETACH TABLE calls_by_day_view')
    await bench.dieAt('inserted')
    t.same(await differences(), [], 'the sums lack what the table has')
    await run('ATTACH TABLE calls_by_day_view')
    await bench.dieAt('inserted')
    t.same(await differences(), [])
  })

  t.test('months that were dropped by age are not compared, also while they are being dropped', async (t) => {
    await callLog.dropCallsBefore(Date.parse(NEXT_DAY))
    t.same(await differences(), [])
    await run('INSERT INTO calls SELECT * FROM sound WHERE toYYYYMM(created_at) = 202512')
    await run(`ALTER TABLE calls_by_day DROP PARTITION ID '2025'`)
    t.same(await differences(), [], 'the sums went first')
    await run('ALTER TABLE calls DELETE WHERE id = 6')
    t.match((await differences())[0], { kind: 'log_rows', expected: '1250', found: '1249' })
  })

  t.test('while ClickHouse is away the money is audited, and the report says what was not', async (t) => {
    await bench.engines.stopEngine('clickhouse')
    const report = await database.audits.verifyWallets(callLog)
    t.match(report, { ok: true, accounts: 1, differences: { length: 0 }, logTrouble: /^ClickHouse: / })
    await bench.sql`UPDATE wallets SET balance = balance + 1`
    const off = await database.audits.verifyWallets(callLog)
    t.match(off, { ok: false, differences: [{ kind: 'balance' }], logTrouble: /^ClickHouse: / })
  })
})
