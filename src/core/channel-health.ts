/**
 * Which channels are set aside because they failed. A channel that fails five times in a row rests for 30 s x the
 * number of times it had to; then one call at a time probes it. Each gateway process judges for itself.
 */

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

export class ChannelHealth {
  readonly #states = new Map<string, State>()
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

  /** The channel did its work: also when it refused what was the caller's own mistake. */
  worked(channelId: string): void {
    if (this.#states.size > 0) this.#states.delete(channelId)
  }

  failed(channelId: string): void {
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
    const state = this.#states.get(channelId)
    if (state !== undefined) state.probeSince = null
  }

  #isProbed(state: State): boolean {
    return state.probeSince !== null && this.#now() - state.probeSince < PROBE_BOUND_MS
  }
}
