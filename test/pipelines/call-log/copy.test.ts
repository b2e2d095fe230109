/** The copy of calls to ClickHouse: each once, audited, and kept for its time. */
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { type LogRebuildDeps, rebuildLog } from '../../../pipelines/call-log/rebuild.ts'
import { type LogRetentionDeps, logRetention } from '../../../pipelines/call-log/retention.ts'
import { findUnbooked } from '../../../pipelines/call-log/unbooked.ts'
import { type CopierEvent, usageCopier } from '../../../pipelines/call-log/usage-copy.ts'
import { commandCaller } from '../../../pipelines/management/caller.ts'
import { callLogOperations } from '../../../pipelines/management/calls/call-log.ts'
import { runImplementation } from '../../../pipelines/management/operation.ts'
import { LIVE_NAMES, listTables } from '../../../src/clickhouse/tables/names.ts'
import type { Difference } from '../../../src/postgres/billing/audit-report.ts'
import type { RetirementReport } from '../../../src/postgres/partitions/retire.ts'
import { seedNote, seeds, TIMEOUT_MS } from '../../end-to-end/chaos/plan.ts'
import { Random } from '../../simulation/random.ts'
import { command, noEngines } from '../../src/cli/support.ts'
import { until } from '../../support/eventually.ts'
import { CopyBench, type KillPoint } from './usage-copy-support.ts'

t.test('usage copy exactly once', async (t) => {
  /** Of seven rows, four of them in the first month: those that the log has when the copier is killed. */
  const LOGGED_AT: Readonly<Record<KillPoint, number>> = {
    claimed: 0,
    'between months': 4,
    inserted: 7,
  }

  t.test('usage rows reach the call log exactly once', async (t) => {
    const bench = await CopyBench.open(t)
    const { engines } = bench

    for (const [point, logged] of Object.entries(LOGGED_AT) as [KillPoint, number][])
      t.test(`killed when the range is ${point}: another copier completes it`, async (t) => {
        await bench.book(7)
        const before = await bench.copied()
        await bench.dieAt(point)
        t.equal(await bench.copied(), before + logged, 'killed where it was to be')
        await bench.book(4)
        const copier = await bench.newCopier(t)
        await bench.untilCopied()
        await copier.stop()
        await bench.assertOnce(t)
      })

    t.test('killed between the table and its sums by day: another copier completes both', async (t) => {
      const before = await bench.copied()
      const repair = await bench.breakSums()
      await bench.book(7)
      const copier = bench.spawnCopier('never')
      await until('the table has rows', async () => (await bench.copied()) > before)
      copier.kill('SIGKILL')
      await once(copier, 'exit')
      await repair()
      await bench.book(4)
      await bench.newCopier(t)
      await bench.untilCopied()
      await bench.assertOnce(t)
    })

    t.test('two copiers side by side, woken after each booking', async (t) => {
      const copiers = [await bench.newCopier(t), await bench.newCopier(t)]
      for (let round = 0; round < 8; round++) {
        await bench.book(3)
        for (const copier of copiers) copier.wake()
      }
      await bench.untilCopied()
      for (const copier of copiers) await copier.stop()
      const counts = copiers.map((copier) => copier.health().copiedRows).sort()
      t.strictSame(counts, [0, 24], 'one of them copies')
      await bench.assertOnce(t)
    })

    t.test('46: ClickHouse stopped: booking goes on, and the rows appear when it is back', async (t) => {
      const events: CopierEvent[] = []
      const copier = await bench.newCopier(t, (event) => void events.push(event))
      await engines.stopEngine('clickhouse')
      await bench.book(5)
      copier.wake()
      await until('the failure shows', () => copier.health().failures > 1)
      t.ok(copier.health().lastError)
      await bench.book(5)
      await engines.startEngine('clickhouse')
      await until('all rows copied', () => copier.health().copiedRows === 10)
      t.match(copier.health(), { lagMs: 0, failures: 0, lastError: null })
      t.equal(events.at(-1)?.event, 'recovered')
      await bench.assertOnce(t)
    })

    t.test('a name changed later leaves the row as it was; a row shows its key', async (t) => {
      await bench.database.keys.update(bench.keyId, { name: 'renamed' })
      await bench.book(1)
      await bench.newCopier(t)
      await bench.untilCopied()
      const answer = await bench.client.query({
        query: 'SELECT key_name, key_prefix, count() AS n FROM calls GROUP BY ALL ORDER BY key_name',
        format: 'JSONEachRow',
      })
      t.match(await answer.json(), [
        { key_name: 'copied', key_prefix: bench.keyPrefix },
        { key_name: 'renamed', key_prefix: bench.keyPrefix, n: 1 },
      ])
    })
  })
})

t.test('usage copy survives kills', async (t) => {
  // ClickHouse and the copiers are killed, one at a time and together, while calls are booked without pause: the log, its
  // sums by day and the ledger agree afterwards.
  const KILLS = [['clickhouse'], ['one copier'], ['clickhouse', 'one copier']] as const
  /** Bookings are so far apart at most: inserts are under way most of the time. */
  const BOOKING_GAP_MS = 40
  const MAX_BOOKED_ROWS = 40
  /** A kill comes so long after all have begun to work again: within the time between two inserts. */
  const MAX_KILL_DELAY_MS = 600

  t.setTimeout(TIMEOUT_MS)
  for (const seed of seeds())
    await t.test(seedNote(seed), async (t) => {
      const random = new Random(seed)
      const bench = await CopyBench.open(t)
      let isOver = false
      const booking = (async () => {
        while (!isOver) {
          await bench.book(random.int(1, MAX_BOOKED_ROWS))
          await sleep(random.int(0, BOOKING_GAP_MS))
        }
      })()
      const copiers: ChildProcess[] = [bench.spawnCopier('never'), bench.spawnCopier('never')]
      const killCopier = (index: number) => {
        copiers[index]?.kill('SIGKILL')
        copiers[index] = bench.spawnCopier('never')
      }

      for (const victims of KILLS) {
        const before = await bench.copied()
        await until('rows are copied', async () => (await bench.copied()) > before)
        await sleep(random.int(0, MAX_KILL_DELAY_MS))
        for (const victim of victims) {
          if (victim === 'clickhouse') bench.engines.killEngine('clickhouse')
          if (victim === 'one copier') killCopier(random.int(0, 1))
        }
        if (!victims.some((victim) => victim === 'clickhouse')) continue
        // At once, where after a crash it would wait longer each time.
        await bench.engines.stopEngine('clickhouse')
        await bench.engines.startEngine('clickhouse')
      }
      isOver = true
      await booking
      await bench.untilCopied()
      t.comment(`${bench.booked} rows`)
      await bench.assertOnce(t)
    })
})

t.test('calls that only the log has', async (t) => {
  // Calls that PostgreSQL lost and the log still has: booked once, and never deleted unasked.
  const [importAct] = callLogOperations
  const LOST = 7

  t.test('calls that only the log has', async (t) => {
    const bench = await CopyBench.open(t)
    const { callLog, client, database, sql, account } = bench
    const importLog = (dry_run: boolean) =>
      runImplementation(
        importAct!,
        { dry_run },
        {
          database,
          services: { callLog },
          caller: commandCaller('operator:test', null),
          now: Date.now(),
        },
      )
    const rebuild = async (more: Partial<LogRebuildDeps> = {}) => {
      const own = await bench.openDatabase()
      try {
        return await rebuildLog({ database: own, callLog, ...more })
      } finally {
        await own.close()
      }
    }
    const copyAll = async () => {
      const own = await bench.openDatabase()
      const copier = usageCopier({ database: own, callLog })
      copier.start()
      await bench.untilCopied()
      await copier.stop()
      await own.close()
    }
    const rowsOf = (ids: readonly string[]) => sql`
    SELECT to_jsonb(u) - 'id' - 'booked_at' AS row FROM usage_rows AS u
    WHERE request_id = ANY (${ids as string[]}) ORDER BY request_id`

    await bench.book(20)
    await bench.book(1, {
      error_code: 'upstream_error',
      error_message: 'a "quoted"\ttext\\',
      status: 'error',
      unit_count: '2.5',
      unit_type: 'video',
      ttfb_ms: 0,
      upstream_cost: '77',
      detail: '{"seed":1}',
      result_urls: ['https://files.example.com/a%27b'],
      result_expires_at: Date.UTC(2026, 5, 1),
      attempts: [
        {
          seq: 1,
          created_at: '2026-01-01T00:00:00.000Z',
          latency_ms: 5,
          error_code: 'x',
          error_message: null,
        },
      ],
      attempts_count: 2,
    })
    await copyAll()
    const ids = (
      await sql<{ request_id: string }[]>`SELECT request_id FROM usage_rows ORDER BY id DESC LIMIT ${LOST}`
    ).map(({ request_id }) => request_id)
    const before = [...(await rowsOf(ids))]
    const [wallet] = await sql`SELECT balance, used FROM wallets WHERE account_id = ${account}`

    /** As after a restore from a copy that was made before these calls. */
    await sql.begin(async (lost) => {
      await lost`SET LOCAL session_replication_role = replica`
      await lost`DELETE FROM usage_rows WHERE request_id = ANY (${ids}::text[])`
      await lost`DELETE FROM ledger_entries WHERE ref = ANY (${ids}::text[])`
      await lost`
      UPDATE wallets SET balance = balance + ${LOST * 100}, used = used - ${LOST * 100} WHERE account_id = ${account}`
      await lost`UPDATE usage_copy SET copied_upto = (SELECT max(id) FROM usage_rows)`
    })

    await t.test('a rebuild deletes none of them', async (t) => {
      await t.rejects(rebuild(), {
        message: new RegExp(
          `^Only the call log has ${LOST} calls of 1 accounts, which cost 0.000007 credits: a rebuild would delete them\\. Book them with \`tollgate wallet import-log\`, or delete them with --delete-unbooked`,
        ),
      })
      t.equal(await bench.copied(), 21)
      const tables = await client.query({
        query: "SELECT name FROM system.tables WHERE database = currentDatabase() AND name LIKE '%rebuilt%'",
        format: 'JSONEachRow',
      })
      t.same(await tables.json(), [], 'and leaves nothing behind')
    })

    await t.test('they are found in pages of any size', async (t) => {
      for (const pageCalls of [1, 4, 1_000]) {
        const found = await findUnbooked({ database, callLog, pageCalls })
        t.same(found.map(({ requestId }) => requestId).sort(), ids.toSorted())
      }
    })

    await t.test('a dry run books nothing', async (t) => {
      t.same(await importLog(true), {
        calls: LOST,
        cost: '0.000007',
        accounts: [{ account_id: account, calls: LOST, cost: '0.000007', is_known: true }],
        dry_run: true,
        booked_calls: 0,
        booked_cost: '0',
      })
      t.same(await rowsOf(ids), [])
    })

    await t.test('the command shows them, and asks before it books', async (t) => {
      const asked: string[] = []
      const wiring = {
        ...noEngines,
        books: async () => ({ database, callLog }),
        ask: async (question: string) => {
          asked.push(question)
          return 'n'
        },
      }
      const shown = await command(['wallet', 'import-log'], wiring)
      t.match(shown.stdout, /^calls +7\ncost +0\.000007\ndry_run +yes: nothing was booked; add --book /)
      t.match(shown.stdout, /\naccounts\n {2}account_id +calls +cost +is_known\n/)
      const refused = await command(['wallet', 'import-log', '--book'], wiring)
      t.match(refused, { code: 1, stderr: 'error: Nothing was changed.\n' })
      t.same(asked, ['7 calls would be charged, 0.000007 credits in all. Do it? [y/N] '])
      t.same(await rowsOf(ids), [])
    })

    await t.test('each is booked once, as it was, and the act is audited', async (t) => {
      const answers = await Promise.all([importLog(false), importLog(false)])
      t.equal(
        answers.reduce((sum, { booked_calls }) => sum + booked_calls, 0),
        LOST,
      )
      t.match(await importLog(false), { calls: 0, booked_calls: 0 })
      t.same([...(await rowsOf(ids))], before)
      const [after] = await sql`SELECT balance, used FROM wallets WHERE account_id = ${account}`
      t.same(after, wallet)
      const acts = await database.auditRecord.list({ action: 'call_log.import_unbooked', limit: 5 })
      t.match(
        acts.map(({ actor }) => actor),
        ['operator:test', 'operator:test'],
      )
      const calls = acts.map(({ after: facts }) => (facts as { calls: number }).calls)
      t.equal(
        calls.reduce((sum, one) => sum + one),
        LOST,
      )
    })

    await t.test('a rebuild then makes the log whole', async (t) => {
      await copyAll()
      t.match(await rebuild(), { rows: 21 })
      await bench.assertOnce(t)
    })

    await t.test('those of an unknown account are not booked, and deleted with consent', async (t) => {
      await client.command({
        query:
          "INSERT INTO calls SELECT * REPLACE ('acc_gone' AS account_id, 'req_gone' AS request_id) FROM calls LIMIT 1",
      })
      t.match(await importLog(false), {
        calls: 1,
        accounts: [{ account_id: 'acc_gone', is_known: false }],
        booked_calls: 0,
      })
      await t.rejects(rebuild({ confirmDeletion: () => Promise.reject(new Error('no')) }), { message: 'no' })
      t.equal(await bench.copied(), 22)
      const agreed: number[] = []
      await rebuild({
        confirmDeletion: async ({ calls }) => {
          agreed.push(calls)
        },
      })
      t.same(agreed, [1])
      await bench.assertOnce(t)
      t.match(await database.auditRecord.list({ action: 'call_log.delete_unbooked', limit: 5 }), [
        { after: { calls: 1 } },
      ])
    })
  })
})

t.test('audit compares log and ledger', async (t) => {
  // `tollgate wallet verify` on the real call log: each difference that is planted there is found, and named.
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
      for (const table of listTables(LIVE_NAMES)) await run(`TRUNCATE TABLE ${table}`)
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

    t.test(
      'sums by day that are off, in either direction, and of an account that nobody knows',
      async (t) => {
        await run(`
      INSERT INTO calls_by_day (account_id, day, model, key_id, status, requests, cost)
      SELECT account_id, day, model, key_id, status, 3, 0.25 FROM calls_by_day WHERE day = '${DAY}' LIMIT 1`)
        await run(`
      INSERT INTO calls_by_day (account_id, day, model, key_id, status, output_tokens)
      VALUES ('acc_nobody', '2026-02-01', 'm', 'k', 'success', 5)`)
        t.same(await differences(), [
          { account_id: account, kind: 'day_requests', ref: DAY, expected: '1250', found: '1253' },
          { account_id: account, kind: 'day_cost', ref: DAY, expected: '0.00125', found: '0.25125' },
          {
            account_id: 'acc_nobody',
            kind: 'day_output_tokens',
            ref: '2026-02-01',
            expected: '0',
            found: '5',
          },
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
      },
    )

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

    t.test(
      'months that were dropped by age are not compared, also while they are being dropped',
      async (t) => {
        await callLog.dropCallsBefore(Date.parse(NEXT_DAY))
        t.same(await differences(), [])
        await run('INSERT INTO calls SELECT * FROM sound WHERE toYYYYMM(created_at) = 202512')
        await run(`ALTER TABLE calls_by_day DROP PARTITION ID '2025'`)
        t.same(await differences(), [], 'the sums went first')
        await run('ALTER TABLE calls DELETE WHERE id = 6')
        t.match((await differences())[0], { kind: 'log_rows', expected: '1250', found: '1249' })
      },
    )

    t.test('while ClickHouse is away the money is audited, and the report says what was not', async (t) => {
      await bench.engines.stopEngine('clickhouse')
      const report = await database.audits.verifyWallets(callLog)
      t.match(report, { ok: true, accounts: 1, differences: { length: 0 }, logTrouble: /^ClickHouse: / })
      await bench.sql`UPDATE wallets SET balance = balance + 1`
      const off = await database.audits.verifyWallets(callLog)
      t.match(off, { ok: false, differences: [{ kind: 'balance' }], logTrouble: /^ClickHouse: / })
    })
  })
})

t.test('retention', async (t) => {
  // Old months leave the call log, whole and for good; what is kept stays as it was, and is all that is compared.
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
      for (const table of listTables(LIVE_NAMES)) t.same(await monthsOf(table), NAMES.slice(3), table)
      t.same(
        (await database.audits.verifyWallets(callLog)).differences,
        [],
        'what is kept is what was booked',
      )
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
      t.equal(await callLog.readRetainedFrom(), Date.UTC(2025, 9))
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
})

t.test('retired months stay in the log', async (t) => {
  // Calls whose usage rows retention has taken away stay in the call log, are not compared, and outlive a rebuild.
  const OLD = Date.now() - 8 * 31 * 86_400_000

  const CALLS_ALONE = { usage_rows: 2, ledger_entries: null, audit_entries: null, tasks: null }

  /** Three calls of a month that is to be taken away, and two of today, all copied. */
  async function openWithOld(t: Test) {
    const bench = await CopyBench.open(t)
    const { sql, database } = bench
    await bench.book(3, { submitted_at: OLD, created_at: OLD })
    await bench.book(2, { submitted_at: Date.now(), created_at: Date.now() })
    const copier = await bench.newCopier(t)
    await bench.untilCopied()
    await copier.stop()
    await sql`
    UPDATE partitions SET ends_at = months_later(date_trunc('month', now(), 'UTC'), -4) WHERE name = 'usage_rows_past'`
    return { bench, retire: () => database.partitions.retire({ months: CALLS_ALONE, detaches: false }) }
  }

  const RETIRED = { retired: [{ name: 'usage_rows_past', rows: 3n }], waiting: { length: 0 } }

  t.test('the log has more than PostgreSQL, and no difference', async (t) => {
    const { bench, retire } = await openWithOld(t)
    const { callLog, client, database } = bench
    const logDifferences = async () =>
      (await database.audits.verifyWallets(callLog)).differences.filter(({ kind }) =>
        /^(log|day)_/.test(kind),
      )
    t.match(await retire(), RETIRED)
    t.same(await logDifferences(), [])
    t.equal(await bench.copied(), 5)
    const inParts: LogRebuildDeps['callLog'] = {
      ...callLog,
      async createRebuildTables() {
        const fresh = await callLog.createRebuildTables()
        return { ...fresh, keepCallsBefore: (epochMs) => fresh.keepCallsBefore(epochMs, 2) }
      },
    }
    t.same(await rebuildLog({ database, callLog: inParts }), { rows: 5, dropped: 0 })
    t.equal(await bench.copied(), 5)
    t.same(await logDifferences(), [])
    await client.command({
      query: `ALTER TABLE calls DELETE WHERE submitted_at > now() - INTERVAL 1 DAY SETTINGS mutations_sync = 1`,
    })
    t.equal(
      (await logDifferences()).filter(({ kind }) => kind === 'log_missing').length,
      2,
      'a kept call is missed',
    )
  })

  t.test('no month is taken away while the log is rebuilt', async (t) => {
    const { bench, retire } = await openWithOld(t)
    const { callLog, database } = bench
    const rebuild = async (more: Partial<LogRebuildDeps> = {}) => {
      const reports: RetirementReport[] = []
      const onProgress = async () => void reports.push(await retire())
      return { ...(await rebuildLog({ database, callLog, rangeRows: 3, onProgress, ...more })), reports }
    }
    const waits = { retired: { length: 0 }, waiting: [{ reason: 'the call log is being rebuilt' }] }
    t.match(await rebuild(), { rows: 5, dropped: 0, reports: [waits, waits] })
    // As a session that is lost does.
    const unclaimed = { ...database, callCopy: { ...database.callCopy, claimRebuild: async () => true } }
    await t.rejects(rebuild({ database: unclaimed }), { message: /a month was taken away meanwhile/i })
    t.equal(await bench.copied(), 5, 'the log stays as it was')
    t.match(await rebuild(), { rows: 5, dropped: 0 })
    t.equal(await bench.copied(), 5)
  })
})
