/** Objects of the payment provider, as it sends them and as they are kept. */

export type Metadata = Readonly<Record<string, string>>

/** What every object has. */
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

/** What a hosted page does besides, which the provider does not send. */
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
