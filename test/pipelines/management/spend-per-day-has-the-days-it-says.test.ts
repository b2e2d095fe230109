/** Home says what an account spends per day, and how long its balance lasts, of the days that it names. */
import t from 'tap'
import { runwayDays, spendRate } from '../../../pipelines/management/calls/spend-rate.ts'
import { parseCredits, printCredits } from '../../../schemas/money.ts'

const NOW = Date.parse('2026-03-15T13:00:00Z')
const BALANCE = parseCredits('100')

const rateOf = (costs: Readonly<Record<string, string>>) => {
  const rows = Object.entries(costs).map(([day, cost]) => ({ day, cost: parseCredits(cost) }))
  const rate = spendRate(rows, NOW)
  return { perDay: printCredits(rate.perDay), days: rate.days, lasts: runwayDays(BALANCE, rate) }
}

t.test('spend per day', async (t) => {
  t.same(rateOf({}), { perDay: '0', days: 0, lasts: null }, 'nothing was spent')
  t.same(rateOf({ '2026-03-15': '4' }), { perDay: '4', days: 0, lasts: 25 }, 'the first day counts so far')
  t.same(
    rateOf({ '2026-03-14': '10', '2026-03-15': '4' }),
    { perDay: '10', days: 1, lasts: 10 },
    'on the second day the first is not divided by seven, and today, which is not over, is left out',
  )
  t.same(rateOf({ '2026-03-12': '6', '2026-03-14': '3' }), { perDay: '3', days: 3, lasts: 33.3 })
  t.same(rateOf({ '2026-03-08': '7', '2026-03-14': '7' }), { perDay: '2', days: 7, lasts: 50 })
  t.same(
    rateOf({ '2026-02-20': '70', '2026-03-14': '7' }),
    { perDay: '1', days: 7, lasts: 100 },
    'days without a call count',
  )
  t.same(
    rateOf({ '2026-02-20': '70', '2026-03-15': '5' }),
    { perDay: '5', days: 0, lasts: 20 },
    'after a week without a cost today counts',
  )
  t.same(
    rateOf({ '2026-03-10': '0', '2026-03-14': '5', '2026-03-15': '0' }),
    { perDay: '5', days: 1, lasts: 20 },
    'calls that cost nothing do not begin the days',
  )
})
