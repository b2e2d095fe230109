/**
 * The billing-compatible family: what third-party chat clients call to show a balance. Amounts are numbers here, and
 * one credit reads as 1. See docs/api-rules.md, "Balance and usage".
 */
import { z } from 'zod'

const DATE = /^(\d{4})-(\d{1,2})-(\d{1,2})$/

/** A UTC day, as epoch milliseconds of its beginning. There are clients that leave out the leading zeros. */
const day = z.string().transform((value, context) => {
  const [, year, month, date] = (DATE.exec(value) ?? []).map(Number)
  const at = Date.UTC(year ?? Number.NaN, (month ?? 0) - 1, date)
  if (new Date(at).getUTCMonth() + 1 === month) return at
  context.addIssue({ code: 'custom', message: `${JSON.stringify(value)} is not a date like 2026-01-31` })
  return z.NEVER
})

export const billingUsageQuery = z.object({
  start_date: day.optional().describe('First day, YYYY-MM-DD in UTC; default: since the beginning.'),
  end_date: day.optional().describe('Last day, included whole; default: today.'),
})

const amount = z.number()

export const billingSubscription = z.object({
  object: z.literal('billing_subscription'),
  has_payment_method: z.boolean(),
  hard_limit_usd: amount.describe('All that was ever credited: what remains, what is held, what was used.'),
  soft_limit_usd: amount,
  system_hard_limit_usd: amount,
  access_until: z
    .int()
    .describe('When the key expires, epoch seconds; the last second of the year 9999 for one that does not.'),
})
export type BillingSubscription = z.infer<typeof billingSubscription>

export const billingUsage = z.object({
  object: z.literal('list'),
  total_usage: amount.describe('Hundredths of a credit.'),
  daily_costs: z
    .array(
      z.object({
        timestamp: z.int().describe("The day's beginning in UTC, epoch seconds."),
        line_items: z
          .array(z.object({ name: z.string(), cost: amount }))
          .describe('By model; hundredths of a credit.'),
      }),
    )
    .describe('Days on which something was charged, in their order.'),
})
export type BillingUsage = z.infer<typeof billingUsage>

export const creditGrants = z.object({
  object: z.literal('credit_summary'),
  total_granted: amount,
  total_used: amount,
  total_available: amount,
})
export type CreditGrants = z.infer<typeof creditGrants>
