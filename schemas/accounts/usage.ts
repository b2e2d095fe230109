/** `GET /api/v1/usage`: the usage of an account in a window of time. See docs/api-rules.md, "Balance and usage". */
import { z } from 'zod'
import { windowEnd } from '../call-log/query.ts'
import { currency, LOG_PERIODS } from '../call-log/row.ts'

export const usageQuery = z.object({
  period: z
    .string()
    .optional()
    .describe(`${LOG_PERIODS.join(', ')}; default 30d; ignored where from and to are given.`),
  from: windowEnd.optional().describe('YYYY-MM-DD or RFC 3339; together with to.'),
  to: windowEnd.optional().describe('The end: a date counts as a whole day, an instant is exclusive.'),
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
