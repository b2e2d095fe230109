/**
 * Skewed shares of calls by Zipf's law, with the exponent that gives the first its share, and the alias table that
 * selects a share by a uniform draw.
 */

const BISECTIONS = 60

const zipf = (count: number, exponent: number): number[] => {
  const weights = Array.from({ length: count }, (_, rank) => (rank + 1) ** -exponent)
  const sum = weights.reduce((total, weight) => total + weight, 0)
  return weights.map((weight) => weight / sum)
}

/** Returns shares that fall by Zipf's law from `first` and add up to 1. Throws RangeError where there are none. */
export const sharesFrom = (count: number, first: number): number[] => {
  if (!(count >= 2 && first > 1 / count && first < 1))
    throw new RangeError(`${count} shares cannot begin at ${first}`)
  let low = 0
  let high = 50
  for (let step = 0; step < BISECTIONS; step++) {
    const middle = (low + high) / 2
    if (zipf(count, middle)[0]! < first) low = middle
    else high = middle
  }
  return zipf(count, high)
}

/**
 * Walker's alias table: draw a slot and a number below 2^32; select the slot where the number is below its threshold,
 * else its alias. Slots count from 0.
 */
interface AliasTable {
  readonly thresholds: number[]
  readonly aliases: number[]
}

export const ALIAS_RANGE = 2 ** 32

export const aliasTable = (shares: readonly number[]): AliasTable => {
  const size = shares.length
  const left = shares.map((share) => share * size)
  const thresholds = new Array<number>(size).fill(ALIAS_RANGE - 1)
  const aliases = left.map((_, slot) => slot)
  const small = left.flatMap((share, slot) => (share < 1 ? [slot] : []))
  const large = left.flatMap((share, slot) => (share < 1 ? [] : [slot]))
  while (small.length > 0 && large.length > 0) {
    const poor = small.pop()!
    const rich = large.pop()!
    thresholds[poor] = Math.floor(left[poor]! * ALIAS_RANGE)
    aliases[poor] = rich
    left[rich]! -= 1 - left[poor]!
    if (left[rich]! < 1) small.push(rich)
    else large.push(rich)
  }
  return { thresholds, aliases }
}
