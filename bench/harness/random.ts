/** A seeded random number generator (mulberry32). The same seed gives the same numbers. */
export class Random {
  #state: number

  constructor(seed: number) {
    this.#state = seed >>> 0
  }

  /** Returns a number from 0 up to, not including, 1. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let mixed = this.#state
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }

  /** Returns an integer from `low` up to, not including, `high`. */
  between(low: number, high: number): number {
    return low + Math.floor(this.next() * (high - low))
  }

  /** Returns one of the values. Throws RangeError for an empty list. */
  pick<T>(values: readonly T[]): T {
    if (values.length === 0) throw new RangeError('nothing to pick from')
    return values[this.between(0, values.length)]!
  }

  /** Returns the values in random order. */
  shuffle<T>(values: Iterable<T>): T[] {
    const mixed = [...values]
    for (let at = mixed.length - 1; at > 0; at--) {
      const other = this.between(0, at + 1)
      ;[mixed[at], mixed[other]] = [mixed[other]!, mixed[at]!]
    }
    return mixed
  }
}
