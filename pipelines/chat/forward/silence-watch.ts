/**
 * Watches open streams for silence. One coarse ticker checks all of them, so that a chunk needs neither a timer nor
 * the clock.
 */
import { performance } from 'node:perf_hooks'
import type { ConfigFile } from '../../../schemas/config/file.ts'
import type { ProtocolAdapter } from '../../../src/protocols/dialect.ts'

/** By so much a comment may be late. */
const TICK_MS = 1_000

const MS_PER_SECOND = 1000

/** Returns the silence that is filled, milliseconds; null for none, as in a native stream of generate-content. */
export function keepAliveOf(
  { keep_alive_seconds: seconds }: Pick<ConfigFile, 'keep_alive_seconds'>,
  { from, to }: ProtocolAdapter,
): number | null {
  const isFilled = seconds !== null && (from !== 'generate-content' || from !== to)
  return isFilled ? seconds * MS_PER_SECOND : null
}

export interface WatchedStream {
  /** @param now milliseconds on the clock of `performance.now()` */
  tick(now: number): void
}

export class SilenceWatch {
  readonly #tickMs: number
  readonly #streams = new Set<WatchedStream>()
  #timer: NodeJS.Timeout | null = null

  constructor(tickMs = TICK_MS) {
    this.#tickMs = tickMs
  }

  add(stream: WatchedStream): void {
    this.#streams.add(stream)
    this.#timer ??= setInterval(() => this.#tick(), this.#tickMs).unref()
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
    for (const stream of this.#streams) stream.tick(now)
  }
}
