import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { createClient } from '@clickhouse/client'
import t, { type Test } from 'tap'
import { type CopierEvent, type UsageCopier, usageCopier } from '../../pipelines/usage-copy.ts'
import { openCallLog } from '../../src/clickhouse/call-log.ts'
import { openDatabase } from '../../src/postgres/database.ts'
import { newAccount, openMigrated, settlement } from '../src/postgres/support.ts'
import { startEngines } from '../support/engines.ts'

const CHILD = fileURLToPath(new URL('./usage-copy-child.ts', import.meta.url))
/** A bound for waiting, far above what it takes. */
const PATIENCE_MS = 30_000
const DECEMBER_END = Date.UTC(2025, 11, 31, 23, 59, 59, 999)

async function until(what: string, isSo: () => Promise<boolean> | boolean): Promise<void> {
  const deadline = Date.now() + PATIENCE_MS
  while (!(await isSo())) {
    if (Date.now() > deadline) throw new Error(`not within ${PATIENCE_MS} ms: ${what}`)
    await delay(20)
  }
}

t.test('usage rows reach the call log exactly once', async (t) => {
  const engines = await startEngines(t, { only: ['postgres', 'clickhouse'] })
  const { database, masterKey, url, sql } = await openMigrated(t, engines.databaseUrl)
  const callLog = openCallLog(engines.clickhouseUrl)
  t.teardown(() => callLog.close())
  const client = createClient({ url: engines.clickhouseUrl })
  t.teardown(() => client.close())
  const account = await newAccount(database)
  const { key } = await database.createKey({ accountId: account, name: 'copied' })

  let booked = 0
  /** Rows on both sides of the turn of a month. */
  async function book(count: number): Promise<void> {
    const calls = Array.from({ length: count }, (_, index) =>
      settlement(account, { key_id: key.id, created_at: DECEMBER_END + (index % 2), cost: '100' }),
    )
    await database.bookSettlements(calls)
    booked += count
  }
  const copied = async () => Number((await callLog.logTotals())[0]?.rows ?? 0n)
  async function assertOnce(t: Test) {
    const truth = await sql`SELECT id::text, request_id FROM usage_rows ORDER BY usage_rows.id`
    const answer = await client.query({
      query: 'SELECT toString(id) AS id, request_id FROM calls ORDER BY calls.id',
      format: 'JSONEachRow',
    })
    t.strictSame(await answer.json(), [...truth], 'the log has the rows of PostgreSQL')
    const [total] = await callLog.logTotals()
    t.strictSame(
      total,
      { accountId: account, rows: BigInt(booked), cost: BigInt(booked) * 100n },
      'the sums agree',
    )
    const report = await database.verifyWallets((throughId) => callLog.logTotals({ throughId }))
    t.strictSame(report.differences, [], 'the audit agrees')
  }

  /** A copier with a database session of its own: the session is its right to copy, and ends with the test. */
  async function newCopier(t: Test, onEvent?: (event: CopierEvent) => void): Promise<UsageCopier> {
    const own = await openDatabase({ url, masterKey })
    const copier = usageCopier({ database: own, callLog, ...(onEvent && { onEvent }) })
    t.teardown(async () => {
      await copier.stop()
      await own.close()
    })
    copier.start()
    return copier
  }

  async function dieAt(point: string): Promise<void> {
    const child = spawn(process.execPath, [CHILD], {
      env: {
        ...process.env,
        DIE_AT: point,
        DATABASE_URL: url,
        CLICKHOUSE_URL: engines.clickhouseUrl,
        MASTER_KEY: masterKey.toString('hex'),
      },
      stdio: ['ignore', 'inherit', 'inherit'],
    })
    t.teardown(() => child.kill('SIGKILL'))
    const [, signal] = await once(child, 'exit')
    if (signal !== 'SIGKILL') throw new Error(`the copier was to be killed at ${point}, and ended otherwise`)
  }

  for (const point of ['claimed', 'inserted']) {
    t.test(`killed when the range is ${point}: another copier completes it`, async (t) => {
      await book(7)
      await dieAt(point)
      if (point === 'inserted') t.equal(await copied(), booked, 'inserted before it was killed')
      await book(4)
      const copier = await newCopier(t)
      await until('all rows copied', async () => (await copied()) === booked)
      await copier.stop()
      await assertOnce(t)
    })
  }

  t.test('two copiers side by side, woken after each booking', async (t) => {
    const copiers = [await newCopier(t), await newCopier(t)]
    for (let round = 0; round < 8; round++) {
      await book(3)
      for (const copier of copiers) copier.wake()
    }
    await until('all rows copied', async () => (await copied()) === booked)
    for (const copier of copiers) await copier.stop()
    const counts = copiers.map((copier) => copier.health().copiedRows).sort()
    t.strictSame(counts, [0, 24], 'one of them copies')
    await assertOnce(t)
  })

  t.test('46: ClickHouse stopped: booking goes on, and the rows appear when it is back', async (t) => {
    const events: CopierEvent[] = []
    const copier = await newCopier(t, (event) => void events.push(event))
    await engines.stopEngine('clickhouse')
    await book(5)
    copier.wake()
    await until('the failure shows', () => copier.health().failures > 1)
    t.ok(copier.health().lastError)
    await book(5)
    await engines.startEngine('clickhouse')
    await until('all rows copied', () => copier.health().copiedRows === 10)
    t.match(copier.health(), { lagMs: 0, failures: 0, lastError: null })
    t.equal(events.at(-1)?.event, 'recovered')
    await assertOnce(t)
  })

  t.test('46: ClickHouse killed in the middle of the work', async (t) => {
    const copier = await newCopier(t)
    for (let round = 0; round < 6; round++) {
      await book(5)
      copier.wake()
      await delay(60)
      if (round === 2) engines.killEngine('clickhouse')
    }
    await until('all rows copied', async () => (await copied().catch(() => 0)) === booked)
    await copier.stop()
    await assertOnce(t)
  })

  t.test('a name changed later leaves the row as it was; a row shows its key', async (t) => {
    await database.updateKey(key.id, { name: 'renamed' })
    await book(1)
    await newCopier(t)
    await until('all rows copied', async () => (await copied()) === booked)
    const answer = await client.query({
      query: 'SELECT key_name, key_prefix, count() AS n FROM calls GROUP BY ALL ORDER BY key_name',
      format: 'JSONEachRow',
    })
    t.match(await answer.json(), [
      { key_name: 'copied', key_prefix: key.prefix },
      { key_name: 'renamed', key_prefix: key.prefix, n: 1 },
    ])
  })
})
