/** The parameters and the answer of `GET /v1/logs/summary`. See docs/api-rules.md, "Call log CSV, summary and detail". */
import { z } from 'zod'
import { LOG_SCOPES, logQuery } from './query.ts'
import { currency, LOG_PERIODS } from './row.ts'

/** All of time has no first day, so there is no summary of it. */
export const LOG_SUMMARY_PERIODS = LOG_PERIODS.filter((period) => period !== 'all')
export const LOG_SUMMARY_MAX_DAYS = 365
/** How long an answer is reused. */
export const LOG_SUMMARY_CACHE_SECONDS = 60

export const logSummaryQuery = logQuery.pick({ scope: true, key_id: true, from: true, to: true }).extend({
  period: z
    .string()
    .meta({ enum: LOG_PERIODS })
    .optional()
    .describe(`${LOG_SUMMARY_PERIODS.join(', ')}; default 30d; ignored where from and to are given.`),
})
export type LogSummaryQuery = z.infer<typeof logSummaryQuery>

const refused = z
  .undefined({ error: 'only narrows the list; a summary takes scope, key_id, period, from and to' })
  .optional()

/** A filter by row is refused rather than ignored: the sums would be wrong for it. */
export const rowFiltersOfLogSummary = z.object({
  model: refused,
  status: refused,
  unit_type: refused,
  error_code: refused,
  ref: refused,
  session_id: refused,
})

const count = z.int().min(0)
const cost = z.string().describe('Credits, a decimal string.')
const tokens = count.describe('Input and output together.')

export const logSummary = z.object({
  object: z.literal('logs.summary'),
  currency,
  scope: z.enum(LOG_SCOPES),
  period_from: z.string(),
  period_to: z.string(),
  total: z.object({
    requests: count.describe('Refused calls too; the attempts behind a call do not count.'),
    cost,
    input_tokens: count,
    output_tokens: count,
    cached_tokens: count.describe('Part of input_tokens.'),
  }),
  status_counts: z.object({ success: count, error: count, interrupted: count, rejected: count }),
  by_day: z
    .array(z.object({ date: z.string(), requests: count, cost, tokens }))
    .describe('UTC days, ascending; a day without a call is absent.'),
  by_model: z
    .array(z.object({ model: z.string(), requests: count, cost, total_tokens: tokens }))
    .describe('By cost, descending; equal costs by name.'),
})
export type LogSummary = z.infer<typeof logSummary>
