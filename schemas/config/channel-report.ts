/** The state of a process and of its channels, in its answer to a survey of all processes. */
import { z } from 'zod'

/** The request that every process answers. */
export const CHANNEL_REPORT_SUBJECT = 'tollgate.channel_reports'

/** Outcome of an attempt at a channel. */
export const ATTEMPT_OUTCOMES = ['success', 'refused', 'failed', 'abandoned'] as const
export type AttemptOutcome = (typeof ATTEMPT_OUTCOMES)[number]

/** The states of a circuit breaker: calls pass, one call at a time tests the channel, calls avoid it. */
export const BREAKER_STATES = ['closed', 'half-open', 'open'] as const
export type BreakerState = (typeof BREAKER_STATES)[number]

/** States of a channel that takes no new calls: calls and tasks that it has go on. A draining one is to be removed. */
const HELD_STATES = ['paused', 'draining'] as const
export type HeldState = (typeof HELD_STATES)[number]
export const CHANNEL_STATES = ['active', ...HELD_STATES] as const
export type ChannelState = (typeof CHANNEL_STATES)[number]

/** A channel that an operator keeps new calls from. */
export interface ChannelHold {
  readonly id: string
  readonly state: HeldState
  /** Actor. */
  readonly createdBy: string
  readonly createdAt: Date
}

const count = z.int().min(0)

const channelError = z.object({
  at: z.iso.datetime(),
  code: z.string(),
  message: z.string(),
})

/** One key of a channel that has several. */
const keyReport = z.object({
  /** From 1 on, in the order of the configuration. */
  position: count,
  /** Null: it is used. */
  resting_until: z.iso.datetime().nullable(),
  /** Calls that the upstream refused for this key. */
  refusals: count,
})
export type KeyReport = z.infer<typeof keyReport>

const breakerChange = z.object({ at: z.iso.datetime(), breaker: z.enum(BREAKER_STATES) })
export type BreakerChange = z.infer<typeof breakerChange>

export const channelReport = z.object({
  channel: z.string(),
  state: z.enum(CHANNEL_STATES),
  /** Attempts that are under way. */
  in_flight: count,
  breaker: z.enum(BREAKER_STATES),
  /** When an open breaker lets the next call through. */
  open_until: z.iso.datetime().nullable(),
  /** Attempts that ended within the last minutes, and how many of them failed by the channel's fault. */
  recent_attempts: count,
  recent_failures: count,
  /** Milliseconds to the first byte, of the last successful attempts; null before any. */
  latency_p50_ms: z.number().nullable(),
  latency_p99_ms: z.number().nullable(),
  last_error: channelError.nullable(),
  /** The last times that the breaker opened and closed, the oldest first. */
  history: z.array(breakerChange),
  /** Empty for a channel with one key, and before its first call. */
  keys: z.array(keyReport),
})
export type ChannelReport = z.infer<typeof channelReport>

export const processReport = z.object({
  /** `gateway 0`, `settler`, `tasks`. */
  process: z.string(),
  pid: count,
  host: z.string(),
  version: z.string(),
  started_at: z.iso.datetime(),
  /** Engines by name, and whether they answer this process. */
  engines: z.record(z.string(), z.boolean()),
  /** Gauges of the metrics by name, without labels. */
  gauges: z.record(z.string(), z.number()),
  channels: z.array(channelReport),
})
export type ProcessReport = z.infer<typeof processReport>
