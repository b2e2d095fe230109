/** The payment provider, Stripe, by its own library. */
import type Stripe from 'stripe'
import { Failure } from '../../schemas/failure.ts'
import type { Payment } from '../../schemas/payments/payment.ts'
import type {
  PaymentNotice,
  PaymentSettings,
  ProviderEvent,
  ProviderPayment,
  ReversalNotice,
} from '../../schemas/payments/provider.ts'
import {
  chargeNotice,
  disputeNotice,
  EVENT_TYPES,
  PAYMENT_KEY,
  refundNotice,
  toIntentNotice,
  toNotice,
  toSessionNotice,
} from './notices.ts'

const TIMEOUT_MS = 20_000
/** Of the library, each with the same Idempotency-Key. */
const MAX_RETRIES = 2
const PAGE_ENTRIES = 100
const ACCOUNT_KEY = 'tollgate_account'
const MS_PER_SECOND = 1000

/** A page of the provider, and where it leads back to. */
export interface Pages {
  readonly successUrl: string
  readonly cancelUrl: string
}

export interface ChargedCard {
  readonly payment: Payment
  readonly customerId: string
  readonly methodId: string
}

/** A refusal of the card. `confirmation_required`: only the customer can go on. */
export interface Decline {
  readonly code: string
  readonly message: string
  readonly intentId: string | null
}

/** Returns the provider. The library is loaded by those who have one. */
export async function openProvider(settings: PaymentSettings): Promise<Provider> {
  const { default: Client } = await import('stripe')
  const { secretKey, webhookSecrets, apiUrl } = settings
  const stripe = new Client(secretKey, {
    ...(apiUrl !== null && parseApiUrl(apiUrl)),
    timeout: TIMEOUT_MS,
    maxNetworkRetries: MAX_RETRIES,
    telemetry: false,
  })
  return new Provider(stripe, webhookSecrets)
}

/** Returns a function that opens the provider once; null where there is none. */
export function openLazyProvider(settings: PaymentSettings | null): (() => Promise<Provider>) | null {
  if (settings === null) return null
  let opening: Promise<Provider> | null = null
  return () => {
    opening ??= openProvider(settings)
    return opening
  }
}

function parseApiUrl(apiUrl: string) {
  const { protocol, hostname, port } = new URL(apiUrl)
  return {
    protocol: protocol === 'https:' ? ('https' as const) : ('http' as const),
    host: hostname,
    ...(port !== '' && { port: Number(port) }),
  }
}

/** Returns whether another try may succeed: the provider is down, overloaded, or still busy with the same request. */
function isTransient(error: unknown): boolean {
  const { type, statusCode, code } = error as { type?: string; statusCode?: number; code?: string }
  return (
    type === 'StripeConnectionError' ||
    type === 'StripeRateLimitError' ||
    code === 'idempotency_key_in_use' ||
    code === 'lock_timeout' ||
    (statusCode !== undefined && statusCode >= 500)
  )
}

/** Turns an error of the library into a failure. Its text may name parts of the key: it stays in the log. */
function toFailure(error: unknown): unknown {
  const { type, message } = error as { type?: string; message?: string }
  if (type?.startsWith('Stripe') !== true) return error
  const internal = `the payment provider: ${type}: ${message}`
  if (isTransient(error))
    return new Failure('service_unavailable', 'The payment provider does not answer. Try again.', {
      internal,
    })
  if (type === 'StripeInvalidRequestError' || type === 'StripeCardError')
    return new Failure('invalid_request', `The payment provider refuses this: ${message}`, { internal })
  if (type === 'StripeIdempotencyError')
    return new Failure('idempotency_key_reuse', 'This Idempotency-Key was used with a different request.', {
      internal,
    })
  return new Failure('upstream_error', 'The payment provider refuses the service. Ask its operator.', {
    internal,
  })
}

const ask = async <T>(work: Promise<T>): Promise<T> => {
  try {
    return await work
  } catch (error) {
    throw toFailure(error)
  }
}

/** Returns null for what the provider does not know: it was made with other keys, or deleted there. */
const catchMissing = async <T>(work: Promise<T>): Promise<T | null> => {
  try {
    return await work
  } catch (error) {
    if ((error as { code?: string }).code === 'resource_missing') return null
    throw toFailure(error)
  }
}

const filterAfter = (since: Date) => ({ created: { gte: Math.floor(since.getTime() / MS_PER_SECOND) } })

const toLine = (payment: Payment): Stripe.Checkout.SessionCreateParams.LineItem => ({
  quantity: 1,
  price_data: {
    currency: payment.currency,
    unit_amount: Number(payment.amount),
    product_data: { name: 'Credits' },
  },
})

const toMetadata = ({ id, accountId }: Payment) => ({ [PAYMENT_KEY]: id, [ACCOUNT_KEY]: accountId })

export class Provider {
  readonly #stripe: Stripe
  readonly #webhookSecrets: readonly string[]

  constructor(stripe: Stripe, webhookSecrets: readonly string[]) {
    this.#stripe = stripe
    this.#webhookSecrets = webhookSecrets
  }

  /**
   * Reads an event that the provider sent.
   * @throws Failure `invalid_request` where no secret signed it, or it was signed long ago
   */
  readEvent(body: Buffer, signature: string): ProviderEvent {
    for (const secret of this.#webhookSecrets)
      try {
        return toEvent(this.#stripe.webhooks.constructEvent(body, signature, secret))
      } catch (error) {
        if ((error as { type?: string }).type !== 'StripeSignatureVerificationError') throw error
      }
    throw new Failure('invalid_request', 'Stripe-Signature: is missing, too old, or by another secret.')
  }

  /** Returns whether the provider has the customer. One that was deleted there is known to it, and cannot pay. */
  async hasCustomer(id: string): Promise<boolean> {
    const customer = await catchMissing(this.#stripe.customers.retrieve(id))
    return customer !== null && customer.deleted !== true
  }

  /**
   * Creates the account at the provider, once in place of each former customer. Returns the provider's id.
   * @param former null: the account had none
   */
  async createCustomer(accountId: string, name: string, former: string | null = null): Promise<string> {
    const wanted = { name, metadata: { [ACCOUNT_KEY]: accountId } }
    const options = { idempotencyKey: `customer-${accountId}${former === null ? '' : `-${former}`}` }
    return (await ask(this.#stripe.customers.create(wanted, options))).id
  }

  /** Opens the hosted page of a payment; the same one, when it is asked for again. */
  async openCheckout(
    payment: Payment,
    customerId: string,
    { savesMethod, attempt = 'checkout', ...pages }: Pages & { savesMethod: boolean; attempt?: string },
  ): Promise<PaymentNotice> {
    const metadata = toMetadata(payment)
    const session = await ask(
      this.#stripe.checkout.sessions.create(
        {
          mode: 'payment',
          customer: customerId,
          client_reference_id: payment.id,
          line_items: [toLine(payment)],
          metadata,
          payment_intent_data: {
            metadata,
            ...(savesMethod && { setup_future_usage: 'off_session' as const }),
          },
          success_url: pages.successUrl,
          cancel_url: pages.cancelUrl,
        },
        { idempotencyKey: `${attempt}-${payment.id}` },
      ),
    )
    return toSessionNotice(session)!
  }

  /** Opens the hosted page that saves a card. Returns its address. */
  async openSetup(customerId: string, currency: string, pages: Pages): Promise<string> {
    const session = await ask(
      this.#stripe.checkout.sessions.create({
        mode: 'setup',
        currency,
        customer: customerId,
        success_url: pages.successUrl,
        cancel_url: pages.cancelUrl,
      }),
    )
    return session.url!
  }

  /**
   * Charges a saved card without its customer, once for each payment.
   * @throws Failure where whether it was charged is not known: ask again
   */
  async charge({ payment, customerId, methodId }: ChargedCard): Promise<PaymentNotice | Decline> {
    try {
      const intent = await this.#stripe.paymentIntents.create(
        {
          amount: Number(payment.amount),
          currency: payment.currency,
          customer: customerId,
          payment_method: methodId,
          off_session: true,
          confirm: true,
          metadata: toMetadata(payment),
        },
        { idempotencyKey: `charge-${payment.id}` },
      )
      return toIntentNotice(intent)!
    } catch (error) {
      if (isTransient(error)) throw toFailure(error)
      const { type, code, decline_code, message, payment_intent } = error as Stripe.errors.StripeError
      if (type !== 'StripeCardError' && type !== 'StripeInvalidRequestError') throw toFailure(error)
      return {
        code:
          code === 'authentication_required' ? 'confirmation_required' : (decline_code ?? code ?? 'declined'),
        message: message ?? '',
        intentId: payment_intent?.id ?? null,
      }
    }
  }

  /** Makes sure that an intent takes no more money. */
  async cancelIntent(id: string): Promise<void> {
    try {
      await this.#stripe.paymentIntents.cancel(id)
    } catch (error) {
      if ((error as { code?: string }).code !== 'payment_intent_unexpected_state') throw toFailure(error)
    }
  }

  /** Removes a saved card. Removing one that the provider does not have changes nothing. */
  async removeMethod(id: string): Promise<void> {
    const method = await catchMissing(this.#stripe.paymentMethods.retrieve(id))
    if (method !== null && method.customer !== null) await ask(this.#stripe.paymentMethods.detach(id))
  }

  /** Refunds a part of a payment, or all that is left of it; once for each key. */
  async refund(
    intentId: string,
    amount: bigint | null,
    { paymentId, key }: { readonly paymentId: string; readonly key: string },
  ): Promise<ReversalNotice> {
    const metadata = { [PAYMENT_KEY]: paymentId }
    const wanted = {
      payment_intent: intentId,
      metadata,
      ...(amount !== null && { amount: Number(amount) }),
    }
    return refundNotice(await ask(this.#stripe.refunds.create(wanted, { idempotencyKey: key })))!
  }

  /** Reads the state of an intent; null for one that is not ours. */
  async readIntent(id: string): Promise<PaymentNotice | null> {
    return toIntentNotice(await ask(this.#stripe.paymentIntents.retrieve(id)))
  }

  /** Reads the state of a payment; null for one that the provider does not know. */
  async readPayment({ kind, sessionId, intentId }: Payment): Promise<PaymentNotice | null> {
    if (sessionId !== null) {
      const session = await catchMissing(this.#stripe.checkout.sessions.retrieve(sessionId))
      return session && toSessionNotice(session)
    }
    const intent =
      intentId === null ? null : await catchMissing(this.#stripe.paymentIntents.retrieve(intentId))
    return intent && (kind === 'automatic' ? chargeNotice(intent) : toIntentNotice(intent))
  }

  /** Finds the charge of a saved card among those of its customer; null where it was never made. */
  async findCharge({ payment, customerId }: ChargedCard): Promise<PaymentNotice | null> {
    const range = { ...filterAfter(payment.createdAt), customer: customerId, limit: PAGE_ENTRIES }
    const find = async () => {
      for await (const intent of this.#stripe.paymentIntents.list(range))
        if (toIntentNotice(intent)?.paymentId === payment.id) return chargeNotice(intent)
      return null
    }
    return catchMissing(find())
  }

  /** Reads the events that the provider has made since an instant, the oldest first. */
  async listEvents(since: Date): Promise<ProviderEvent[]> {
    const events: ProviderEvent[] = []
    const wanted = { ...filterAfter(since), types: [...EVENT_TYPES], limit: PAGE_ENTRIES }
    const read = async () => {
      for await (const event of this.#stripe.events.list(wanted)) events.push(toEvent(event))
    }
    await ask(read())
    return events.reverse()
  }

  /** Reads our paid payments of the provider's books since an instant. */
  async listPaid(since: Date): Promise<ProviderPayment[]> {
    const range = { ...filterAfter(since), limit: PAGE_ENTRIES }
    const disputes: ReversalNotice[] = []
    const paid: ProviderPayment[] = []
    const read = async () => {
      for await (const dispute of this.#stripe.disputes.list(range)) {
        const notice = disputeNotice(dispute)
        if (notice?.event === 'took') disputes.push(notice)
      }
      for await (const intent of this.#stripe.paymentIntents.list({
        ...range,
        expand: ['data.latest_charge'],
      })) {
        const notice = toIntentNotice(intent)
        if (notice?.event !== 'paid') continue
        const charge = intent.latest_charge as Stripe.Charge
        paid.push({
          paymentId: notice.paymentId,
          intentId: intent.id,
          amount: notice.amount,
          currency: notice.currency,
          refunded: BigInt(charge.amount_refunded),
          disputed: sumDisputes(notice, disputes),
        })
      }
    }
    await ask(read())
    return paid
  }
}

/** Returns what disputes took of a payment: of each at most its amount, in its currency, as it is booked here. */
const sumDisputes = ({ intentId, amount, currency }: PaymentNotice, disputes: readonly ReversalNotice[]) =>
  disputes
    .filter((dispute) => dispute.intentId === intentId && dispute.currency === currency)
    .reduce((sum, dispute) => sum + (dispute.amount < amount ? dispute.amount : amount), 0n)

const toEvent = (event: Stripe.Event): ProviderEvent => ({
  id: event.id,
  type: event.type,
  createdAt: new Date(event.created * MS_PER_SECOND),
  notice: toNotice(event),
})
