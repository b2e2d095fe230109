/** The state of a process's channels, in its answer to the command line. */
import { z } from 'zod'

/** The request that every gateway and task worker answers. */
export const CHANNEL_REPORT_SUBJECT = 'tollgate.channel_reports'

/** Outcome of an attempt at a channel. */
export const ATTEMPT_OUTCOMES = ['success', 'refused', 'failed', 'abandoned'] as const
export type AttemptOutcome = (typeof ATTEMPT_OUTCOMES)[number]

/** The states of a circuit breaker: calls pass, one call at a time tests the channel, calls avoid it. */
export const BREAKER_STATES = ['closed', 'half-open', 'open'] as const
export type BreakerState = (typeof BREAKER_STATES)[number]

const count = z.int().min(0)

const channelError = z.object({
  at: z.iso.datetime(),
  code: z.string(),
  message: z.string(),
})

const channelReport = z.object({
  channel: z.string(),
  breaker: z.enum(BREAKER_STATES),
  /** When an open breaker lets the next call through. */
  open_until: z.iso.datetime().nullable(),
  /** Attempts that ended within the last minutes, and how many of them failed by the channel's fault. */
  recent_attempts: count,
  recent_failures: count,
  last_error: channelError.nullable(),
})
export type ChannelReport = z.infer<typeof channelReport>

export const processReport = z.object({
  /** `gateway 0`, `tasks`. */
  process: z.string(),
  pid: count,
  host: z.string(),
  channels: z.array(channelReport),
})
export type ProcessReport = z.infer<typeof processReport>
