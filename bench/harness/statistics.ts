/** Plain statistics over samples. Nothing is interpolated: every answer is a sample that was seen. */

/** The nearest-rank quantile of ascending `sorted`; `q` in 0..1. An empty list has none: NaN. */
export const quantile = (sorted: ArrayLike<number>, q: number): number => {
  if (sorted.length === 0) return Number.NaN
  const rank = Math.ceil(q * sorted.length)
  return sorted[Math.min(Math.max(rank, 1), sorted.length) - 1]!
}

/** The median; of an even number of values the mean of the middle two. An empty list has none: NaN. */
export const median = (values: readonly number[]): number => {
  if (values.length === 0) return Number.NaN
  const sorted = [...values].sort((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2
}

/** Of times in milliseconds. */
export interface Quantiles {
  readonly p50Ms: number
  readonly p99Ms: number
  readonly maxMs: number
}

/** None for an empty list: NaN. */
export const quantilesOf = (valuesMs: readonly number[]): Quantiles => {
  const sorted = [...valuesMs].sort((a, b) => a - b)
  return { p50Ms: quantile(sorted, 0.5), p99Ms: quantile(sorted, 0.99), maxMs: quantile(sorted, 1) }
}

/** Samples of a known greatest number, kept whole: sorting 50,000 of them takes a millisecond, after the clock. */
export class Samples {
  readonly #values: Float64Array
  #count = 0

  constructor(capacity: number) {
    this.#values = new Float64Array(capacity)
  }

  get count(): number {
    return this.#count
  }

  /** Throws RangeError beyond the capacity: a dropped sample would flatter the tail. */
  add(value: number): void {
    if (this.#count === this.#values.length) throw new RangeError(`more than ${this.#count} samples`)
    this.#values[this.#count++] = value
  }

  /** The quantiles asked for, in order. */
  quantiles(...qs: number[]): number[] {
    const sorted = this.#values.slice(0, this.#count).sort()
    return qs.map((q) => quantile(sorted, q))
  }
}
