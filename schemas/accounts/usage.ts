/** The usage of an account in a window of time, and of one key for status lines. See docs/api-rules.md, "Balance and usage". */
import { z } from 'zod'
import { emptyableWindowFields, sessionId } from '../call-log/query.ts'
import { currency, LOG_PERIODS } from '../call-log/row.ts'
import { keyBalance } from './models.ts'

export const usageQuery = z.object({
  period: z
    .string()
    .meta({ enum: LOG_PERIODS })
    .optional()
    .describe(`${LOG_PERIODS.join(', ')}; default 30d; ignored where from and to are given.`),
  ...emptyableWindowFields,
})

const count = z.int().min(0)

export const usageReport = z.object({
  object: z.literal('usage'),
  currency,
  period_from: z.string(),
  period_to: z.string(),
  total_requests: count.describe('Refused calls too; the attempts behind a call do not count.'),
  total_cost: z.string().describe('Credits, a decimal string.'),
  total_input_tokens: count,
  total_output_tokens: count,
  total_cached_tokens: count,
})
export type UsageReport = z.infer<typeof usageReport>

export const keyUsageQuery = z.object({
  session_id: sessionId.optional().describe('The session, as a header of its calls names it.'),
})

const spent = z.object({
  cost: z.string().describe('Credits, a decimal string.'),
  requests: count,
  input_tokens: count,
  output_tokens: count,
  cached_tokens: count,
})

export const keyUsage = keyBalance.extend({
  object: z.literal('key.usage'),
  today: spent.extend({
    from: z.string(),
    resets_at: z.string().describe('The end of the UTC day, RFC 3339.'),
  }),
  session: spent
    .extend({ id: z.string() })
    .optional()
    .describe('The calls of the session in the last 30 days, where session_id is given.'),
})
export type KeyUsage = z.infer<typeof keyUsage>
