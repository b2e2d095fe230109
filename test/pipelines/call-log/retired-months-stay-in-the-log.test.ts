/** Calls whose usage rows retention has taken away stay in the call log, are not compared, and outlive a rebuild. */
import t from 'tap'
import { rebuildLog } from '../../../pipelines/call-log/rebuild.ts'
import { CopyBench } from './usage-copy-support.ts'

const OLD = Date.now() - 8 * 31 * 86_400_000

t.test('the log has more than PostgreSQL, and no difference', async (t) => {
  const bench = await CopyBench.open(t)
  const { callLog, client, database, sql } = bench
  const countOf = async (): Promise<number> => {
    const answer = await client.query({ query: 'SELECT count() AS n FROM calls', format: 'JSONEachRow' })
    return Number((await answer.json<{ n: string }>())[0]!.n)
  }
  const logDifferences = async () =>
    (await database.verifyWallets(callLog)).differences.filter(({ kind }) => /^(log|day)_/.test(kind))
  await bench.book(3, { submitted_at: OLD, created_at: OLD })
  await bench.book(2, { submitted_at: Date.now(), created_at: Date.now() })
  const copier = await bench.newCopier(t)
  await bench.untilCopied()
  await copier.stop()
  await sql`
    UPDATE partitions SET ends_at = months_later(date_trunc('month', now(), 'UTC'), -4) WHERE name = 'usage_rows_past'`
  const { retired } = await database.retirePartitions({
    months: { usage_rows: 2, ledger_entries: null, audit_entries: null, tasks: null },
    detaches: false,
  })
  t.match(retired, [{ name: 'usage_rows_past', rows: 3n }])
  t.same(await logDifferences(), [])
  t.equal(await countOf(), 5)
  t.same(await rebuildLog({ database, callLog }), { rows: 5, dropped: 0 })
  t.equal(await countOf(), 5)
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
