/** The dialect `stripe`: customers, hosted pages, intents, cards, refunds, disputes and events, in their public shapes. */

import { BAD_KEY } from '../access.ts'
import {
  type Dialect,
  type Endpoint,
  jsonAnswer,
  type OpenedRequest,
  type ReceivedRequest,
  SimulatedFailure,
  type WholeAnswer,
} from '../dialect.ts'
import { preventsWork } from '../directives/faults.ts'
import type { PaymentBook } from './book.ts'
import { type FormFields, inner, readFields, readText, readTexts } from './form.ts'
import { type Session, testCard } from './objects.ts'
import { openPage, payPage } from './pages.ts'

const PAGE_SECONDS = 24 * 60 * 60
const DEFAULT_ENTRIES = 10
const MAX_ENTRIES = 100

type Asked = {
  readonly book: PaymentBook
  readonly fields: FormFields
  /** The id in the path. */
  readonly id: string
  readonly origin: string
}

type Work = (asked: Asked) => object

const stripeError = (
  status: number,
  type: string,
  message: string,
  more: Readonly<Record<string, unknown>> = {},
): SimulatedFailure => new StripeFailure(status, { type, message, ...more })

/** A failure in this provider's shape. */
class StripeFailure extends SimulatedFailure {
  readonly error: Readonly<Record<string, unknown>>

  constructor(status: number, error: Readonly<Record<string, unknown>>) {
    super(status, status === 404 ? 'not_found' : 'invalid_request', String(error.message))
    this.error = error
  }
}

const missing = (what: string, id: string) =>
  stripeError(404, 'invalid_request_error', `No such ${what}: '${id}'`, { code: 'resource_missing' })
const invalid = (message: string, code?: string) =>
  stripeError(400, 'invalid_request_error', message, { code })

const the = <T>(objects: Readonly<Record<string, T>>, what: string, id: string | null): T => {
  const found = id === null ? undefined : objects[id]
  if (found === undefined) throw missing(what, id ?? '')
  return found
}

const required = (fields: FormFields, name: string): string => {
  const value = readText(fields, name)
  if (value === null) throw invalid(`Missing required param: ${name}.`, 'parameter_missing')
  return value
}

const createCustomer: Work = ({ book, fields }) => {
  const customer = {
    ...book.stamp('cus', 'customer'),
    name: readText(fields, 'name'),
    metadata: readTexts(inner(fields, 'metadata')),
  }
  book.kept.customers[customer.id] = customer
  return customer
}

const createSession: Work = ({ book, fields, origin }) => {
  const mode = required(fields, 'mode') === 'setup' ? 'setup' : 'payment'
  const customer = the(book.kept.customers, 'customer', required(fields, 'customer')).id
  const price = inner(inner(inner(fields, 'line_items'), '0'), 'price_data')
  const intent = inner(fields, 'payment_intent_data')
  const stamp = book.stamp('cs_test', 'checkout.session')
  const { id } = stamp
  const isPayment = mode === 'payment'
  const session: Session = {
    ...stamp,
    mode,
    customer,
    client_reference_id: readText(fields, 'client_reference_id'),
    metadata: readTexts(inner(fields, 'metadata')),
    amount_total: isPayment ? Number(required(price, 'unit_amount')) : null,
    currency: isPayment ? required(price, 'currency') : readText(fields, 'currency'),
    success_url: required(fields, 'success_url'),
    cancel_url: readText(fields, 'cancel_url') ?? '',
    expires_at: book.now() + PAGE_SECONDS,
    status: 'open',
    payment_status: isPayment ? 'unpaid' : 'no_payment_required',
    payment_intent: null,
    url: `${origin}/checkout/${id}`,
  }
  book.kept.sessions[id] = session
  book.kept.plans[id] = {
    intentMetadata: readTexts(inner(intent, 'metadata')),
    savesCard: !isPayment || readText(intent, 'setup_future_usage') !== null,
    waiting: null,
  }
  return session
}

/** Charges a saved card without the customer. */
const createIntent: Work = ({ book, fields }) => {
  const method = the(book.kept.methods, 'PaymentMethod', required(fields, 'payment_method'))
  const customer = required(fields, 'customer')
  if (method.customer !== customer)
    throw invalid('The payment method does not belong to the customer.', 'resource_missing')
  const intent = book.newIntent({
    amount: Number(required(fields, 'amount')),
    currency: required(fields, 'currency'),
    customer,
    payment_method: method.id,
    metadata: readTexts(inner(fields, 'metadata')),
  })
  const answer = testCard(book.kept.numbers[method.id] ?? '')?.absent ?? 'paid'
  if (answer === 'paid') {
    book.succeed(intent)
    return intent
  }
  book.tell('payment_intent.payment_failed', intent)
  const details =
    answer === 'confirm'
      ? {
          code: 'authentication_required',
          decline_code: 'authentication_required',
          message: 'Your card was declined. This transaction requires authentication.',
        }
      : { code: 'card_declined', decline_code: answer.declined, message: answer.message }
  throw stripeError(402, 'card_error', details.message, { ...details, payment_intent: intent })
}

const cancelIntent: Work = ({ book, id }) => {
  const intent = the(book.kept.intents, 'payment_intent', id)
  if (intent.status !== 'requires_payment_method')
    throw invalid(
      `You cannot cancel this PaymentIntent: it is ${intent.status}.`,
      'payment_intent_unexpected_state',
    )
  intent.status = 'canceled'
  book.tell('payment_intent.canceled', intent)
  return intent
}

const detachMethod: Work = ({ book, id }) => {
  const method = the(book.kept.methods, 'PaymentMethod', id)
  const { customer } = method
  method.customer = null
  book.tell('payment_method.detached', method, { customer })
  return method
}

const createRefund: Work = ({ book, fields }) => {
  const intent = the(book.kept.intents, 'payment_intent', required(fields, 'payment_intent'))
  const amount = readText(fields, 'amount')
  const metadata = readTexts(inner(fields, 'metadata'))
  const refund = book.refund(intent, amount === null ? null : Number(amount), metadata)
  if (refund === null)
    throw invalid('Refund amount is greater than unrefunded amount on charge.', 'charge_already_refunded')
  return refund
}

/** Returns a page, newest first. */
function toPage<T extends { readonly id: string; readonly created: number }>(
  objects: readonly T[],
  { fields }: Asked,
  url: string,
) {
  const since = Number(readText(inner(fields, 'created'), 'gte') ?? 0)
  const after = readText(fields, 'starting_after')
  const limit = Math.min(Number(readText(fields, 'limit') ?? DEFAULT_ENTRIES), MAX_ENTRIES)
  const found = objects.filter(({ created }) => created >= since).toReversed()
  const from = after === null ? 0 : found.findIndex(({ id }) => id === after) + 1
  return { object: 'list', url, data: found.slice(from, from + limit), has_more: from + limit < found.length }
}

const listEvents: Work = (asked) => {
  const types = Object.values(readTexts(inner(asked.fields, 'types')))
  const events = asked.book.kept.events.filter(({ type }) => types.length === 0 || types.includes(type))
  return toPage(events, asked, '/v1/events')
}

const listIntents: Work = (asked) => {
  const customer = readText(asked.fields, 'customer')
  const intents = Object.values(asked.book.kept.intents)
  const wanted = intents.filter((intent) => customer === null || intent.customer === customer)
  return toPage(wanted, asked, '/v1/payment_intents')
}

const shown =
  (what: 'customers' | 'sessions' | 'intents' | 'methods', name: string): Work =>
  ({ book, id }) =>
    the<object>(book.kept[what], name, id)

const WORKS: readonly (readonly [method: 'GET' | 'POST', path: RegExp, work: Work])[] = [
  ['POST', /^\/v1\/customers$/, createCustomer],
  ['GET', /^\/v1\/customers\/(\w+)$/, shown('customers', 'customer')],
  ['POST', /^\/v1\/checkout\/sessions$/, createSession],
  ['GET', /^\/v1\/checkout\/sessions\/(\w+)$/, shown('sessions', 'checkout.session')],
  ['POST', /^\/v1\/payment_intents$/, createIntent],
  ['GET', /^\/v1\/payment_intents$/, listIntents],
  ['GET', /^\/v1\/payment_intents\/(\w+)$/, shown('intents', 'payment_intent')],
  ['POST', /^\/v1\/payment_intents\/(\w+)\/cancel$/, cancelIntent],
  ['GET', /^\/v1\/payment_methods\/(\w+)$/, shown('methods', 'PaymentMethod')],
  ['POST', /^\/v1\/payment_methods\/(\w+)\/detach$/, detachMethod],
  ['POST', /^\/v1\/refunds$/, createRefund],
  [
    'GET',
    /^\/v1\/disputes$/,
    (asked) => toPage(Object.values(asked.book.kept.disputes), asked, '/v1/disputes'),
  ],
  ['GET', /^\/v1\/events$/, listEvents],
]

/** The vendor's library sends the key as a bearer. */
function requireKey({ headers }: ReceivedRequest): void {
  const key = /^Bearer\s+(\S+)$/i.exec(headers.authorization ?? '')?.[1]
  if (key === undefined || key === BAD_KEY)
    throw stripeError(401, 'invalid_request_error', 'Invalid API Key provided.')
}

const open =
  (method: 'GET' | 'POST', work: Work): Endpoint['open'] =>
  (received): OpenedRequest => {
    requireKey(received)
    const { path, query, body, origin, headers, world } = received
    const text = method === 'GET' ? query.toString() : body.toString()
    const asked = { book: world.payments.book, fields: readFields(text), id: path[1] ?? '', origin }
    const key = headers['idempotency-key']
    return {
      directives: [asked.book.directives],
      answer: ({ fault }) => {
        if (preventsWork(fault)) return jsonAnswer(200, {})
        return typeof key === 'string' && method === 'POST'
          ? once(asked, key, `${path[0]} ${text}`, work)
          : worked(asked, work)
      },
    }
  }

function worked(asked: Asked, work: Work): WholeAnswer {
  const answer = jsonAnswer(200, work(asked))
  asked.book.save()
  return answer
}

/** Answers a repeated request like the first one, including refusals of the card. */
function once(asked: Asked, key: string, request: string, work: Work): WholeAnswer {
  const { answers } = asked.book.kept
  const earlier = answers[key]
  if (earlier !== undefined) {
    if (earlier.request !== request)
      throw stripeError(
        400,
        'idempotency_error',
        'Keys for idempotent requests can only be used with the same parameters.',
      )
    return jsonAnswer(earlier.status, JSON.parse(earlier.body))
  }
  let answer: WholeAnswer
  try {
    answer = jsonAnswer(200, work(asked))
  } catch (error) {
    // Invalid requests are not kept.
    if (!(error instanceof StripeFailure) || error.status !== 402) throw error
    answer = failureAnswer(error)
  }
  answers[key] = { request, status: answer.status, body: String(answer.body) }
  asked.book.save()
  return answer
}

function failureAnswer(failure: SimulatedFailure): WholeAnswer {
  const error =
    failure instanceof StripeFailure
      ? failure.error
      : { type: failure.status >= 500 ? 'api_error' : 'invalid_request_error', message: failure.message }
  return jsonAnswer(failure.status, { error }, failure.headers)
}

export const stripe: Dialect = {
  name: 'stripe',
  endpoints: [
    ...WORKS.map(([method, path, work]) => ({ method, path, open: open(method, work) })),
    { method: 'GET', path: /^\/checkout\/(\w+)$/, open: openPage },
    { method: 'POST', path: /^\/checkout\/(\w+)$/, open: payPage },
  ],
  failure: failureAnswer,
}
