/**
 * Payments by card: the states of a payment and of what is taken back of it, with the effect of every event in every
 * state. See docs/payments.md, "States".
 */
import type { Credits } from '../money.ts'

export const PAYMENT_KINDS = ['checkout', 'automatic'] as const
export type PaymentKind = (typeof PAYMENT_KINDS)[number]

export const PAYMENT_STATES = [
  /** The row exists; the provider may not know of it. */
  'created',
  /** The provider waits for the customer, or for the bank. */
  'open',
  /** An automatic payment that only its customer can confirm. */
  'confirming',
  /** The provider has the money, and the credits are booked. */
  'paid',
  'failed',
  'expired',
] as const
export type PaymentState = (typeof PAYMENT_STATES)[number]

/** States in which the provider may still take the money. */
export const OPEN_STATES = ['created', 'open', 'confirming'] as const satisfies readonly PaymentState[]

export type PaymentEvent =
  /** The provider has it, and waits. */
  | 'opened'
  /** The bank wants the customer to confirm. */
  | 'confirmation_needed'
  | 'paid'
  | 'failed'
  | 'expired'

/** Null: the event changes nothing. */
type Transitions = Readonly<Record<PaymentEvent, PaymentState | null>>

const NOTHING: Transitions = {
  opened: null,
  confirmation_needed: null,
  paid: null,
  failed: null,
  expired: null,
}

/** Money that the provider has is booked in every state: an event that comes late is an event all the same. */
export const PAYMENT_TRANSITIONS: Readonly<Record<PaymentState, Transitions>> = {
  created: {
    opened: 'open',
    confirmation_needed: 'confirming',
    paid: 'paid',
    failed: 'failed',
    expired: 'expired',
  },
  open: {
    ...NOTHING,
    confirmation_needed: 'confirming',
    paid: 'paid',
    failed: 'failed',
    expired: 'expired',
  },
  confirming: { ...NOTHING, paid: 'paid', failed: 'failed', expired: 'expired' },
  paid: NOTHING,
  failed: { ...NOTHING, paid: 'paid' },
  expired: { ...NOTHING, paid: 'paid' },
}

const REVERSAL_KINDS = ['refund', 'chargeback'] as const
export type ReversalKind = (typeof REVERSAL_KINDS)[number]

/** Of money that the provider took back. */
export type ReversalState = 'taken' | 'returned'

/** `took`: a refund was made, or a dispute opened. `gave_back`: the refund failed, or the dispute was won. */
export type ReversalEvent = 'took' | 'gave_back'

/** `unknown`: the provider has not reported it before. What was given back is never taken again. */
export const REVERSAL_TRANSITIONS: Readonly<
  Record<ReversalState | 'unknown', Readonly<Record<ReversalEvent, ReversalState | null>>>
> = {
  unknown: { took: 'taken', gave_back: 'returned' },
  taken: { took: null, gave_back: 'returned' },
  returned: { took: null, gave_back: null },
}

/** An amount of money in the smallest unit of its currency. */
export interface Price {
  readonly amount: bigint
  /** ISO 4217, in lower case. */
  readonly currency: string
}

export interface Payment extends Price {
  /** `pay_` + ULID. */
  readonly id: string
  readonly accountId: string
  readonly kind: PaymentKind
  readonly state: PaymentState
  readonly credits: Credits
  /** The provider's ids; null before it has given them. */
  readonly sessionId: string | null
  readonly intentId: string | null
  /** The page at which the customer pays or confirms. */
  readonly url: string | null
  readonly failureCode: string | null
  readonly failureMessage: string | null
  /** Money that was taken back and not given back. */
  readonly refunded: bigint
  readonly disputed: bigint
  readonly creditsTaken: Credits
  readonly createdBy: string
  readonly createdAt: Date
  readonly paidAt: Date | null
}

export interface SavedMethod {
  /** The provider's id. */
  readonly id: string
  readonly accountId: string
  readonly brand: string
  readonly last4: string
  /** `MM/YYYY` */
  readonly expires: string
  readonly createdAt: Date
}

/** A receipt of a payment, or the credit note of a refund. Numbers have no gaps. */
export interface Receipt extends Price {
  readonly number: bigint
  readonly kind: 'receipt' | 'credit_note'
  readonly paymentId: string
  readonly reversalId: string | null
  readonly accountId: string
  /** As the account was called then. */
  readonly accountName: string
  readonly credits: Credits
  readonly issuedAt: Date
}

/** Why automatic top-ups are switched off by the service itself. Money that went back is not charged again unasked. */
export const OFF_REASONS = ['failures', 'method_removed', ...REVERSAL_KINDS] as const
export type OffReason = (typeof OFF_REASONS)[number]

export interface AutomaticTopUp {
  readonly accountId: string
  readonly isEnabled: boolean
  /** A balance below this is topped up. */
  readonly threshold: Credits
  readonly amount: Credits
  /** Most credits in one calendar month, UTC. */
  readonly monthlyMaximum: Credits
  /** Attempts that failed in succession. */
  readonly failures: number
  readonly offReason: OffReason | null
  /** No attempt begins before: after a failure, or because the month's maximum is reached. */
  readonly waitsUntil: Date | null
  readonly waitsFor: 'retry' | 'month' | null
}

/** After this many failures in a row automatic top-ups switch themselves off. */
export const MAX_FAILURES = 3
