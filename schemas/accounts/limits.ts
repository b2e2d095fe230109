/**
 * Messages between gateway processes, over core NATS, to keep an account's limits over all of them.
 * `src/limits/limits.ts` describes the protocol.
 */
import { z } from 'zod'

/** Below it: `all` for everybody, `to.<process>` for one. */
export const LIMITS_SUBJECT = 'tollgate.limits'

const process = z.string()
const count = z.int().positive()
const limit = z.int().positive().nullable()
/** Count of each subject: an account or a key. */
const counts = z.array(z.tuple([z.string(), count]))

/** To all, every second and whenever something changes. One report may come in several parts. */
const report = z.object({
  type: z.literal('report'),
  from: process,
  /** Whom the sender follows; itself when it leads. */
  leader: process.nullable(),
  /** Everybody is to report now. */
  calls: z.boolean(),
  /** The sender ends. */
  leaves: z.boolean(),
  /** A process that NATS could not reach. */
  gone: process.nullable(),
  /** Number of the last answers that came from the leader. */
  heard: z.int().min(0),
  /** All slots that the sender holds. */
  held: counts,
  /** Requests of the sender that were admitted since its last report: by whom, and how long ago. */
  admitted: z.array(z.object({ by: process, age_ms: z.number().min(0), counts })),
  /** Another part follows; only the last one is acted upon. */
  more: z.boolean(),
})

/** To the leader: requests that wait, and those that it no longer needs to count. */
const asks = z.object({
  type: z.literal('asks'),
  from: process,
  /**
   * Serial number, subject, requests per minute, concurrency. Rows of one request follow one another; all of them admit
   * it, or none counts it.
   */
  asks: z.array(z.tuple([z.int(), z.string(), limit, limit])),
  released: counts,
  /** Requests whose answer came too late: the sender has decided by itself. */
  withdrawn: z.array(z.int()),
})

/** From the leader, numbered for each process it answers. */
const answers = z.object({
  type: z.literal('answers'),
  from: process,
  number: z.int().positive(),
  /** Serial number of the request, and the decision; one row for each of its subjects, in their order. */
  answers: z.array(
    z.tuple([z.int(), z.enum(['requests', 'concurrency']).nullable(), z.int(), z.number(), z.int()]),
  ),
})

/** From the leader, before it refuses for want of a slot: whatever was released is to be sent now. */
const flush = z.object({ type: z.literal('flush'), from: process, token: z.int() })
const flushed = z.object({ type: z.literal('flushed'), from: process, token: z.int() })

export const limitMessage = z.discriminatedUnion('type', [report, asks, answers, flush, flushed])
export type LimitMessage = z.infer<typeof limitMessage>
export type LimitReport = z.infer<typeof report>
export type LimitAsks = z.infer<typeof asks>
export type LimitAnswers = z.infer<typeof answers>

/** Rows of one message: with the longest identifiers well below the 1 MiB that NATS takes by default. */
export const MAX_LIMIT_ROWS = 4_000
