/** Control of the simulated payment provider, `/simulator/payments/…`: its webhooks, faults, refunds, disputes and clock. */

import type { PaymentBook } from './book.ts'
import type { WebhookFaults, Webhooks, WebhookTarget } from './webhooks.ts'

export type SimulatedPayments = { readonly book: PaymentBook; readonly webhooks: Webhooks }

const OBJECT = /^\/simulator\/payments\/(sessions|intents|refunds|disputes)\/(\w+)\/(\w+)$/

/** Returns the answer to a control request; null if it is not one. */
export async function controlPayments(
  { book, webhooks }: SimulatedPayments,
  {
    method,
    path,
    query,
    body,
  }: {
    readonly method: string
    readonly path: string
    readonly query: URLSearchParams
    readonly body: string
  },
): Promise<object | null> {
  switch (`${method} ${path}`) {
    case 'PUT /simulator/payments/webhook':
      webhooks.configure(JSON.parse(body) as WebhookTarget)
      return {}
    case 'PUT /simulator/payments/faults': {
      const { directives = null, ...faults } = JSON.parse(body) as Partial<WebhookFaults> & {
        directives?: string
      }
      book.directives = directives
      webhooks.setFaults(faults)
      return {}
    }
    case 'POST /simulator/payments/release':
      await webhooks.release(query.get('order') === 'reversed')
      return {}
    case 'POST /simulator/payments/advance':
      book.advance(Number(query.get('seconds')))
      return {}
    case 'GET /simulator/payments':
      return {
        ...book.kept,
        numbers: undefined,
        answers: undefined,
        deliveries: webhooks.deliveries,
        held: webhooks.held,
      }
    case 'DELETE /simulator/payments/events':
      book.kept.events = []
      return {}
  }
  const found = method === 'POST' ? OBJECT.exec(path) : null
  return found === null ? null : act(book, found[1] as string, found[2] as string, found[3] as string, query)
}

/** Does what an operator at the provider's dashboard, or a bank, would do. */
function act(
  book: PaymentBook,
  kind: string,
  id: string,
  verb: string,
  query: URLSearchParams,
): object | null {
  const { sessions, intents, refunds, disputes } = book.kept
  const text = query.get('amount')
  const amount = text === null ? null : Number(text)
  switch (`${kind} ${verb}`) {
    case 'sessions expire': {
      const session = sessions[id]
      if (session) book.expire(session)
      return session ?? null
    }
    case 'intents refund':
      return intents[id] ? book.refund(intents[id], amount, {}) : null
    case 'intents dispute':
      return intents[id] ? book.dispute(intents[id], amount) : null
    case 'refunds fail': {
      const refund = refunds[id]
      if (refund) book.failRefund(refund)
      return refund ?? null
    }
    case 'disputes close': {
      const dispute = disputes[id]
      if (dispute) book.closeDispute(dispute, query.get('status') === 'won' ? 'won' : 'lost')
      return dispute ?? null
    }
    default:
      return null
  }
}
