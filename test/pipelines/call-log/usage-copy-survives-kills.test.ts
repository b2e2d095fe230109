/**
 * ClickHouse and the copiers are killed, one at a time and together, while calls are booked without pause: the log, its
 * sums by day and the ledger agree afterwards.
 */
import type { ChildProcess } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { seedNote, seeds, TIMEOUT_MS } from '../../end-to-end/chaos/plan.ts'
import { Random } from '../../simulation/random.ts'
import { until } from '../../support/eventually.ts'
import { CopyBench } from './usage-copy-support.ts'

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
