/** Calls whose usage rows retention has taken away stay in the call log, are not compared, and outlive a rebuild. */
import t, { type Test } from 'tap'
import { type LogRebuildDeps, rebuildLog } from '../../../pipelines/call-log/rebuild.ts'
import type { RetirementReport } from '../../../src/postgres/partitions/retire.ts'
import { CopyBench } from './usage-copy-support.ts'

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
    (await database.audits.verifyWallets(callLog)).differences.filter(({ kind }) => /^(log|day)_/.test(kind))
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
