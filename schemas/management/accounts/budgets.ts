/** Operations of budgets. */
import { z } from 'zod'
import { budgetPeriod, budgetScope } from '../../accounts/budget.ts'
import { creditsText } from '../../money.ts'
import { amountText, instantText, operation, pageInput, toPageSchema } from '../operation.ts'

const MAX_ZONE_CHARS = 64

export const budgetSchema = z.object({
  id: z.string(),
  account_id: z.string().describe('The account that pays.'),
  scope: budgetScope,
  key_id: z.string().nullable().describe('Key that the budget is for.'),
  member_id: z.string().nullable().describe('Of a budget of a member: it counts all their keys together.'),
  name: z.string().describe('Of the key, the member or the account.'),
  amount: amountText,
  period: budgetPeriod,
  timezone: z.string(),
  spent: amountText.describe('In the current period, by calls that are booked.'),
  reserved: amountText.describe('By calls and tasks under way.'),
  period_start: instantText,
  resets_at: instantText,
  created_at: instantText,
})

const budget = { name: 'Budget', schema: budgetSchema }

export const listBudgets = operation('listBudgets', {
  summary: 'List the budgets of an account, its members and its keys.',
  details: 'A member of an organization lists those that cover one of their keys.',
  input: z.object({
    account_id: z.string(),
    scope: budgetScope.optional().describe('Only budgets of this kind of subject.'),
    key_id: z.string().optional().describe('Only budgets of this key.'),
    ...pageInput,
  }),
  answer: { name: 'BudgetList', schema: toPageSchema(budgetSchema) },
  scope: 'read',
  allows: ['owner', 'admin', 'billing', 'member'],
  commands: [
    { words: 'budget list', columns: 'id scope name amount period timezone spent reserved resets_at' },
  ],
})

export const putBudget = operation('putBudget', {
  summary: 'Create a budget, or replace the one of the same key, member or account and period.',
  details:
    'What was spent in the current period before counts. Owners and admins decide on keys and members, owners and billing on the account.',
  input: z.object({
    account_id: z
      .string()
      .describe('The account that pays. Without a key or member the budget is for the account itself.'),
    key_id: z.string().nullable().default(null).describe('Key that the budget is for.'),
    member_id: z
      .string()
      .nullable()
      .default(null)
      .describe('Member that the budget is for. Neither: the account.'),
    amount: creditsText
      .refine((amount) => amount > 0n, 'is more than 0')
      .describe('The most that may be spent in a period.'),
    period: budgetPeriod.describe('Length of a period.'),
    timezone: z
      .string()
      .min(1)
      .max(MAX_ZONE_CHARS)
      .default('UTC')
      .describe(
        'IANA name, such as Europe/Berlin. Periods begin at midnight in this time zone, weeks on Monday.',
      ),
  }),
  answer: budget,
  scope: 'billing',
  allows: ['owner', 'admin', 'billing'],
  commands: [{ words: 'budget set', example: '--amount 500 --period week --timezone Europe/Berlin' }],
})

export const deleteBudget = operation('deleteBudget', {
  summary: 'Delete a budget.',
  input: z.object({ id: z.string() }),
  answer: budget,
  scope: 'billing',
  allows: ['owner', 'admin', 'billing'],
  commands: [
    {
      words: 'budget delete',
      effect: 'This would delete the budget {id} of {name}, which then no longer limits what is spent',
    },
  ],
})
