/**
 * Which channels are set aside because they failed. A channel that fails five times in a row rests for 30 s x the
 * number of times it had to; then one call at a time probes it. Each gateway process judges for itself.
 */
import type { BreakerState, ChannelReport } from '../../../schemas/config/channel-report.ts'
import { ChannelActivity, type ChannelError } from './channel-activity.ts'

export const FAILURES_IN_A_ROW = 5
export const REST_MS = 30_000
/** No channel rests longer, however often it failed. */
export const MAX_REST_MS = 600_000
/** A probe whose end was never told does not block the next one for ever. */
export const PROBE_BOUND_MS = 200_000

interface State {
  failuresInARow: number
  /** How often it was set aside since it last worked. */
  rests: number
  restsUntil: number
  probeSince: number | null
}

const fresh = (): State => ({ failuresInARow: 0, rests: 0, restsUntil: 0, probeSince: null })

export type ChannelCondition = 'up' | 'resting' | 'probing'

const BREAKER: Readonly<Record<ChannelCondition, BreakerState>> = {
  up: 'closed',
  resting: 'open',
  probing: 'half-open',
}

export class ChannelHealth {
  readonly #states = new Map<string, State>()
  readonly #activity = new Map<string, ChannelActivity>()
  readonly #now: () => number

  /** `now` in milliseconds. */
  constructor(now: () => number = Date.now) {
    this.#now = now
  }

  condition(channelId: string): ChannelCondition {
    const state = this.#states.get(channelId)
    if (state === undefined || state.rests === 0) return 'up'
    return this.#now() < state.restsUntil || this.#isProbed(state) ? 'resting' : 'probing'
  }

  /** Those of `channelIds` that may be called now. When all of them rest, all may: the last one is never set aside. */
  available<T>(candidates: readonly T[], idOf: (candidate: T) => string): readonly T[] {
    if (this.#states.size === 0) return candidates
    const open = candidates.filter((candidate) => this.condition(idOf(candidate)) !== 'resting')
    return open.length > 0 ? open : candidates
  }

  /** A call goes to the channel. If that is its probe, no other call probes it meanwhile. */
  began(channelId: string): void {
    const state = this.#states.get(channelId)
    if (state !== undefined && state.rests > 0 && this.condition(channelId) === 'probing')
      state.probeSince = this.#now()
  }

  /** The channel did its work. */
  worked(channelId: string): void {
    this.#activityOf(channelId).ended('success', this.#now())
    this.#close(channelId)
  }

  /** The channel refused what was the caller's own mistake: it works. */
  refused(channelId: string, error?: ChannelError): void {
    this.#activityOf(channelId).ended('refused', this.#now(), error)
    this.#close(channelId)
  }

  failed(channelId: string, error?: ChannelError): void {
    this.#activityOf(channelId).ended('failed', this.#now(), error)
    const state = this.#states.get(channelId) ?? fresh()
    this.#states.set(channelId, state)
    state.failuresInARow++
    const wasProbe = state.rests > 0 && state.probeSince !== null
    state.probeSince = null
    if (!wasProbe && state.failuresInARow < FAILURES_IN_A_ROW) return
    // Calls that were on their way when it was set aside say nothing new.
    if (!wasProbe && this.#now() < state.restsUntil) return
    state.rests++
    state.failuresInARow = 0
    state.restsUntil = this.#now() + Math.min(MAX_REST_MS, REST_MS * state.rests)
  }

  /** The call ended without a word about the channel: its client went away. */
  abandoned(channelId: string): void {
    this.#activityOf(channelId).ended('abandoned', this.#now())
    const state = this.#states.get(channelId)
    if (state !== undefined) state.probeSince = null
  }

  /** Every channel that was called. */
  activity(): ReadonlyMap<string, ChannelActivity> {
    return this.#activity
  }

  breaker(channelId: string): BreakerState {
    return BREAKER[this.condition(channelId)]
  }

  /** What this process sees of each channel that it has called. */
  reports(): ChannelReport[] {
    const now = this.#now()
    return [...this.#activity].map(([channel, activity]) => {
      const { attempts, failures } = activity.recent(now)
      const breaker = this.breaker(channel)
      const error = activity.lastError
      return {
        channel,
        breaker,
        open_until: breaker === 'open' ? timeOf(this.#states.get(channel)!.restsUntil) : null,
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
    return state.probeSince !== null && this.#now() - state.probeSince < PROBE_BOUND_MS
  }
}

const timeOf = (epochMs: number): string => new Date(epochMs).toISOString()
