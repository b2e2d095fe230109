/** Old months leave the call log, whole and for good; what is kept stays as it was, and is all that is compared. */
import t from 'tap'
import { type LogRetentionDeps, logRetention } from '../../../pipelines/call-log/retention.ts'
import { LIVE_NAMES, tablesOf } from '../../../src/clickhouse/tables/names.ts'
import { until } from '../../support/eventually.ts'
import { CopyBench } from './usage-copy-support.ts'

const DAY_MS = 86_400_000
const MONTHS = [2024, 2025, 2026].flatMap((year) => [0, 5, 11].map((month) => Date.UTC(year, month, 20)))
const NAMES = ['202401', '202406', '202412', '202501', '202506', '202512', '202601', '202606', '202612']

t.test('the call log keeps calls as long as configured', async (t) => {
  const bench = await CopyBench.open(t)
  const { callLog, client, database } = bench
  const monthsOf = async (table: string) => {
    const at = table.includes('_by_') ? 'day' : 'created_at'
    const answer = await client.query({
      query: `SELECT DISTINCT toString(toYYYYMM(${at})) AS month FROM ${table} ORDER BY month`,
      format: 'JSONEachRow',
    })
    return (await answer.json<{ month: string }>()).map(({ month }) => month)
  }
  for (const created_at of MONTHS) await bench.book(2, { created_at, upstream_cost: '1' })
  const copier = await bench.newCopier(t)
  await bench.untilCopied()
  let days: number | null = null
  let now = Date.UTC(2025, 11, 31)
  const dropped: string[][] = []
  const start = (more: Partial<LogRetentionDeps> = {}) => {
    const retention = logRetention({
      callLog,
      retentionDays: () => days,
      now: () => now,
      onDropped: (months) => dropped.push([...months]),
      ...more,
    })
    t.teardown(() => retention.stop())
    retention.start()
    return retention
  }

  await t.test('without a setting nothing is dropped', async (t) => {
    let asked = 0
    const retention = start({
      intervalMs: 1,
      retentionDays: () => {
        asked++
        return days
      },
    })
    await until('it was asked again', () => asked > 2)
    await retention.stop()
    t.same(await monthsOf('calls'), NAMES)
  })

  await t.test('a month goes when its last instant is too old, from calls and sums', async (t) => {
    days = 365
    // A year ago it was the last day of December.
    const first = start()
    await until('months were dropped', () => dropped.length > 0)
    await first.stop()
    t.same(dropped, [['202401', '202406']])
    now = Date.UTC(2026, 0, 1, 0, 0, 0) - 1
    const second = start()
    await second.stop()
    t.same(dropped.length, 1, 'the last instant of December is a year and no more ago')
    now += 1
    const third = start()
    await until('December went', () => dropped.length > 1)
    await third.stop()
    t.same(dropped[1], ['202412'])
    for (const table of tablesOf(LIVE_NAMES)) t.same(await monthsOf(table), NAMES.slice(3), table)
    t.same((await database.audits.verifyWallets(callLog)).differences, [], 'what is kept is what was booked')
    const kept = await bench.sql`SELECT count(*)::int AS n FROM usage_rows`
    t.equal(kept[0]!.n, bench.booked, 'PostgreSQL keeps its rows')
  })

  await t.test('daily, and at once when the setting changes', async (t) => {
    dropped.length = 0
    const retention = start({ intervalMs: 5 })
    now = Date.UTC(2026, 1, 1)
    await until('the next round came', () => dropped.length > 0)
    t.same(dropped, [['202501']])
    await retention.stop()
    const slow = start({ intervalMs: DAY_MS })
    days = 100
    slow.wake()
    await until('the setting was taken up', () => dropped.length > 1)
    t.same(dropped[1], ['202506'])
    await slow.stop()
  })

  await t.test('a shorter time cannot be taken back', async (t) => {
    days = 5_000
    const retention = start()
    await retention.stop()
    t.equal(await callLog.retainedFrom(), Date.UTC(2025, 9))
  })

  await t.test('a call of a dropped month that is copied late stays out', async (t) => {
    await bench.book(4, { created_at: Date.UTC(2025, 8, 30) })
    await bench.book(1, { created_at: Date.UTC(2025, 9, 1) })
    await bench.untilCopied()
    t.same(await monthsOf('calls'), ['202510', '202512', '202601', '202606', '202612'])
    t.same((await database.audits.verifyWallets(callLog)).differences, [])
  })

  await t.test('while ClickHouse is away it is tried again', async (t) => {
    await copier.stop()
    await bench.engines.stopEngine('clickhouse')
    days = 30
    now = Date.UTC(2026, 0, 31) - 1
    let failures = 0
    dropped.length = 0
    const retention = start({ retryMs: 50, onFailed: () => failures++ })
    await until('it failed', () => failures > 0)
    await bench.engines.startEngine('clickhouse')
    await until('it succeeded', () => dropped.length > 0)
    await retention.stop()
    t.same(dropped, [['202510']], 'December did not end thirty days ago')
  })
})
