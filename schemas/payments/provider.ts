/** Reports of the payment provider, as its adapter reads them. */
import type { PaymentEvent, Price, ReversalEvent, ReversalKind } from './payment.ts'

/** The state of one of our payments. */
export interface PaymentNotice extends Price {
  readonly about: 'payment'
  readonly event: PaymentEvent
  /** Our id of it, which the provider was given. */
  readonly paymentId: string
  readonly customerId: string | null
  readonly sessionId: string | null
  readonly intentId: string | null
  readonly url?: string | null
  readonly failureCode?: string | null
  readonly failureMessage?: string | null
}

/** Money that was taken back of a payment, or given back. */
export interface ReversalNotice extends Price {
  readonly about: 'reversal'
  readonly event: ReversalEvent
  readonly kind: ReversalKind
  /** The provider's id of the refund or the dispute. */
  readonly id: string
  readonly intentId: string
}

/** A saved card. */
export interface MethodNotice {
  readonly about: 'method'
  readonly event: 'saved' | 'removed'
  readonly id: string
  readonly customerId: string
  readonly brand: string
  readonly last4: string
  readonly expires: string
  readonly createdAt: Date
}

export type ProviderNotice = PaymentNotice | ReversalNotice | MethodNotice

export interface ProviderEvent {
  /** The provider's id: an event that comes again has the same. */
  readonly id: string
  readonly type: string
  readonly createdAt: Date
  /** Null: it is about nothing of ours. */
  readonly notice: ProviderNotice | null
}

/**
 * `taken`: rows changed. `unchanged`: there was nothing to change. `seen`: the event came before. `refused`: it
 * contradicts our own row. `payment_unknown`: no paid payment of ours has this intent; the provider knows more.
 */
export type TakenNotice =
  | {
      readonly outcome: 'taken' | 'unchanged' | 'seen' | 'payment_unknown'
      readonly paymentId: string | null
    }
  | { readonly outcome: 'refused'; readonly paymentId: string | null; readonly refusal: string }

/** One paid payment of ours in the provider's books. */
export interface ProviderPayment extends Price {
  readonly paymentId: string
  readonly intentId: string
  readonly refunded: bigint
  readonly disputed: bigint
}

/** Settings of the payment provider. Holds secrets. */
export interface PaymentSettings {
  readonly secretKey: string
  /** Any of them signs a valid event: two during a rotation. */
  readonly webhookSecrets: readonly string[]
  /** Null: the vendor's own address. */
  readonly apiUrl: string | null
}
