/** Objects of the payment provider. */

export type Metadata = Readonly<Record<string, string>>

/** The fields of every object. */
export type Stamped<Kind extends string> = {
  readonly id: string
  readonly object: Kind
  readonly created: number
}

type Money = { readonly amount: number; readonly currency: string }

export type Customer = Stamped<'customer'> & {
  readonly name: string | null
  readonly metadata: Metadata
}

export type Session = Stamped<'checkout.session'> & {
  readonly mode: 'payment' | 'setup'
  readonly customer: string
  readonly client_reference_id: string | null
  readonly metadata: Metadata
  readonly amount_total: number | null
  readonly currency: string | null
  readonly success_url: string
  readonly cancel_url: string
  readonly expires_at: number
  status: 'open' | 'complete' | 'expired'
  payment_status: 'paid' | 'unpaid' | 'no_payment_required'
  payment_intent: string | null
  url: string | null
}

/** Fields of a hosted page that the provider does not send. */
export type SessionPlan = {
  readonly intentMetadata: Metadata
  readonly savesCard: boolean
  /** The card that waits for its customer's confirmation. */
  waiting: string | null
}

export type Intent = Stamped<'payment_intent'> &
  Money & {
    readonly customer: string
    readonly metadata: Metadata
    readonly payment_method: string | null
    status: 'requires_payment_method' | 'succeeded' | 'canceled'
    amount_received: number
    latest_charge: Charge | null
  }

type Charge = Stamped<'charge'> &
  Money & {
    readonly payment_intent: string
    amount_refunded: number
    disputed: boolean
  }

export type Method = Stamped<'payment_method'> & {
  readonly type: 'card'
  readonly card: { brand: string; last4: string; exp_month: number; exp_year: number }
  customer: string | null
}

export type Refund = Stamped<'refund'> &
  Money & {
    readonly payment_intent: string
    readonly metadata: Metadata
    status: 'succeeded' | 'failed'
  }

export type Dispute = Stamped<'dispute'> &
  Money & {
    readonly payment_intent: string
    status: 'needs_response' | 'won' | 'lost'
  }

export type PaymentObject = Customer | Session | Intent | Method | Refund | Dispute

export type ProviderEvent = Stamped<'event'> & {
  readonly type: string
  readonly api_version: string
  readonly livemode: false
  readonly data: { readonly object: PaymentObject; readonly previous_attributes?: object }
}

/** `confirm`: only the customer can continue. */
type CardAnswer = 'paid' | 'confirm' | { readonly declined: string; readonly message: string }

type TestCard = {
  readonly brand: string
  /** The answer while the customer is present. */
  readonly present: CardAnswer
  /** The answer to a charge of the saved card without the customer. */
  readonly absent: CardAnswer
}

const declined = (code: string, message: string): CardAnswer => ({ declined: code, message })
const REFUSED = declined('generic_decline', 'Your card was declined.')
const NO_MONEY = declined('insufficient_funds', 'Your card has insufficient funds.')

const TEST_CARDS: Readonly<Record<string, TestCard>> = {
  '4242424242424242': { brand: 'visa', present: 'paid', absent: 'paid' },
  '5555555555554444': { brand: 'mastercard', present: 'paid', absent: 'paid' },
  '4000000000000002': { brand: 'visa', present: REFUSED, absent: REFUSED },
  '4000000000009995': { brand: 'visa', present: NO_MONEY, absent: NO_MONEY },
  // Can be saved, but each charge fails.
  '4000000000000341': { brand: 'visa', present: 'paid', absent: REFUSED },
  // Requires 3-D Secure once, when it is saved.
  '4000002500003155': { brand: 'visa', present: 'confirm', absent: 'paid' },
  // Requires 3-D Secure every time.
  '4000002760003184': { brand: 'visa', present: 'confirm', absent: 'confirm' },
}

/** Returns the test card with this number, with or without spaces; null for another number. */
export const testCard = (number: string): (TestCard & { readonly number: string }) | null => {
  const digits = number.replace(/\D/g, '')
  const card = TEST_CARDS[digits]
  return card === undefined ? null : { ...card, number: digits }
}
