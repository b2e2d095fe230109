/** The books of the payment provider: its objects and their events. A file keeps them, if one is named. */

import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import type {
  Customer,
  Dispute,
  Intent,
  Metadata,
  Method,
  PaymentObject,
  ProviderEvent,
  Refund,
  Session,
  SessionPlan,
  Stamped,
} from './objects.ts'

const API_VERSION = '2025-10-29.clover'
const ID_BYTES = 12
const MS_PER_SECOND = 1000

type Kept = {
  customers: Record<string, Customer>
  sessions: Record<string, Session>
  plans: Record<string, SessionPlan>
  intents: Record<string, Intent>
  methods: Record<string, Method>
  /** Card numbers, by the id of the payment method. */
  numbers: Record<string, string>
  refunds: Record<string, Refund>
  disputes: Record<string, Dispute>
  events: ProviderEvent[]
  /** Answers by Idempotency-Key. */
  answers: Record<string, { request: string; status: number; body: string }>
}

const NOTHING: Kept = {
  customers: {},
  sessions: {},
  plans: {},
  intents: {},
  methods: {},
  numbers: {},
  refunds: {},
  disputes: {},
  events: [],
  answers: {},
}

export class PaymentBook {
  readonly kept: Kept
  /** Directives of every request to the payment provider; null for none. */
  directives: string | null = null
  readonly #file: string | null
  readonly #onEvent: (event: ProviderEvent) => void
  /** The seconds by which its clock is ahead. */
  #ahead = 0

  /** @param file keeps the books; null keeps them in memory */
  constructor(file: string | null, onEvent: (event: ProviderEvent) => void) {
    this.#file = file
    this.#onEvent = onEvent
    const text = file !== null && existsSync(file) ? readFileSync(file, 'utf8') : '{}'
    this.kept = { ...structuredClone(NOTHING), ...JSON.parse(text) }
  }

  now(): number {
    return Math.floor(Date.now() / MS_PER_SECOND) + this.#ahead
  }

  /** Makes the first fields of a new object. */
  stamp<Kind extends string>(prefix: string, object: Kind): Stamped<Kind> {
    const id = `${prefix}_${randomBytes(ID_BYTES).toString('hex')}`
    return { id, object, created: this.now() }
  }

  /** Advances the clock. */
  advance(seconds: number): void {
    this.#ahead += seconds
  }

  save(): void {
    if (this.#file === null) return
    writeFileSync(`${this.#file}.new`, JSON.stringify(this.kept), { mode: 0o600 })
    renameSync(`${this.#file}.new`, this.#file)
  }

  /** Records an event with the object's present state, and passes it to the webhooks. */
  tell(type: string, object: PaymentObject, previous?: object): void {
    const event: ProviderEvent = {
      ...this.stamp('evt', 'event'),
      type,
      api_version: API_VERSION,
      livemode: false,
      data: { object: structuredClone(object), ...(previous && { previous_attributes: previous }) },
    }
    this.kept.events.push(event)
    this.save()
    this.#onEvent(event)
  }

  saveCard(
    number: string,
    brand: string,
    customer: string,
    expires: { month: number; year: number },
  ): Method {
    const method: Method = {
      ...this.stamp('pm', 'payment_method'),
      type: 'card',
      card: { brand, last4: number.slice(-4), exp_month: expires.month, exp_year: expires.year },
      customer,
    }
    this.kept.methods[method.id] = method
    this.kept.numbers[method.id] = number
    this.tell('payment_method.attached', method)
    return method
  }

  newIntent(
    wanted: Pick<Intent, 'amount' | 'currency' | 'customer' | 'payment_method'> & { metadata: Metadata },
  ): Intent {
    const intent: Intent = {
      ...this.stamp('pi', 'payment_intent'),
      ...wanted,
      status: 'requires_payment_method',
      amount_received: 0,
      latest_charge: null,
    }
    this.kept.intents[intent.id] = intent
    return intent
  }

  /** Takes the money. */
  succeed(intent: Intent): void {
    intent.status = 'succeeded'
    intent.amount_received = intent.amount
    intent.latest_charge = {
      ...this.stamp('ch', 'charge'),
      amount: intent.amount,
      currency: intent.currency,
      payment_intent: intent.id,
      amount_refunded: 0,
      disputed: false,
    }
    this.tell('payment_intent.succeeded', intent)
  }

  /** Refunds money; null if it is more than is left. */
  refund(intent: Intent, amount: number | null, metadata: Metadata): Refund | null {
    const charge = intent.latest_charge
    const left = charge === null ? 0 : charge.amount - charge.amount_refunded
    const given = amount ?? left
    if (charge === null || given <= 0 || given > left) return null
    charge.amount_refunded += given
    const refund: Refund = {
      ...this.stamp('re', 'refund'),
      amount: given,
      currency: intent.currency,
      payment_intent: intent.id,
      metadata,
      status: 'succeeded',
    }
    this.kept.refunds[refund.id] = refund
    this.tell('refund.created', refund)
    return refund
  }

  /** Makes a refund fail, as when the customer's bank returns it. */
  failRefund(refund: Refund): void {
    refund.status = 'failed'
    const charge = this.kept.intents[refund.payment_intent]?.latest_charge
    if (charge) charge.amount_refunded -= refund.amount
    this.tell('refund.failed', refund)
  }

  /** Opens a dispute, possibly for more than was paid if the exchange rate has changed. */
  dispute(intent: Intent, amount: number | null): Dispute {
    const dispute: Dispute = {
      ...this.stamp('du', 'dispute'),
      amount: amount ?? intent.amount,
      currency: intent.currency,
      payment_intent: intent.id,
      status: 'needs_response',
    }
    this.kept.disputes[dispute.id] = dispute
    if (intent.latest_charge !== null) intent.latest_charge.disputed = true
    this.tell('charge.dispute.created', dispute)
    return dispute
  }

  closeDispute(dispute: Dispute, status: 'won' | 'lost'): void {
    dispute.status = status
    this.tell('charge.dispute.closed', dispute)
  }

  /** Closes an unpaid page. */
  expire(session: Session): void {
    if (session.status !== 'open') return
    session.status = 'expired'
    session.url = null
    this.tell('checkout.session.expired', session)
  }
}
