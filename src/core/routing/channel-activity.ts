/** Counts the outcomes of attempts at each channel: in all and within the last minutes, with the last error. */
import type { AttemptOutcome } from '../../../schemas/config/channel-report.ts'

export const RECENT_MINUTES = 5
const MS_PER_MINUTE = 60_000

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
  lastError: (ChannelError & { readonly at: number }) | null = null
  /** A ring buffer: minute `m` is at `m` modulo its length. */
  readonly #minutes: Minute[] = Array.from({ length: RECENT_MINUTES }, () => ({
    index: -1,
    attempts: 0,
    failures: 0,
  }))

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
