/** Objects of the provider as notices. They are read loosely: what is missing is no notice. */
import type Stripe from 'stripe'
import type { PaymentEvent } from '../../schemas/payments/payment.ts'
import type {
  MethodNotice,
  PaymentNotice,
  ProviderNotice,
  ReversalNotice,
} from '../../schemas/payments/provider.ts'

/** Our id of a payment, in the metadata of the provider's objects. */
export const PAYMENT_KEY = 'tollgate_payment'

type Reference = string | { readonly id: string } | null | undefined

const readId = (reference: Reference): string | null =>
  typeof reference === 'string' ? reference : (reference?.id ?? null)

/** Returns the state of a payment by its hosted page; null for one that is not ours. */
export function toSessionNotice(session: Stripe.Checkout.Session): PaymentNotice | null {
  const paymentId = session.metadata?.[PAYMENT_KEY]
  if (session.mode !== 'payment' || paymentId === undefined) return null
  return {
    about: 'payment',
    event: readSessionEvent(session),
    paymentId,
    customerId: readId(session.customer),
    sessionId: session.id,
    intentId: readId(session.payment_intent),
    url: session.url,
    amount: BigInt(session.amount_total ?? 0),
    currency: session.currency ?? '',
  }
}

function readSessionEvent({ status, payment_status }: Stripe.Checkout.Session): PaymentEvent {
  if (status === 'expired') return 'expired'
  return status === 'complete' && payment_status === 'paid' ? 'paid' : 'opened'
}

/** Returns the state of a payment by its intent; null for one that is not ours. */
export function toIntentNotice(intent: Stripe.PaymentIntent): PaymentNotice | null {
  const paymentId = intent.metadata?.[PAYMENT_KEY]
  if (paymentId === undefined) return null
  const isPaid = intent.status === 'succeeded'
  return {
    about: 'payment',
    event: isPaid ? 'paid' : 'opened',
    paymentId,
    customerId: readId(intent.customer),
    sessionId: null,
    intentId: intent.id,
    amount: BigInt(isPaid ? intent.amount_received : intent.amount),
    currency: intent.currency,
  }
}

/** Returns the state of a charge of a saved card: one that waits for another card has failed. */
export function chargeNotice(intent: Stripe.PaymentIntent): PaymentNotice | null {
  const notice = toIntentNotice(intent)
  const hasFailed = intent.status === 'requires_payment_method' || intent.status === 'canceled'
  return notice && hasFailed ? { ...notice, event: 'failed', failureCode: 'declined' } : notice
}

/** A refund takes its money as soon as it is made, also where its customer must act, and gives it back when it fails. */
export function refundNotice(refund: Stripe.Refund): ReversalNotice | null {
  const intentId = readId(refund.payment_intent)
  if (intentId === null) return null
  const hasFailed = refund.status === 'failed' || refund.status === 'canceled'
  return {
    about: 'reversal',
    event: hasFailed ? 'gave_back' : 'took',
    kind: 'refund',
    id: refund.id,
    intentId,
    amount: BigInt(refund.amount),
    currency: refund.currency,
  }
}

/**
 * A dispute takes the money while it is open. An inquiry, `warning_…`, takes none; neither does one that a refund has
 * prevented, which is reported as that refund.
 */
export function disputeNotice(dispute: Stripe.Dispute): ReversalNotice | null {
  const intentId = readId(dispute.payment_intent)
  const { status, balance_transactions: moves } = dispute
  if (intentId === null || status.startsWith('warning_')) return null
  if (status === 'prevented' && !moves?.length) return null
  return {
    about: 'reversal',
    event: status === 'won' ? 'gave_back' : 'took',
    kind: 'chargeback',
    id: dispute.id,
    intentId,
    amount: BigInt(dispute.amount),
    currency: dispute.currency,
  }
}

function toMethodNotice(
  { id, card, created }: Stripe.PaymentMethod,
  event: MethodNotice['event'],
  customerId: string | null,
): MethodNotice | null {
  if (card == null || customerId === null) return null
  return {
    about: 'method',
    event,
    id,
    customerId,
    brand: card.brand,
    last4: card.last4,
    expires: `${String(card.exp_month).padStart(2, '0')}/${card.exp_year}`,
    createdAt: new Date(created * 1000),
  }
}

/** Types of events that are read; the provider is to send no others. */
export const EVENT_TYPES = [
  'checkout.session.completed',
  'checkout.session.async_payment_succeeded',
  'checkout.session.async_payment_failed',
  'checkout.session.expired',
  'payment_intent.succeeded',
  'payment_method.attached',
  'payment_method.detached',
  'refund.created',
  'refund.updated',
  'refund.failed',
  'charge.dispute.created',
  'charge.dispute.updated',
  'charge.dispute.closed',
] as const

/** Returns what an event says about us; null where it says nothing. */
export function toNotice(event: Stripe.Event): ProviderNotice | null {
  switch (event.type) {
    case 'checkout.session.completed':
    case 'checkout.session.async_payment_succeeded':
    case 'checkout.session.expired':
      return toSessionNotice(event.data.object)
    case 'checkout.session.async_payment_failed': {
      const notice = toSessionNotice(event.data.object)
      return notice && { ...notice, event: 'failed', failureMessage: 'The bank refused the payment.' }
    }
    case 'payment_intent.succeeded':
      return toIntentNotice(event.data.object)
    case 'payment_method.attached':
      return toMethodNotice(event.data.object, 'saved', readId(event.data.object.customer))
    case 'payment_method.detached': {
      const before = event.data.previous_attributes as { customer?: Reference } | undefined
      return toMethodNotice(event.data.object, 'removed', readId(before?.customer))
    }
    case 'refund.created':
    case 'refund.updated':
    case 'refund.failed':
      return refundNotice(event.data.object)
    case 'charge.dispute.created':
    case 'charge.dispute.updated':
    case 'charge.dispute.closed':
      return disputeNotice(event.data.object)
    default:
      return null
  }
}
