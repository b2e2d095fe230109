/** Words and bounds of the call log; `columns.ts` has its rows. See docs/api-rules.md, "Call log rows". */
import { z } from 'zod'
import { CALL_STATUSES, UNIT_TYPES } from './words.ts'

export const callStatus = z.enum(CALL_STATUSES)
export type CallStatus = z.infer<typeof callStatus>

export const unitType = z.enum(UNIT_TYPES)
export type UnitType = z.infer<typeof unitType>

/** One try at an upstream. Times in milliseconds. */
export const attemptRow = z.object({
  seq: z.int().min(1),
  created_at: z.string(),
  latency_ms: z.int().min(0),
  error_code: z.string().nullable(),
  error_message: z.string().nullable(),
})
export type AttemptRow = z.infer<typeof attemptRow>

export const LOG_PERIODS = ['today', '7d', '30d', 'this_month', 'all'] as const
export type LogPeriod = (typeof LOG_PERIODS)[number]

export const LOG_LIMIT_DEFAULT_ROWS = 50
export const LOG_LIMIT_MAX_ROWS = 200
/** As CSV, in one answer. */
export const LOG_CSV_MAX_ROWS = 10_000
export const CURRENCY = 'points' as const
export const currency = z
  .literal(CURRENCY)
  .describe('The word of this interface for credits: one point is one credit.')
