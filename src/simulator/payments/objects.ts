/** Objects of the payment provider, as it sends them and as they are kept. */

export type Metadata = Readonly<Record<string, string>>

export type Customer = {
  readonly id: string
  readonly object: 'customer'
  readonly created: number
  readonly name: string | null
  readonly metadata: Metadata
}

export type Session = {
  readonly id: string
  readonly object: 'checkout.session'
  readonly created: number
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

/** What a hosted page does besides, which the provider does not send. */
export type SessionPlan = {
  readonly intentMetadata: Metadata
  readonly savesCard: boolean
  /** The card that waits for its customer's confirmation. */
  waiting: string | null
}

export type Intent = {
  readonly id: string
  readonly object: 'payment_intent'
  readonly created: number
  readonly amount: number
  readonly currency: string
  readonly customer: string
  readonly metadata: Metadata
  readonly payment_method: string | null
  status: 'requires_payment_method' | 'succeeded' | 'canceled'
  amount_received: number
  latest_charge: Charge | null
}

export type Charge = {
  readonly id: string
  readonly object: 'charge'
  readonly created: number
  readonly amount: number
  readonly currency: string
  readonly payment_intent: string
  amount_refunded: number
  disputed: boolean
}

export type Method = {
  readonly id: string
  readonly object: 'payment_method'
  readonly created: number
  readonly type: 'card'
  readonly card: { brand: string; last4: string; exp_month: number; exp_year: number }
  customer: string | null
}

export type Refund = {
  readonly id: string
  readonly object: 'refund'
  readonly created: number
  readonly amount: number
  readonly currency: string
  readonly payment_intent: string
  readonly metadata: Metadata
  status: 'succeeded' | 'failed'
}

export type Dispute = {
  readonly id: string
  readonly object: 'dispute'
  readonly created: number
  readonly amount: number
  readonly currency: string
  readonly payment_intent: string
  status: 'needs_response' | 'won' | 'lost'
}

export type PaymentObject = Customer | Session | Intent | Method | Refund | Dispute

export type ProviderEvent = {
  readonly id: string
  readonly object: 'event'
  readonly created: number
  readonly type: string
  readonly api_version: string
  readonly livemode: false
  readonly data: { readonly object: PaymentObject; readonly previous_attributes?: object }
}
