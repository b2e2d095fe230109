/** Counts requests of this process that were admitted and not yet reported to the others. */
import type { LimitReport } from '../../schemas/accounts/limits.ts'
import { WINDOW_MS } from '../core/limits/rate-window.ts'

const MS_PER_SECOND = 1000

interface Second {
  /** The process that admitted them. */
  readonly by: string
  /** When the last of them was admitted. */
  at: number
  readonly counts: Map<string, number>
}

const toSecond = (time: number): number => Math.floor(time / MS_PER_SECOND)

export class AdmissionCounter {
  #seconds: Second[] = []

  add(subject: string, by: string, now: number): void {
    let second = this.#seconds.findLast((known) => known.by === by)
    if (second === undefined || toSecond(second.at) !== toSecond(now)) {
      second = { by, at: now, counts: new Map() }
      this.#seconds.push(second)
    }
    second.at = now
    second.counts.set(subject, (second.counts.get(subject) ?? 0) + 1)
  }

  /** Removes and returns all counts, to be reported to the other processes. */
  take(now: number): LimitReport['admitted'] {
    this.prune(now)
    const rows = this.#seconds.map(({ by, at, counts }) => ({
      by,
      age_ms: Math.max(0, now - at),
      counts: [...counts],
    }))
    this.#seconds = []
    return rows
  }

  /** Drops what has left the window. */
  prune(now: number): void {
    this.#seconds = this.#seconds.filter(({ at }) => now - at < WINDOW_MS)
  }
}
