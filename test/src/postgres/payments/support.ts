/** Payments for tests: rows, and what a provider would report of them. */
import type { Payment } from '../../../../schemas/payments/payment.ts'
import type {
  PaymentNotice,
  ProviderEvent,
  ProviderNotice,
  ReversalNotice,
} from '../../../../schemas/payments/provider.ts'
import { newId } from '../../../../src/core/keys/ids.ts'
import type { Database } from '../../../../src/postgres/database.ts'

let made = 0

/** Begins a payment of 500 credits for 5.00 usd, as an act does. */
export async function newPayment(database: Database, accountId: string): Promise<Payment> {
  await database.payments.keepCustomer(accountId, `cus_${accountId}`)
  return database.payments.create({
    accountId,
    kind: 'checkout',
    credits: 50_000_000_000n,
    amount: 500n,
    currency: 'usd',
  })
}

export const paymentNotice = (payment: Payment, more: Partial<PaymentNotice> = {}): PaymentNotice => ({
  about: 'payment',
  event: 'paid',
  paymentId: payment.id,
  customerId: `cus_${payment.accountId}`,
  sessionId: `cs_${payment.id}`,
  intentId: `pi_${payment.id}`,
  amount: payment.amount,
  currency: payment.currency,
  ...more,
})

export const reversalNotice = (payment: Payment, more: Partial<ReversalNotice> = {}): ReversalNotice => ({
  about: 'reversal',
  event: 'took',
  kind: 'refund',
  id: `re_${payment.id}`,
  intentId: `pi_${payment.id}`,
  amount: payment.amount,
  currency: payment.currency,
  ...more,
})

export const providerEvent = (
  notice: ProviderNotice,
  id = `evt_${made++}_${newId('pay')}`,
): ProviderEvent => ({
  id,
  type: 'test',
  createdAt: new Date(),
  notice,
})
