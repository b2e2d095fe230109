/**
 * Watches open streams for silence. One coarse ticker checks all of them, so that a chunk needs neither a timer nor
 * the clock.
 */
import { performance } from 'node:perf_hooks'

/** So long a client waits without a byte before it gets the head of its stream and a comment. */
const FIRST_SILENCE_MS = 5_000
/** So long a stream that has begun is silent before it gets another comment. */
const LATER_SILENCE_MS = 15_000
/** By so much a comment may be late. */
const TICK_MS = 1_000

export interface SilenceTimes {
  readonly firstMs: number
  readonly laterMs: number
  readonly tickMs: number
}

const TIMES: SilenceTimes = { firstMs: FIRST_SILENCE_MS, laterMs: LATER_SILENCE_MS, tickMs: TICK_MS }

export interface WatchedStream {
  /** @param now milliseconds on the clock of `performance.now()` */
  tick(now: number, times: SilenceTimes): void
}

export class SilenceWatch {
  readonly #times: SilenceTimes
  readonly #streams = new Set<WatchedStream>()
  #timer: NodeJS.Timeout | null = null

  constructor(times = TIMES) {
    this.#times = times
  }

  add(stream: WatchedStream): void {
    this.#streams.add(stream)
    this.#timer ??= setInterval(() => this.#tick(), this.#times.tickMs).unref()
  }

  delete(stream: WatchedStream): void {
    this.#streams.delete(stream)
  }

  #tick(): void {
    if (this.#streams.size === 0 && this.#timer !== null) {
      clearInterval(this.#timer)
      this.#timer = null
    }
    const now = performance.now()
    for (const stream of this.#streams) stream.tick(now, this.#times)
  }
}
