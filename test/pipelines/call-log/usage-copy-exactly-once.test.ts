import { once } from 'node:events'
import t from 'tap'
import type { CopierEvent } from '../../../pipelines/call-log/usage-copy.ts'
import { until } from '../../support/eventually.ts'
import { CopyBench, type KillPoint } from './usage-copy-support.ts'

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
