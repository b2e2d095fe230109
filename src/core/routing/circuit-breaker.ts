/**
 * Circuit breakers, one a channel. Five failures in a row open a breaker for 30 s x the number of times it opened since
 * the channel last worked; then it is half-open, and one call at a time probes the channel. Gateway
 * processes do not share breakers.
 */
import type {
  BreakerChange,
  BreakerState,
  ChannelReport,
  ChannelState,
  HeldState,
} from '../../../schemas/config/channel-report.ts'
import { stillHolds } from '../still-holds.ts'
import { type Route, routeName } from './catalog.ts'
import { ChannelActivity, type ChannelError } from './channel-activity.ts'
import { KeyPools } from './key-pools.ts'

export const FAILURES_IN_A_ROW = 5
export const OPEN_MS = 30_000
/** The longest time for which a breaker stays open. */
const MAX_OPEN_MS = 600_000
/** A probe that never reported its end blocks the next one for this long. */
const MAX_PROBE_MS = 200_000

/** Weight of the newest call in the average. */
const NEWEST_SHARE = 0.2
/** Routes that were never measured come first, so that they are. */
const UNMEASURED = -1

/** Averages the time to the first byte of routes whose model asks for the least; later calls count more. */
class RouteLatencies {
  /** Milliseconds by channel and the upstream's name of the model. */
  readonly #averages = new Map<string, number>()

  noteTime(route: Route, ms: number): void {
    const name = routeName(route)
    const average = this.#averages.get(name) ?? ms
    this.#averages.set(name, average + (ms - average) * NEWEST_SHARE)
  }

  readonly of = (route: Route): number => this.#averages.get(routeName(route)) ?? UNMEASURED
}

interface State {
  failuresInARow: number
  /** Number of times that the breaker opened since the channel last worked. */
  openings: number
  openUntil: number
  probeSince: number | null
}

/** Changes of one breaker that are remembered. */
const KEPT_CHANGES = 20
const MEDIAN = 0.5
const P99 = 0.99

const openMs = ({ openings }: State): number => Math.min(MAX_OPEN_MS, OPEN_MS * openings)
const closedState = (): State => ({ failuresInARow: 0, openings: 0, openUntil: 0, probeSince: null })

export class ChannelHealth {
  readonly #states = new Map<string, State>()
  readonly #activity = new Map<string, ChannelActivity>()
  readonly #history = new Map<string, BreakerChange[]>()
  #held: ReadonlyMap<string, HeldState> = new Map()
  readonly #now: () => number

  readonly keys: KeyPools
  readonly latencies = new RouteLatencies()

  /** @param now returns milliseconds */
  constructor(now: () => number = Date.now) {
    this.#now = now
    this.keys = new KeyPools(now)
  }

  readBreaker(channelId: string): BreakerState {
    const state = this.#states.get(channelId)
    if (state === undefined || state.openings === 0) return 'closed'
    return this.#isOpen(state) || this.#isProbed(state) ? 'open' : 'half-open'
  }

  /** Keeps new calls from these channels, and from no others. */
  hold(held: ReadonlyMap<string, HeldState>): void {
    this.#held = held
  }

  readState(channelId: string): ChannelState {
    return this.#held.get(channelId) ?? 'active'
  }

  /** Returns the candidates that are neither paused nor draining. */
  listActive<T>(candidates: readonly T[], toId: (candidate: T) => string): readonly T[] {
    if (this.#held.size === 0) return candidates
    return candidates.filter((candidate) => !this.#held.has(toId(candidate)))
  }

  /** Returns the active candidates whose breaker is not open; all active ones where every breaker is. */
  listAvailable<T>(candidates: readonly T[], toId: (candidate: T) => string): readonly T[] {
    const active = this.listActive(candidates, toId)
    if (this.#states.size === 0) return active
    const callable = active.filter((candidate) => this.readBreaker(toId(candidate)) !== 'open')
    return callable.length > 0 ? callable : active
  }

  /** Notes that a call goes to the channel. Where its breaker is half-open the call is the probe: no other goes meanwhile. */
  begin(channelId: string): void {
    this.#findActivity(channelId).inFlight++
    const state = this.#states.get(channelId)
    if (state !== undefined && state.openings > 0 && this.readBreaker(channelId) === 'half-open')
      state.probeSince = this.#now()
  }

  /** Closes the breaker: a call succeeded. `latencyMs` is the time to its first byte. */
  noteSuccess(channelId: string, latencyMs?: number): void {
    const activity = this.#endProbe(channelId)
    activity.record('success', this.#now())
    if (latencyMs !== undefined) activity.noteTime(latencyMs)
    this.#close(channelId)
  }

  /** Closes the breaker: the channel refused a mistake of the caller, so it works. */
  noteRefusal(channelId: string, error?: ChannelError): void {
    this.#endProbe(channelId).record('refused', this.#now(), error)
    this.#close(channelId)
  }

  noteFailure(channelId: string, error?: ChannelError): void {
    this.#endProbe(channelId)
    this.noteFault(channelId, error)
  }

  /** Records a fault of the channel that was found after the end of its attempt. */
  noteFault(channelId: string, error?: ChannelError): void {
    this.#findActivity(channelId).record('failed', this.#now(), error)
    const state = this.#states.get(channelId) ?? closedState()
    this.#states.set(channelId, state)
    state.failuresInARow++
    const wasProbe = state.openings > 0 && state.probeSince !== null
    state.probeSince = null
    if (!wasProbe && state.failuresInARow < FAILURES_IN_A_ROW) return
    // Calls that were under way when the breaker opened are no new evidence.
    if (!wasProbe && this.#isOpen(state)) return
    state.openings++
    state.failuresInARow = 0
    state.openUntil = this.#now() + openMs(state)
    this.#setBreaker(channelId, 'open')
  }

  /** Records a call that is no evidence about the channel: its client left. */
  noteAbandoned(channelId: string): void {
    this.#endProbe(channelId).record('abandoned', this.#now())
    const state = this.#states.get(channelId)
    if (state !== undefined) state.probeSince = null
  }

  /** Returns the activity of every channel that was called. */
  listActivity(): ReadonlyMap<string, ChannelActivity> {
    return this.#activity
  }

  /** Returns a report of each channel that this process has called, or that is held. */
  listReports(): ChannelReport[] {
    const now = this.#now()
    for (const channel of this.#held.keys()) this.#findActivity(channel)
    return [...this.#activity].map(([channel, activity]) => {
      const { attempts, failures } = activity.recent(now)
      const breaker = this.readBreaker(channel)
      const error = activity.lastError
      return {
        channel,
        state: this.readState(channel),
        in_flight: activity.inFlight,
        breaker,
        open_until: breaker === 'open' ? printTime(this.#states.get(channel)!.openUntil) : null,
        recent_attempts: attempts,
        recent_failures: failures,
        latency_p50_ms: activity.latency(MEDIAN),
        latency_p99_ms: activity.latency(P99),
        last_error: error && { at: printTime(error.at), code: error.code, message: error.message },
        history: this.#history.get(channel) ?? [],
        keys: this.keys.report(channel),
      }
    })
  }

  #findActivity(channelId: string): ChannelActivity {
    const known = this.#activity.get(channelId)
    if (known !== undefined) return known
    const activity = new ChannelActivity()
    this.#activity.set(channelId, activity)
    return activity
  }

  /** Returns the activity of a channel of which one attempt less is under way. */
  #endProbe(channelId: string): ChannelActivity {
    const activity = this.#findActivity(channelId)
    activity.inFlight--
    return activity
  }

  #setBreaker(channelId: string, breaker: BreakerState): void {
    const former = this.#history.get(channelId) ?? []
    this.#history.set(channelId, [...former.slice(1 - KEPT_CHANGES), { at: printTime(this.#now()), breaker }])
  }

  #close(channelId: string): void {
    if (this.#states.size === 0) return
    if (this.#states.get(channelId)?.openings) this.#setBreaker(channelId, 'closed')
    this.#states.delete(channelId)
  }

  #isOpen(state: State): boolean {
    return stillHolds(state.openUntil, this.#now(), openMs(state))
  }

  #isProbed({ probeSince }: State): boolean {
    return probeSince !== null && stillHolds(probeSince + MAX_PROBE_MS, this.#now(), MAX_PROBE_MS)
  }
}

const printTime = (epochMs: number): string => new Date(epochMs).toISOString()
