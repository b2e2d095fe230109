import t from 'tap'
import { overRounds, type Timing } from '../../../bench/logs/queries/measure.ts'

const round = (p50Ms: number, p99Ms: number, first: Timing['first'] = null): Timing => ({
  p50Ms,
  p99Ms,
  maxMs: p99Ms,
  samples: 100,
  rows: 50,
  first,
})

t.test('a disturbance in one round of three decides nothing, and is not forgotten', async (t) => {
  const timing = overRounds([round(16, 30), round(40, 900), round(17, 31)])
  t.same(timing, { p50Ms: 17, p99Ms: 31, maxMs: 900, samples: 300, rows: 50, first: null })
})

t.test('what is slow in two rounds is slow', async (t) => {
  t.match(overRounds([round(16, 60), round(17, 30), round(15, 55)]), { p99Ms: 55, maxMs: 60 })
})

t.test('the time to the first rows, where it was taken', async (t) => {
  const first = (p99Ms: number) => ({ p50Ms: 1, p99Ms, maxMs: p99Ms })
  t.match(overRounds([round(1, 1, first(3)), round(1, 1, first(9)), round(1, 1, first(5))]), {
    first: { p50Ms: 1, p99Ms: 5, maxMs: 9 },
  })
})
