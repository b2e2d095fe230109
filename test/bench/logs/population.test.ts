import t from 'tap'
import { Random } from '../../../bench/harness/random.ts'
import { quantilesOf } from '../../../bench/harness/statistics.ts'
import {
  ACCOUNTS,
  keyId,
  LARGEST_ACCOUNT_SHARE,
  MODELS,
  makeAccounts,
} from '../../../bench/logs/rows/population.ts'
import { ALIAS_RANGE, aliasTable, sharesFrom } from '../../../bench/logs/rows/skew.ts'

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0)
const near = (value: number, wanted: number): boolean => Math.abs(value - wanted) < 1e-9

t.test('shares begin where they are to, fall, and are all of it', async (t) => {
  for (const [count, first] of [
    [1_000, 0.1],
    [10, 0.5],
    [2, 0.6],
  ] as const) {
    const shares = sharesFrom(count, first)
    t.equal(shares.length, count)
    t.ok(near(shares[0]!, first), `${shares[0]}`)
    t.ok(near(sum(shares), 1), `${sum(shares)}`)
    t.ok(shares.every((share, rank) => rank === 0 || share < shares[rank - 1]!))
  }
})

t.test('shares that cannot be are refused', async (t) => {
  t.throws(() => sharesFrom(10, 0.1), RangeError)
  t.throws(() => sharesFrom(10, 1), RangeError)
  t.throws(() => sharesFrom(1, 0.5), RangeError)
})

/** What share of all draws each slot gets: its own part, and the rest of those that it is the alias of. */
const sharesOfTable = (shares: readonly number[]): number[] => {
  const { thresholds, aliases } = aliasTable(shares)
  const found = shares.map(() => 0)
  thresholds.forEach((threshold, slot) => {
    const own = threshold / ALIAS_RANGE / shares.length
    found[slot]! += own
    found[aliases[slot]!]! += 1 / shares.length - own
  })
  return found
}

t.test('an alias table gives every slot its share', async (t) => {
  const models = MODELS.map(({ share }) => share)
  for (const shares of [
    sharesFrom(ACCOUNTS, LARGEST_ACCOUNT_SHARE),
    models,
    [1],
    [0.5, 0.5],
    [0.999, 0.001],
  ]) {
    const found = sharesOfTable(shares)
    t.ok(
      found.every((share, slot) => near(share, shares[slot]!)),
      `${shares.length} shares`,
    )
  }
})

t.test('the shares of the models are all of it', async (t) => {
  t.ok(near(sum(MODELS.map(({ share }) => share)), 1))
})

t.test('the same seed makes the same accounts, another one others; no id comes twice', async (t) => {
  const accounts = makeAccounts(1)
  t.equal(JSON.stringify(makeAccounts(1)), JSON.stringify(accounts))
  t.not(makeAccounts(2)[0]!.id, accounts[0]!.id)
  t.equal(new Set(accounts.map(({ id }) => id)).size, ACCOUNTS)
  t.match(accounts[0]!.id, /^acc_[0-9A-HJKMNP-TV-Z]{26}$/)
  const keys = accounts.flatMap((account) =>
    Array.from({ length: account.keys }, (_, key) => keyId(account, key)),
  )
  t.equal(new Set(keys).size, keys.length)
  t.match(keys[0], /^key_[0-9A-HJKMNP-TV-Z]{26}$/)
})

t.test('chance is even, stays within its bounds, and is the same for the same seed', async (t) => {
  const random = new Random(7)
  const values = Array.from({ length: 10_000 }, () => random.between(10, 20))
  const again = new Random(7)
  t.same(
    values,
    values.map(() => again.between(10, 20)),
  )
  t.ok(values.every((value) => Number.isInteger(value) && value >= 10 && value < 20))
  const counts = Array.from(
    { length: 10 },
    (_, digit) => values.filter((value) => value === 10 + digit).length,
  )
  t.ok(
    counts.every((count) => count > 850 && count < 1_150),
    counts.join(' '),
  )
  t.throws(() => random.pick([]), RangeError)
})

t.test('quantiles are of the times as numbers, in whatever order they came', async (t) => {
  const times = Array.from({ length: 200 }, (_, i) => 200 - i)
  t.same(quantilesOf(times), { p50Ms: 100, p99Ms: 198, maxMs: 200 })
  t.same(times[0], 200, 'the list stays as it is')
  t.same(quantilesOf([9, 100, 20]), { p50Ms: 20, p99Ms: 100, maxMs: 100 })
})
