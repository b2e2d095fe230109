/** Operations of the health of the installation: failing channels, alerts, and accounts to look at. */
import { z } from 'zod'
import { BREAKER_STATES, CHANNEL_STATES } from '../config/channel-report.ts'
import { EVENT_TYPES } from '../notifications/event.ts'
import { queryFlag } from '../query.ts'
import { amountText, instantText, operation, pageInput, toPageSchema } from './operation.ts'

const ofOperators = { scope: 'read', allows: 'operators' } as const
const count = z.int().min(0)
const window = z.object({
  attempts: count,
  failures: count.describe('Those that failed by the fault of the channel.'),
})

export const showHealth = operation('showHealth', {
  ...ofOperators,
  summary: 'Show what needs an operator: failing channels by the call log, negative balances, unusual spend.',
  input: z.object({}),
  answer: {
    name: 'InstallationHealth',
    schema: z.object({
      channels: z
        .array(
          z.object({
            id: z.string(),
            state: z.enum(CHANNEL_STATES),
            breaker: z.enum(BREAKER_STATES).nullable().describe('null: no process answers.'),
            is_failing: z
              .boolean()
              .describe('It failed after its last success, or its circuit is not closed.'),
            last_hour: window,
            last_day: window,
            last_error: z.object({ at: instantText, code: z.string(), message: z.string() }).nullable(),
            last_success_at: instantText.nullable(),
          }),
        )
        .describe('Those that failed in the last day; the failing ones first.'),
      is_log_read: z.boolean().describe('False: the call log does not answer, so that failures are missing.'),
      open_alerts: count.describe('Alerts that nobody has acknowledged, at most 100.'),
      negative_balances: z.array(z.object({ account_id: z.string(), name: z.string(), balance: amountText })),
      unusual_spend: z
        .array(
          z.object({
            account_id: z.string(),
            name: z.string().nullable(),
            last_hour: amountText,
            usual_hour: amountText.describe('The mean of the seven days before.'),
          }),
        )
        .describe('Accounts that spent ten times their usual hour, and 100 credits or more.'),
    }),
  },
})

export const showChannelImpact = operation('showChannelImpact', {
  ...ofOperators,
  summary: 'Show what pausing or draining a channel would do.',
  input: z.object({ id: z.string() }),
  answer: {
    name: 'ChannelImpact',
    schema: z.object({
      id: z.string(),
      orphaned_models: z
        .array(z.string())
        .describe('Models of which it is the last channel that takes calls: their calls would be refused.'),
      calls_last_hour: count.nullable().describe('null: the call log does not answer.'),
      in_flight: count,
      open_tasks: count,
    }),
  },
})

export const showWalletRules = operation('showWalletRules', {
  ...ofOperators,
  summary: 'Show the change of a balance above which an operator is asked to confirm.',
  input: z.object({}),
  answer: { name: 'WalletRules', schema: z.object({ confirm_above: amountText }) },
})

const alert = z.object({
  id: z.string(),
  type: z.enum(EVENT_TYPES),
  subject_id: z.string().describe('The channel, journal or endpoint.'),
  data: z.record(z.string(), z.unknown()),
  created_at: instantText,
  acknowledged_at: instantText.nullable(),
  acknowledged_by: z.string().nullable(),
  acknowledgement: z.string().nullable(),
})

export const listOperatorAlerts = operation('listOperatorAlerts', {
  ...ofOperators,
  summary: 'List the alerts of the installation, the newest first.',
  input: z.object({
    open: queryFlag().default(true).describe('Only those that nobody has acknowledged.'),
    ...pageInput,
  }),
  answer: { name: 'OperatorAlertList', schema: toPageSchema(alert) },
})

const MAX_NOTE_CHARS = 500

export const acknowledgeAlert = operation('acknowledgeAlert', {
  summary: 'Acknowledge an alert.',
  input: z.object({
    id: z.string(),
    note: z.string().trim().max(MAX_NOTE_CHARS).default('').describe('What was done, for the others.'),
  }),
  answer: { name: 'OperatorAlert', schema: alert },
  scope: 'admin',
  allows: 'operators',
})
