/** Operations of alerts: thresholds of an account, and the emails that each user wants. */
import { z } from 'zod'
import { creditsText } from '../../money.ts'
import { EVENT_TYPES } from '../../notifications/event.ts'
import { amountText, operation } from '../operation.ts'

const account = z.string().describe('The account.')
const alerts = {
  name: 'Alerts',
  schema: z.object({
    account_id: z.string(),
    balance_low: amountText
      .nullable()
      .describe('`balance.low` is sent when the balance, what is held included, falls below; null: never.'),
  }),
}
const ofPayers = { scope: 'billing', allows: ['owner', 'billing'] } as const

export const showAlerts = operation('showAlerts', {
  ...ofPayers,
  scope: 'read',
  summary: 'Show the thresholds of an account.',
  input: z.object({ account_id: account }),
  answer: alerts,
})

export const updateAlerts = operation('updateAlerts', {
  ...ofPayers,
  summary: 'Change the thresholds of an account.',
  input: z.object({
    account_id: account,
    balance_low: creditsText.refine((amount) => amount > 0n, 'must be more than 0').nullable(),
  }),
  answer: alerts,
})

const choices = {
  name: 'EmailChoices',
  schema: z.object({
    is_sent: z.boolean().describe('Whether the installation has a mail server.'),
    accounts: z.array(
      z.object({
        account_id: z.string().describe('An account, or `installation`.'),
        name: z.string(),
        available: z.array(z.enum(EVENT_TYPES)),
        events: z.array(z.enum(EVENT_TYPES)).describe('Those that the user gets by email.'),
      }),
    ),
  }),
}
const ofUser = { scope: 'admin', allows: 'signed-in' } as const

export const showEmailChoices = operation('showEmailChoices', {
  ...ofUser,
  summary: 'Show which events you are notified of by email, by account.',
  input: z.object({}),
  answer: choices,
})

export const updateEmailChoices = operation('updateEmailChoices', {
  ...ofUser,
  summary: 'Choose which events of an account you are notified of by email.',
  input: z.object({
    account_id: z
      .string()
      .describe('An account in which you are owner, admin or billing, or `installation`.'),
    events: z.array(z.enum(EVENT_TYPES)),
  }),
  answer: choices,
})
