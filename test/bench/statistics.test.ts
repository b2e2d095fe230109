import t from 'tap'
import { median, quantile, Samples } from '../../bench/harness/statistics.ts'

t.test('a quantile is the nearest rank: always a sample that was seen', async (t) => {
  const hundred = Array.from({ length: 100 }, (_, i) => i + 1)
  t.equal(quantile(hundred, 0.5), 50)
  t.equal(quantile(hundred, 0.99), 99)
  t.equal(quantile(hundred, 0), 1)
  t.equal(quantile(hundred, 1), 100)
  t.equal(quantile([7], 0.99), 7)
  t.ok(Number.isNaN(quantile([], 0.5)))
})

t.test('the median of an even number of values lies between the middle two', async (t) => {
  t.equal(median([9, 1, 5]), 5)
  t.equal(median([4, 1, 3, 2]), 2.5)
  t.ok(Number.isNaN(median([])))
})

t.test('samples are sorted by size, not as text, and never silently dropped', async (t) => {
  const samples = new Samples(3)
  for (const value of [100, 9, 20]) samples.add(value)
  t.same(samples.quantiles(0, 0.5, 1), [9, 20, 100])
  t.throws(() => samples.add(1), RangeError)
  t.equal(samples.count, 3)
})
