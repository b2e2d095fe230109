/** Operations of saved cards and automatic top-ups. */
import { z } from 'zod'
import { MINIMUM_TOP_UP } from '../../accounts/account.ts'
import { creditsText } from '../../money.ts'
import { OFF_REASONS } from '../../payments/payment.ts'
import { amountText, instantText, operation, toListSchema } from '../operation.ts'

const accountId = z.string()

const cardSchema = z.object({
  id: z.string(),
  account_id: accountId,
  brand: z.string(),
  last4: z.string(),
  expires: z.string().describe('MM/YYYY'),
  created_at: instantText,
})

const automaticSchema = z.object({
  account_id: accountId,
  enabled: z.boolean(),
  threshold: amountText.nullable().describe('A balance below this is topped up.'),
  amount: amountText.nullable().describe('Credits of one top-up.'),
  monthly_maximum: amountText.nullable().describe('Most credits in one calendar month, UTC.'),
  failures: z.int().describe('Attempts that failed in succession. After three the service switches it off.'),
  off_reason: z.enum(OFF_REASONS).nullable().describe('Why the service has switched it off.'),
  waits_until: instantText.nullable(),
  waits_for: z.enum(['retry', 'month']).nullable(),
})

const automatic = { name: 'AutomaticTopUp', schema: automaticSchema }
const ofBilling = { scope: 'billing', allows: ['owner', 'billing'] } as const
const toRead = { scope: 'read', allows: ['owner', 'billing'] } as const

export const listCards = operation('listCards', {
  ...toRead,
  summary: 'List the saved cards of an account. The first pays automatic top-ups.',
  input: z.object({ account_id: accountId }),
  answer: {
    name: 'CardList',
    schema: toListSchema(cardSchema),
  },
})

export const saveCard = operation('saveCard', {
  ...ofBilling,
  summary: 'Save a card. `url` leads to the page of the payment provider.',
  input: z.object({ account_id: accountId }),
  answer: { name: 'CardPage', schema: z.object({ url: z.string() }) },
  isSensitive: true,
  failures: ['upstream_error'],
})

export const removeCard = operation('removeCard', {
  ...ofBilling,
  summary: 'Remove a saved card. Without another one automatic top-ups are switched off.',
  input: z.object({ id: z.string(), account_id: accountId }),
  answer: { name: 'RemovedCard', schema: z.object({ id: z.string(), removed: z.literal(true) }) },
  isSensitive: true,
  failures: ['upstream_error'],
})

export const showAutomaticTopUp = operation('showAutomaticTopUp', {
  ...toRead,
  summary: 'Show the automatic top-up of an account.',
  input: z.object({ account_id: accountId }),
  answer: automatic,
})

export const setAutomaticTopUp = operation('setAutomaticTopUp', {
  ...ofBilling,
  summary: 'Set the automatic top-up of an account.',
  input: z.object({
    account_id: accountId,
    enabled: z.boolean(),
    threshold: creditsText,
    amount: creditsText.describe(`At least ${MINIMUM_TOP_UP}.`),
    monthly_maximum: creditsText.describe('At least the amount.'),
  }),
  answer: automatic,
  isSensitive: true,
})
