/** Which models work, as everybody may read it, and the notes of the operators. See docs/api-rules.md, "Status". */
import { z } from 'zod'

export const MODEL_STATUSES = ['failing', 'degraded', 'operational', 'no_recent_calls'] as const
export type ModelStatus = (typeof MODEL_STATUSES)[number]

export const NOTE_SEVERITIES = ['info', 'maintenance', 'degraded', 'outage'] as const

export const STATUS_DAYS = 30

const instant = z.iso.datetime().describe('RFC 3339, UTC.')
const successRate = z
  .number()
  .min(0)
  .max(100)
  .nullable()
  .describe('Percent of the calls that succeeded, rounded down to one decimal; null: there were none.')
const status = z.enum(MODEL_STATUSES)

export const statusNoteFields = {
  id: z.string(),
  severity: z.enum(NOTE_SEVERITIES),
  text: z.string(),
  models: z.array(z.string()).nullable().describe('Models that it is about; null: all.'),
  begins_at: instant,
  ends_at: instant.nullable().describe('The planned end, where there is one.'),
  resolved_at: instant.nullable(),
  updates: z.array(z.object({ at: instant, text: z.string() })).describe('The oldest first.'),
}

export const serviceStatus = z.object({
  object: z.literal('status'),
  status: status.describe('The worst of the models.'),
  measured_at: instant.describe('When the models were measured: a while ago if the call log is down.'),
  models: z
    .array(
      z.object({
        id: z.string(),
        display_name: z.string(),
        status: status.describe(
          '`failing`: no provider takes its calls, or fewer than half of its newest 100 calls in the last 15 minutes ' +
            'succeeded; `degraded`: fewer than 95%.',
        ),
        success_rate: successRate.describe('Of the last 15 minutes, as in `days`.'),
        days: z
          .array(z.object({ date: z.iso.date().describe('UTC.'), success_rate: successRate }))
          .describe('The last 30 days, the oldest first; the last one is today.'),
      }),
    )
    .describe('Models that can be called.'),
  notes: z.array(z.object(statusNoteFields)).describe('Of the last 30 days and later, the newest first.'),
})
export type ServiceStatus = z.infer<typeof serviceStatus>
