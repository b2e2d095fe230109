/** Metrics of channels: the outcomes of their attempts, their circuit breakers, and what operators set them to. */
import {
  ATTEMPT_OUTCOMES,
  type AttemptOutcome,
  type BreakerState,
  type ChannelState,
} from '../../schemas/config/channel-report.ts'
import type { Register } from './register.ts'

/** Counts of one channel in a process. */
export interface ChannelCounts {
  readonly channel: string
  readonly state: ChannelState
  readonly breaker: BreakerState
  /** Attempts that are under way. */
  readonly inFlight: number
  readonly totals: Readonly<Record<AttemptOutcome, number>>
  /** Keys of a channel that has several, by their place in the configuration. */
  readonly keys: readonly { readonly position: number; readonly isResting: boolean }[]
}

const BREAKER_VALUE: Readonly<Record<BreakerState, number>> = { closed: 0, 'half-open': 0.5, open: 1 }

/** @param read called at each scrape */
export function registerChannels(register: Register, read: () => readonly ChannelCounts[]): void {
  register(
    'tollgate_channel_attempts_total',
    'Attempts at channels: success, refused (the request was at fault), failed (the channel was), abandoned.',
    'counter',
    () =>
      read().flatMap(({ channel, totals }) =>
        ATTEMPT_OUTCOMES.filter((outcome) => totals[outcome] > 0).map((outcome) => ({
          labels: { channel, outcome },
          value: totals[outcome],
        })),
      ),
  )
  register(
    'tollgate_channel_breaker_open',
    'The circuit breaker of a channel, in the process where it is worst: 0 closed, 0.5 half-open, 1 open.',
    'gauge',
    () => read().map(({ channel, breaker }) => ({ labels: { channel }, value: BREAKER_VALUE[breaker] })),
    'max',
  )
  register(
    'tollgate_channel_held',
    '1 while an operator keeps new calls from a channel (paused or draining), else 0.',
    'gauge',
    () => read().map(({ channel, state }) => ({ labels: { channel }, value: Number(state !== 'active') })),
    'max',
  )
  register(
    'tollgate_channel_key_resting',
    '1 while a key of a channel with several rests because the upstream refused it, else 0.',
    'gauge',
    () =>
      read().flatMap(({ channel, keys }) =>
        keys.map(({ position, isResting }) => ({
          labels: { channel, position: String(position) },
          value: Number(isResting),
        })),
      ),
    'max',
  )
  register('tollgate_channel_in_flight', 'Attempts at channels that are under way.', 'gauge', () =>
    read().map(({ channel, inFlight }) => ({ labels: { channel }, value: inFlight })),
  )
}
