/**
 * Counts the outcomes of attempts at each channel: in all and within the last minutes, with the last error and latencies.
 */
import type { AttemptOutcome } from '../../../schemas/config/channel-report.ts'

const RECENT_MINUTES = 5
const MS_PER_MINUTE = 60_000
/** Latencies that the percentiles are of. */
const KEPT_LATENCIES = 128

/** Reason of a refused or failed attempt. */
export interface ChannelError {
  readonly code: string
  readonly message: string
}

interface Minute {
  index: number
  attempts: number
  failures: number
}

export class ChannelActivity {
  /** By outcome. */
  readonly totals: Record<AttemptOutcome, number> = { success: 0, refused: 0, failed: 0, abandoned: 0 }
  /** Attempts that are under way. */
  inFlight = 0
  lastError: (ChannelError & { readonly at: number }) | null = null
  /** A ring buffer: minute `m` is at `m` modulo its length. */
  readonly #minutes: Minute[] = Array.from({ length: RECENT_MINUTES }, () => ({
    index: -1,
    attempts: 0,
    failures: 0,
  }))

  /** A ring buffer of milliseconds. */
  readonly #latencies = new Float64Array(KEPT_LATENCIES)
  #latencyCount = 0

  /** Notes the latency of a successful attempt, milliseconds. */
  noteTime(ms: number): void {
    this.#latencies[this.#latencyCount++ % KEPT_LATENCIES] = ms
  }

  /** Returns a percentile of the last latencies, in whole milliseconds; null before any. `share` is in [0, 1]. */
  latency(share: number): number | null {
    const kept = this.#latencies.slice(0, Math.min(this.#latencyCount, KEPT_LATENCIES)).sort()
    return kept.length === 0 ? null : Math.round(kept[Math.ceil(share * kept.length) - 1]!)
  }

  /** @param now epoch milliseconds */
  record(outcome: AttemptOutcome, now: number, error?: ChannelError): void {
    this.totals[outcome]++
    if (error !== undefined) this.lastError = { code: error.code, message: error.message, at: now }
    // A client that left is no evidence about the channel.
    if (outcome === 'abandoned') return
    const index = Math.floor(now / MS_PER_MINUTE)
    const minute = this.#minutes[index % RECENT_MINUTES]!
    if (minute.index !== index) Object.assign(minute, { index, attempts: 0, failures: 0 })
    minute.attempts++
    if (outcome === 'failed') minute.failures++
  }

  recent(now: number): { attempts: number; failures: number } {
    const since = Math.floor(now / MS_PER_MINUTE) - RECENT_MINUTES
    const minutes = this.#minutes.filter(({ index }) => index > since)
    return {
      attempts: minutes.reduce((sum, { attempts }) => sum + attempts, 0),
      failures: minutes.reduce((sum, { failures }) => sum + failures, 0),
    }
  }
}
