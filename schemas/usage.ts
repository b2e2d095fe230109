/** `GET /api/v1/usage`: what an account used in a window of time. Source: decisions, "Discovery, balance, usage". */
import { z } from 'zod'
import { CURRENCY, LOG_PERIODS } from './log.ts'
import { windowEnd } from './log-query.ts'

export const usageQuery = z.object({
  /** Ignored where `from` and `to` are given. */
  period: z
    .string()
    .optional()
    .meta({ enum: [...LOG_PERIODS] }),
  from: windowEnd.optional(),
  to: windowEnd.optional(),
})
export type UsageQuery = z.infer<typeof usageQuery>

const count = z.int().min(0)

export const usageReport = z.object({
  object: z.literal('usage'),
  currency: z.literal(CURRENCY),
  period_from: z.string(),
  period_to: z.string(),
  /** Refused calls too; the attempts behind a call do not count. */
  total_requests: count,
  /** Credits, a decimal string. */
  total_cost: z.string(),
  total_input_tokens: count,
  total_output_tokens: count,
  total_cached_tokens: count,
})
export type UsageReport = z.infer<typeof usageReport>
