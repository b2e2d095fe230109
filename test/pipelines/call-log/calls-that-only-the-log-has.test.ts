/** Calls that PostgreSQL lost and the log still has: booked once, and never deleted unasked. */
import t from 'tap'
import { type LogRebuildDeps, rebuildLog } from '../../../pipelines/call-log/rebuild.ts'
import { findUnbooked } from '../../../pipelines/call-log/unbooked.ts'
import { usageCopier } from '../../../pipelines/call-log/usage-copy.ts'
import { runAct } from '../../../pipelines/management/act.ts'
import { commandCaller } from '../../../pipelines/management/caller.ts'
import { callLogActs } from '../../../pipelines/management/calls/call-log.ts'
import { command, noEngines } from '../../src/cli/support.ts'
import { CopyBench } from './usage-copy-support.ts'

const [importAct] = callLogActs
const LOST = 7

t.test('calls that only the log has', async (t) => {
  const bench = await CopyBench.open(t)
  const { callLog, client, database, sql, account } = bench
  const importLog = (dry_run: boolean) =>
    runAct(
      importAct!,
      { dry_run },
      {
        database,
        deps: { callLog },
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
      { seq: 1, created_at: '2026-01-01T00:00:00.000Z', latency_ms: 5, error_code: 'x', error_message: null },
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
      withCallLog: <T>(work: (books: { database: typeof database; callLog: typeof callLog }) => Promise<T>) =>
        work({ database, callLog }),
      confirm: async (question: string) => {
        asked.push(question)
        return false
      },
    }
    const shown = await command(['wallet', 'import-log'], wiring)
    t.match(shown.stdout, /^only the call log has 7 calls of 1 account, 0\.000007 credits\n/)
    t.match(shown.stdout, /nothing was booked: name --book\n$/)
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
