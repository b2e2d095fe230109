/** Statistics over samples, without interpolation. */

/** Returns the nearest-rank quantile of ascending `sorted`, `q` in 0..1. Returns NaN for an empty list. */
export const quantile = (sorted: ArrayLike<number>, q: number): number => {
  if (sorted.length === 0) return Number.NaN
  const rank = Math.ceil(q * sorted.length)
  return sorted[Math.min(Math.max(rank, 1), sorted.length) - 1]!
}

/** Returns the median; of an even number of values the mean of the middle two. Returns NaN for an empty list. */
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

/** Returns NaN for an empty list. */
export const computeQuantiles = (valuesMs: readonly number[]): Quantiles => {
  const sorted = [...valuesMs].sort((a, b) => a - b)
  return { p50Ms: quantile(sorted, 0.5), p99Ms: quantile(sorted, 0.99), maxMs: quantile(sorted, 1) }
}

/** Keeps all samples up to a fixed number. Sorting 50,000 of them takes a millisecond, after the measurement. */
export class Samples {
  readonly #values: Float64Array
  #count = 0

  constructor(capacity: number) {
    this.#values = new Float64Array(capacity)
  }

  get count(): number {
    return this.#count
  }

  /** Throws RangeError beyond the capacity: a dropped sample would hide the slowest calls. */
  add(value: number): void {
    if (this.#count === this.#values.length) throw new RangeError(`more than ${this.#count} samples`)
    this.#values[this.#count++] = value
  }

  /** Returns the requested quantiles, in order. */
  quantiles(...qs: number[]): number[] {
    const sorted = this.#values.slice(0, this.#count).sort()
    return qs.map((q) => quantile(sorted, q))
  }
}
