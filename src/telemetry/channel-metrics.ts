/** Metrics of channels: the outcomes of their attempts, and the states of their circuit breakers. */
import {
  ATTEMPT_OUTCOMES,
  type AttemptOutcome,
  type BreakerState,
} from '../../schemas/config/channel-report.ts'

/** Counts of one channel in a process. */
export interface ChannelCounts {
  readonly channel: string
  readonly breaker: BreakerState
  readonly totals: Readonly<Record<AttemptOutcome, number>>
}

const BREAKER_VALUE: Readonly<Record<BreakerState, number>> = { closed: 0, 'half-open': 0.5, open: 1 }

type Register = (
  name: string,
  help: string,
  type: 'counter' | 'gauge',
  values: () => unknown[],
  aggregator?: 'sum' | 'max',
) => void

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
}
