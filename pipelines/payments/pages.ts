/** Makes the addresses of the console that the provider's pages lead back to. */
import type { Payment } from '../../schemas/payments/payment.ts'

interface ReturnPages {
  readonly successUrl: string
  readonly cancelUrl: string
}

const makeBillingUrl = (base: string, query: Readonly<Record<string, string>>): string =>
  `${base}/console/billing?${new URLSearchParams(query)}`

/** Returns the pages for a payment: the first waits until it is booked. */
export const returnPages = (base: string, { id, accountId }: Payment): ReturnPages => ({
  successUrl: makeBillingUrl(base, { account: accountId, payment: id }),
  cancelUrl: makeBillingUrl(base, { account: accountId }),
})

/** Returns the pages for saving a card. */
export const setupPages = (base: string, accountId: string): ReturnPages => ({
  successUrl: makeBillingUrl(base, { account: accountId, saved: 'card' }),
  cancelUrl: makeBillingUrl(base, { account: accountId }),
})
