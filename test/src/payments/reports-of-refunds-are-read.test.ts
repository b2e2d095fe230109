/** A refund takes its money from the moment it is made, whatever it waits for, until it fails. */
import type Stripe from 'stripe'
import t from 'tap'
import { refundNotice } from '../../../src/payments/notices.ts'

const STATES = {
  pending: 'took',
  requires_action: 'took',
  succeeded: 'took',
  failed: 'gave_back',
  canceled: 'gave_back',
} as const

for (const [status, event] of Object.entries(STATES))
  t.test(`${status}: ${event}`, async (t) => {
    const refund = { id: 're_1', payment_intent: 'pi_1', amount: 200, currency: 'usd', status }
    t.same(refundNotice(refund as unknown as Stripe.Refund), {
      about: 'reversal',
      event,
      kind: 'refund',
      id: 're_1',
      intentId: 'pi_1',
      amount: 200n,
      currency: 'usd',
    })
  })
