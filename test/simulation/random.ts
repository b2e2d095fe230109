/** Numbers that follow from a seed: the same seed, the same run. Mulberry32. */
export class Random {
  #state: number

  constructor(seed: number) {
    this.#state = Math.imul(seed, 0x9e3779b1) >>> 0
  }

  /** At least 0, less than 1. */
  unit(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 0x1_0000_0000
  }

  /** Whole, both ends included. */
  int(from: number, to: number): number {
    return from + Math.floor(this.unit() * (to - from + 1))
  }

  chance(probability: number): boolean {
    return this.unit() < probability
  }

  pick<T>(of: readonly T[]): T {
    return of[this.int(0, of.length - 1)]!
  }
}

/** Returns the seeds that `TOLLGATE_SEED` has, such as `7` or `1-40`; null without it. */
export function readSeeds(): number[] | null {
  const [from, to = from] = process.env.TOLLGATE_SEED?.split('-').map(Number) ?? []
  return from === undefined ? null : Array.from({ length: to! - from + 1 }, (_, at) => from + at)
}
