/** Operations that sum up the calls of an account, or of all. */
import { z } from 'zod'
import { logQuery, windowFields } from '../../call-log/query.ts'
import { currency } from '../../call-log/row.ts'
import { walletSchema } from '../accounts/accounts.ts'
import { budgetSchema } from '../accounts/budgets.ts'
import { keySchema } from '../accounts/keys.ts'
import { amountText, instantText, operation, timezone } from '../operation.ts'

const accountId = z.string()

const sums = {
  requests: z.int(),
  cost: amountText,
  input_tokens: z.int(),
  output_tokens: z.int(),
  cached_tokens: z.int().describe('Part of input_tokens.'),
}
const totals = z.object(sums)

export const USAGE_DIMENSIONS = ['model', 'key', 'member', 'status'] as const

export const showUsage = operation('showUsage', {
  summary: 'Sum up the calls of an account by day and by model, key, member or status.',
  details:
    'A window has at most 365 days. A member of an organization sees only calls made with their own keys.',
  input: z.object({
    account_id: accountId,
    key_id: logQuery.shape.key_id,
    by: z.enum(USAGE_DIMENSIONS).default('model'),
    period: logQuery.shape.period,
    ...windowFields,
    timezone,
  }),
  answer: {
    name: 'UsageReport',
    schema: z.object({
      period_from: instantText,
      period_to: instantText,
      total: totals,
      before: totals.describe('Of the period of the same length before.'),
      groups: z
        .array(z.object({ id: z.string(), name: z.string(), ...sums }))
        .describe('By cost, the dearest first.'),
      by_day: z
        .array(z.object({ date: z.string(), group: z.string().describe('The id of a group.'), ...sums }))
        .describe('A day of a group without a call is absent.'),
    }),
  },
  scope: 'read',
  allows: ['owner', 'admin', 'billing', 'member'],
})

const SESSIONS_MAX_ROWS = 1000
const SESSIONS_DEFAULT_ROWS = 100

export const sumSessions = operation('sumSessions', {
  summary: 'Sum up the calls of an account by session, to see what a conversation or a run of an agent cost.',
  details:
    'A client names the session of a call in a header. Calls without one do not count. A window has at most 365 days. ' +
    'A member of an organization sees only calls made with their own keys.',
  input: z.object({
    account_id: accountId,
    key_id: logQuery.shape.key_id,
    period: logQuery.shape.period,
    ...windowFields,
    limit: z.coerce
      .number()
      .int()
      .min(1)
      .max(SESSIONS_MAX_ROWS)
      .default(SESSIONS_DEFAULT_ROWS)
      .describe('Sessions beyond it, the cheapest, are left out.'),
  }),
  answer: {
    name: 'SessionUsage',
    schema: z.object({
      period_from: instantText,
      period_to: instantText,
      data: z
        .array(
          z.object({
            session_id: z.string(),
            models: z
              .array(z.string())
              .describe('Of its calls that were not refused, in the order of their names.'),
            ...sums,
            first_call_at: instantText.describe('End of the first call in the window.'),
            last_call_at: instantText.describe('End of the last.'),
          }),
        )
        .describe('By cost, the dearest first.'),
      has_more: z.boolean().describe('Sessions were left out.'),
    }),
  },
  scope: 'read',
  allows: ['owner', 'admin', 'billing', 'member'],
  commands: [
    {
      words: 'logs sessions',
      args: 'account_id',
      values: { limit: SESSIONS_MAX_ROWS },
      example: '--from 2026-10-01 --to 2026-10-31',
    },
  ],
})

/** The margin of the calls with a known upstream cost. Only for operators. */
export const margins = {
  upstream_cost: amountText
    .nullable()
    .describe('What the operator pays for the calls with a known cost; null: there are none.'),
  margin: amountText.nullable().describe('What those calls were charged, less upstream_cost.'),
  requests_with_cost: z.int().describe('Calls with a known cost.'),
}

export const USAGE_GROUPS = ['account', 'model', 'day', 'key', 'channel'] as const
export type UsageGroup = (typeof USAGE_GROUPS)[number]
export const USAGE_MAX_ROWS = 100_000
const USAGE_DEFAULT_ROWS = 1000

export const showInstallationUsage = operation('showInstallationUsage', {
  summary:
    'Sum up the calls of all accounts, or of one, by account, model, day, key or channel, with their margin.',
  details: 'Refused calls count, attempts do not. By channel, only calls with a known cost are summed up.',
  input: z.object({
    account_id: accountId.optional().describe('Only calls of this account.'),
    by: z
      .enum(USAGE_GROUPS)
      .optional()
      .describe('Group by this. Default: account, or model with one account.'),
    period: logQuery.shape.period,
    ...windowFields,
    timezone,
    limit: z.coerce
      .number()
      .int()
      .min(1)
      .max(USAGE_MAX_ROWS)
      .default(USAGE_DEFAULT_ROWS)
      .describe('Rows beyond it are left out; the total counts them.'),
  }),
  answer: {
    name: 'InstallationUsage',
    schema: z.object({
      object: z.literal('usage'),
      currency,
      period_from: instantText,
      period_to: instantText,
      account_id: accountId.nullable(),
      by: z.enum(USAGE_GROUPS),
      rows: z
        .array(
          z.object({
            day: z.string().optional(),
            model: z.string().optional(),
            key_id: z.string().optional(),
            name: z.string().nullable().optional().describe('Of the key or the account; null: not known.'),
            account_id: accountId.optional().describe('Of an account or a key.'),
            channel_id: z.string().optional(),
            ...sums,
            ...margins,
          }),
        )
        .describe('Days in their order; all else by cost, the dearest first.'),
      has_more: z.boolean().describe('Rows were left out.'),
      total: totals.extend(margins),
      before: totals.extend(margins).describe('Of the period of the same length before.'),
      lost_submits: z
        .object({ submits: z.int(), upstream_cost: amountText.describe('As far as it is known.') })
        .describe('Submits whose outcome was unknown: no sum has them, and the operator pays for them.'),
    }),
  },
  scope: 'read',
  allows: 'operators',
  commands: [
    {
      words: 'usage',
      values: { limit: USAGE_MAX_ROWS },
      example: '--from 2026-10-01 --to 2026-10-31 --by account --format csv',
    },
  ],
})

export const showHome = operation('showHome', {
  summary:
    'Show the balance of an account, how long it lasts, its last thirty days, and keys and budgets near their limit.',
  details: 'A member of an organization sees what their own keys did, and no wallet.',
  input: z.object({ account_id: accountId, timezone }),
  answer: {
    name: 'Home',
    schema: z.object({
      wallet: walletSchema.nullable().describe('null: the caller is a member, who may not read it.'),
      spend_per_day: amountText.describe('The mean of the `spend_days` days before today.'),
      spend_days: z
        .int()
        .describe(
          'At most 7, fewer where the first spend is not so long ago. 0: the last seven days cost nothing, and spend_per_day is what today has cost so far.',
        ),
      runway_days: z
        .number()
        .nullable()
        .describe(
          'How long the balance lasts at spend_per_day; null: nothing was spent, or there is no wallet.',
        ),
      by_day: z.array(z.object({ date: z.string(), requests: z.int(), failed: z.int(), cost: amountText })),
      keys_near_cap: z.array(keySchema).describe('Those that spent 80 % of their cap or more.'),
      budgets_near: z.array(budgetSchema).describe('Those of which 80 % or more are spent.'),
    }),
  },
  scope: 'read',
  allows: ['owner', 'admin', 'billing', 'member'],
})
