/** Operations of payments by card, and of their receipts. */
import { z } from 'zod'
import { MINIMUM_TOP_UP } from '../../accounts/account.ts'
import { creditsText } from '../../money.ts'
import { PAYMENT_KINDS, PAYMENT_STATES } from '../../payments/payment.ts'
import { amountText, instantText, operation, pageInput, timeInput, toPageSchema } from '../operation.ts'

const MAX_REASON_CHARS = 500
export const MAX_DAYS = 30

const accountId = z.string()
const id = z.string()
const moneyText = z.string().describe('In units of the currency, as a decimal number.')
const currency = z.string().describe('ISO 4217, in lower case.')

const receiptSchema = z.object({
  number: z.int().describe('Numbers have no gaps.'),
  kind: z.enum(['receipt', 'credit_note']),
  amount: moneyText,
  credits: amountText,
  issued_at: instantText,
})

const paymentSchema = z.object({
  id,
  account_id: accountId,
  kind: z.enum(PAYMENT_KINDS),
  state: z.enum(PAYMENT_STATES).describe('`paid`: the credits are booked.'),
  credits: amountText,
  amount: moneyText,
  currency,
  refunded: moneyText,
  disputed: moneyText.describe('Withdrawn by disputes that are open or lost.'),
  credits_taken: amountText.describe('Taken back for refunds and disputes.'),
  url: z.string().nullable().describe('Where the customer pays or confirms, while the payment is open.'),
  failure_code: z.string().nullable(),
  failure_message: z.string().nullable(),
  created_by: z.string(),
  created_at: instantText,
  paid_at: instantText.nullable(),
  receipts: z.array(receiptSchema),
})

const payment = { name: 'Payment', schema: paymentSchema }
const list = { name: 'PaymentList', schema: toPageSchema(paymentSchema) }
const listed = {
  limit: 50,
  columns: 'id account_id created_at kind state credits amount currency refunded disputed',
}
const ofBilling = { scope: 'billing', allows: ['owner', 'billing'] } as const
const toRead = { scope: 'read', allows: ['owner', 'billing'] } as const

export const showOffer = operation('showOffer', {
  ...toRead,
  summary: 'Show what credits cost by card.',
  input: z.object({ account_id: accountId }),
  answer: {
    name: 'PaymentOffer',
    schema: z.object({
      takes_cards: z.boolean().describe('False: this installation has no payment provider, or no prices.'),
      is_simulated: z.boolean().describe('The simulated provider takes the cards: no money moves.'),
      currency: currency.nullable(),
      credits_per_unit: amountText.nullable(),
      minimum: amountText,
      presets: z.array(z.object({ credits: amountText, amount: moneyText })),
    }),
  },
})

export const startPayment = operation('startPayment', {
  ...ofBilling,
  summary: 'Start a top-up by card. `url` leads to the page of the payment provider.',
  details: 'The credits are booked when the provider reports the payment, once.',
  input: z.object({
    account_id: accountId,
    credits: creditsText.describe(`At least ${MINIMUM_TOP_UP}.`),
    save_card: z.boolean().default(false).describe('Keep the card for automatic top-ups.'),
  }),
  answer: payment,
  isSensitive: true,
  isIdempotent: 'by-operation',
  status: 201,
  failures: ['upstream_error'],
})

export const listPayments = operation('listPayments', {
  ...toRead,
  summary: 'List the payments of an account, the newest first.',
  input: z.object({ account_id: accountId, ...pageInput }),
  answer: list,
  commands: [{ words: 'payments list', summary: 'List card payments, the newest first.', ...listed }],
})

export const listAllPayments = operation('listAllPayments', {
  summary: 'List the payments of all accounts, the newest first.',
  input: z.object({
    search: z
      .string()
      .trim()
      .max(200)
      .optional()
      .describe("Part of the id of the payment, of the account or its name, or of the provider's id."),
    account_id: accountId.optional().describe('Only payments of this account.'),
    state: z.enum(PAYMENT_STATES).optional().describe('Only payments in this state.'),
    ...timeInput,
    ...pageInput,
  }),
  answer: {
    name: 'InstallationPaymentList',
    schema: toPageSchema(
      paymentSchema.extend({
        account_name: z.string(),
        intent_id: z.string().nullable().describe("The provider's id; null before it has given one."),
      }),
    ),
  },
  scope: 'read',
  allows: 'operators',
  commands: [{ words: 'payments list', options: 'search state since until', ...listed }],
})

export const showPayment = operation('showPayment', {
  ...toRead,
  summary: 'Show a payment.',
  input: z.object({ id }),
  answer: payment,
  commands: [{ words: 'payments show' }],
})

export const refundPayment = operation('refundPayment', {
  summary: 'Refund a payment to its card, and take back its credits; the balance may fall below zero.',
  input: z.object({
    id,
    amount: z
      .string()
      .regex(/^\d{1,12}(\.\d{1,3})?$/, 'is not an amount such as "5.00"')
      .nullable()
      .default(null)
      .describe('In units of the currency. null: all that is left.'),
    reason: z.string().trim().min(1).max(MAX_REASON_CHARS).describe('Why, for the audit record.'),
  }),
  answer: payment,
  scope: 'billing',
  allows: 'operators',
  isSensitive: true,
  isIdempotent: 'by-operation',
  failures: ['upstream_error'],
  commands: [{ words: 'payments refund', example: '--amount 5.00 --reason "bought by mistake"' }],
})

export const reconcilePayments = operation('reconcilePayments', {
  summary: "Compare the provider's events with the books, and book those whose webhooks never came.",
  details: 'The task worker does so every five minutes.',
  input: z.object({
    days: z.coerce
      .number()
      .int()
      .min(1)
      .max(MAX_DAYS)
      .optional()
      .describe('Days to look back. Default: since the last time.'),
  }),
  answer: {
    name: 'PaymentReconciliation',
    schema: z.object({
      since: instantText,
      events: z.int(),
      found: z.int().describe('Events that were missing, and are booked now.'),
      refused: z.int().describe('Events that contradict a payment of ours; nothing was booked.'),
      failed: z.int().describe('Events and payments that could not be compared; the log names them.'),
    }),
  },
  scope: 'billing',
  allows: 'operators',
  failures: ['upstream_error'],
  commands: [{ words: 'payments reconcile', example: '--days 7' }],
})

export const openReceipt = operation('openReceipt', {
  ...toRead,
  summary: 'Open a receipt or a credit note: a page made for printing.',
  input: z.object({ number: z.coerce.number().int().min(1) }),
  answer: { name: 'ReceiptPage', schema: z.string() },
  isPage: true,
})
