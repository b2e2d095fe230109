/** One call of the log in detail. See docs/api-rules.md, "Call detail". */
import { z } from 'zod'
import type { Settlement } from '../events/event.ts'
import { LOG_SCOPES } from './query.ts'
import type { LogRow } from './row.ts'

/** Kinds of results. */
export const LOG_KINDS = ['video', 'image', 'music', 'audio'] as const
export type LogKind = (typeof LOG_KINDS)[number]

const item = z.object({ k: z.string(), v: z.string() })
export type DetailItem = z.infer<typeof item>

/** The part of a charge that an operator gave back. */
export const shownRefund = z.object({
  amount: z.string().describe('Credits, as a decimal number: at most the charge.'),
  reason: z.string(),
  created_at: z.iso.datetime().describe('RFC 3339, UTC.'),
})
export type ShownRefund = z.infer<typeof shownRefund>

/** A group may be empty; unknown facts of a call are left out. */
export const logDetail = z.object({
  id: z.int().positive(),
  kind: z.enum(LOG_KINDS).nullable(),
  request: z.array(item).describe('What the client asked for, as far as it shaped the call.'),
  upstream: z
    .array(item)
    .describe('How the upstream was spoken to, attempt by attempt. Empty where none was.'),
  gateway: z
    .array(item)
    .describe('What the gateway made of it: the estimate, the charge, where the time went.'),
  request_note: z.string().describe('What a reader should know first, in a sentence or two; often empty.'),
})
export type LogDetail = z.infer<typeof logDetail>

/** The answer of `GET /v1/logs/{id}`. */
export const logDetailAnswer = logDetail.extend({
  refund: shownRefund.nullable().describe('null: nothing was given back. The cost of the row stays.'),
})
export type LogDetailAnswer = z.infer<typeof logDetailAnswer>

export const logDetailPath = z.object({ id: z.string().describe('The id of a row of the call log.') })

export const logDetailQuery = z.object({
  scope: z
    .enum(LOG_SCOPES)
    .optional()
    .describe(
      'key: calls of this key alone; account: of the whole account. Default: all that the key may read.',
    ),
})

/** A row of the log with what only its detail shows. */
export interface CallWithDetail extends LogRow {
  /** Client protocol, such as `chat-completions`. */
  readonly protocol: string
  readonly stream: boolean
  readonly usageSource: Settlement['usage_source']
  /** Time to the first byte for the client; null when none was sent. */
  readonly ttfbMs: number | null
  /** The pre-charge estimate that admitted the call: credits, a decimal string. */
  readonly estimate: string
  /** Never shown to customers: known so that it can be masked. */
  readonly channelId: string | null
  /** The price that the operator pays: credits, a decimal string. Never shown to customers. Null where it is not known. */
  readonly upstreamCost: string | null
  /** The JSON of `schemas/call-log/call-detail.ts`; empty for a row without one. */
  readonly detail: string
}
