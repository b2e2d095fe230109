/** One call of the log in detail. See docs/api-rules.md, "Call log CSV, summary and detail". */

import { z } from 'zod'
import type { FullRow } from './columns.ts'
import { LOG_SCOPES } from './query.ts'

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
      'key: only calls of this key; account: of the whole account. Default: all that the key may read.',
    ),
})

/** A row of the log with what only its detail shows. */
export type CallWithDetail = Omit<FullRow, 'account_id' | 'booked_at'>
