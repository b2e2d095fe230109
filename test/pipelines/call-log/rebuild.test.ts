/** The call log rebuilt from PostgreSQL: what it was, while calls arrive and are read, wherever it is broken off. */
import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { type LogRebuildDeps, rebuildLog } from '../../../pipelines/call-log/rebuild.ts'
import { usageCopier } from '../../../pipelines/call-log/usage-copy.ts'
import { LIVE_NAMES, listTables, listViews } from '../../../src/clickhouse/tables/names.ts'
import { CopyBench } from './usage-copy-support.ts'

const JANUARY = Date.UTC(2026, 0)
/** Far above what a rebuild here takes. */
const LEFT_OVER =
  "SELECT name FROM system.tables WHERE database = currentDatabase() AND name LIKE '%rebuilt%'"

t.test('the call log is rebuilt', async (t) => {
  const bench = await CopyBench.open(t)
  const { client, callLog, database } = bench
  const run = (query: string) =>
    client.command({ query, clickhouse_settings: { mutations_sync: '2', insert_deduplicate: 0 } })
  const list = async (query: string) => (await client.query({ query, format: 'JSONEachRow' })).json()
  const rebuild = async (more: Partial<LogRebuildDeps> = {}) => {
    const own = await bench.openDatabase()
    try {
      return await rebuildLog({ database: own, callLog, rangeRows: 60, heldRows: 15, ...more })
    } finally {
      await own.close()
    }
  }
  const assertWhole = async (t: Test) => {
    await bench.assertOnce(t)
    t.same(await list(LEFT_OVER), [], 'nothing is left beside it')
  }
  /** By a process that ends then: the next may copy. */
  async function copyAll() {
    const own = await bench.openDatabase()
    const copier = usageCopier({ database: own, callLog })
    try {
      copier.start()
      await bench.untilCopied()
    } finally {
      await copier.stop()
      await own.close()
    }
  }

  // So that each is known here.
  await bench.countIds()
  await bench.book(23)
  await t.test('from all that is wrong with it', async (t) => {
    await copyAll()
    await run('ALTER TABLE calls DELETE WHERE id IN (3, 4)')
    await run('INSERT INTO calls SELECT * FROM calls WHERE id BETWEEN 7 AND 9')
    await run('ALTER TABLE calls_by_day DELETE WHERE day < toDate(20260101)')
    t.notSame((await database.audits.verifyWallets(callLog)).differences, [])
    t.same(await rebuild(), { rows: 23, dropped: 0 })
    await assertWhole(t)
    t.same(await rebuild(), { rows: 23, dropped: 0 }, 'and once more')
  })

  await t.test('while calls arrive, are copied and are read', async (t) => {
    const copier = await bench.newCopier(t)
    const before = await bench.copied()
    let isOver = false
    let reads = 0
    const reading = (async () => {
      for (; !isOver; reads++) if ((await bench.copied()) < before) return 'a reader missed calls'
      return null
    })()
    const progress: number[] = []
    await rebuild({
      rangeRows: 5,
      heldRows: 5,
      async onProgress({ rows }) {
        progress.push(rows)
        if (progress.length > 4) return
        await bench.book(3)
        copier.wake()
      },
    })
    isOver = true
    t.equal(await reading, null)
    t.ok(reads > 0)
    t.ok(progress.length > 4)
    await bench.book(2)
    await bench.untilCopied()
    await copier.stop()
    await assertWhole(t)
  })

  await t.test('by the process that copies, while its copier waits for the hold', async (t) => {
    await bench.book(60)
    await copyAll()
    const own = await bench.openDatabase()
    const copier = usageCopier({ database: own, callLog })
    t.teardown(() => own.close())
    copier.start()
    const done = rebuild({
      database: own,
      heldRows: 1_000_000,
      async onProgress() {
        await bench.book(1)
        copier.wake()
        await delay(200)
      },
    })
    t.ok(await done, 'neither waits for ever')
    await bench.untilCopied()
    await copier.stop()
    await assertWhole(t)
  })

  await t.test('when tables are lost', async (t) => {
    const all = [...listViews(LIVE_NAMES), ...listTables(LIVE_NAMES), 'tollgate_marks', 'tollgate_migrations']
    const made = ['calls_by_model', 'calls_failed', 'calls_failed_view']
    for (const lost of [['calls'], ['calls_by_day'], ['calls_by_day_view', 'tollgate_marks'], made, all]) {
      for (const table of lost) await run(`DROP TABLE ${table} SYNC`)
      await rebuild()
      await bench.book(2)
      await copyAll()
      await assertWhole(t)
    }
  })

  await t.test('by one at a time', async (t) => {
    const other = await bench.openDatabase()
    t.ok(await other.callCopy.claimRebuild())
    await t.rejects(rebuild(), { message: /another rebuild/i })
    await rebuild({ database: other })
    await rebuild()
    await t.rejects(rebuild({ database: other, onProgress: () => Promise.reject(new Error('stopped')) }), {
      message: 'stopped',
    })
    await rebuild()
    t.ok(await other.callCopy.claimRebuild())
    await other.close()
    await rebuild()
    await assertWhole(t)
  })

  for (const point of ['claimed', 'inserted'] as const)
    await t.test(`while a range is ${point} whose copier was killed`, async (t) => {
      await bench.book(7)
      await bench.dieAt(point)
      await rebuild()
      await copyAll()
      await assertWhole(t)
    })

  await t.test('while a copier is between its insert and the end of its range', async (t) => {
    await bench.book(7)
    const copier = await bench.openDatabase()
    t.teardown(() => copier.close())
    const range = (await copier.callCopy.claimRange())!
    const text = await copier.callCopy.readRows(range)
    const token = `usage-${range.from}-${range.to}`
    await callLog.insertCalls({ token, text })
    await rebuild()
    await callLog.insertCalls({ token, text })
    await copier.callCopy.finishRange(range)
    await assertWhole(t)
  })

  for (const point of ['half done', 'one of two tables exchanged', 'exchanged'] as const)
    await t.test(`killed when it is ${point}, the log is whole, and the next rebuild is`, async (t) => {
      await bench.dieAt(point)
      await bench.assertOnce(t)
      await bench.book(3)
      await copyAll()
      await rebuild()
      await assertWhole(t)
    })

  await t.test('without the months that were dropped by age', async (t) => {
    const [months] = await bench.sql<[{ old: number; kept: number }]>`
      SELECT count(*) FILTER (WHERE created_at < ${JANUARY})::int AS old,
        count(*) FILTER (WHERE created_at >= ${JANUARY})::int AS kept FROM usage_rows`
    t.same(await callLog.dropCallsBefore(JANUARY), ['202512'])
    t.same(await rebuild(), { rows: months.kept, dropped: months.old })
    t.equal(await bench.copied(), months.kept)
    t.same((await database.audits.verifyWallets(callLog)).differences, [])
    await run('INSERT INTO calls SELECT * FROM calls LIMIT 1')
    t.notSame((await database.audits.verifyWallets(callLog)).differences, [], 'what is kept is compared')
  })
})
