/**
 * Circuit breakers, one a channel. Five failures in a row open a breaker for 30 s x the number of times it opened since
 * the channel last worked; then it is half-open, and one call at a time probes the channel. Gateway
 * processes do not share breakers.
 */
import type { BreakerState, ChannelReport } from '../../../schemas/config/channel-report.ts'
import { ChannelActivity, type ChannelError } from './channel-activity.ts'

export const FAILURES_IN_A_ROW = 5
export const OPEN_MS = 30_000
/** The longest time for which a breaker stays open. */
export const MAX_OPEN_MS = 600_000
/** A probe that never reported its end blocks the next one for this long. */
export const MAX_PROBE_MS = 200_000

interface State {
  failuresInARow: number
  /** Number of times that the breaker opened since the channel last worked. */
  openings: number
  openUntil: number
  probeSince: number | null
}

const closedState = (): State => ({ failuresInARow: 0, openings: 0, openUntil: 0, probeSince: null })

export class ChannelHealth {
  readonly #states = new Map<string, State>()
  readonly #activity = new Map<string, ChannelActivity>()
  readonly #now: () => number

  /** @param now returns milliseconds */
  constructor(now: () => number = Date.now) {
    this.#now = now
  }

  breaker(channelId: string): BreakerState {
    const state = this.#states.get(channelId)
    if (state === undefined || state.openings === 0) return 'closed'
    return this.#now() < state.openUntil || this.#isProbed(state) ? 'open' : 'half-open'
  }

  /** Returns the candidates whose breaker is not open; all of them where every breaker is. */
  available<T>(candidates: readonly T[], idOf: (candidate: T) => string): readonly T[] {
    if (this.#states.size === 0) return candidates
    const callable = candidates.filter((candidate) => this.breaker(idOf(candidate)) !== 'open')
    return callable.length > 0 ? callable : candidates
  }

  /** Notes that a call goes to the channel. Where its breaker is half-open the call is the probe: no other goes meanwhile. */
  began(channelId: string): void {
    const state = this.#states.get(channelId)
    if (state !== undefined && state.openings > 0 && this.breaker(channelId) === 'half-open')
      state.probeSince = this.#now()
  }

  /** Closes the breaker: a call succeeded. */
  succeeded(channelId: string): void {
    this.#activityOf(channelId).record('success', this.#now())
    this.#close(channelId)
  }

  /** Closes the breaker: the channel refused a mistake of the caller, so it works. */
  refused(channelId: string, error?: ChannelError): void {
    this.#activityOf(channelId).record('refused', this.#now(), error)
    this.#close(channelId)
  }

  failed(channelId: string, error?: ChannelError): void {
    this.#activityOf(channelId).record('failed', this.#now(), error)
    const state = this.#states.get(channelId) ?? closedState()
    this.#states.set(channelId, state)
    state.failuresInARow++
    const wasProbe = state.openings > 0 && state.probeSince !== null
    state.probeSince = null
    if (!wasProbe && state.failuresInARow < FAILURES_IN_A_ROW) return
    // Calls that were under way when the breaker opened are no new evidence.
    if (!wasProbe && this.#now() < state.openUntil) return
    state.openings++
    state.failuresInARow = 0
    state.openUntil = this.#now() + Math.min(MAX_OPEN_MS, OPEN_MS * state.openings)
  }

  /** Records a call that is no evidence about the channel: its client left. */
  abandoned(channelId: string): void {
    this.#activityOf(channelId).record('abandoned', this.#now())
    const state = this.#states.get(channelId)
    if (state !== undefined) state.probeSince = null
  }

  /** Returns the activity of every channel that was called. */
  activity(): ReadonlyMap<string, ChannelActivity> {
    return this.#activity
  }

  /** Returns a report of each channel that this process has called. */
  reports(): ChannelReport[] {
    const now = this.#now()
    return [...this.#activity].map(([channel, activity]) => {
      const { attempts, failures } = activity.recent(now)
      const breaker = this.breaker(channel)
      const error = activity.lastError
      return {
        channel,
        breaker,
        open_until: breaker === 'open' ? timeOf(this.#states.get(channel)!.openUntil) : null,
        recent_attempts: attempts,
        recent_failures: failures,
        last_error: error && { at: timeOf(error.at), code: error.code, message: error.message },
      }
    })
  }

  #activityOf(channelId: string): ChannelActivity {
    const known = this.#activity.get(channelId)
    if (known !== undefined) return known
    const activity = new ChannelActivity()
    this.#activity.set(channelId, activity)
    return activity
  }

  #close(channelId: string): void {
    if (this.#states.size > 0) this.#states.delete(channelId)
  }

  #isProbed(state: State): boolean {
    return state.probeSince !== null && this.#now() - state.probeSince < MAX_PROBE_MS
  }
}

const timeOf = (epochMs: number): string => new Date(epochMs).toISOString()
