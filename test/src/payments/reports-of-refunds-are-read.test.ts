/** Refunds and disputes take money when they are made, whatever they wait for, until they fail or are won. */
import type Stripe from 'stripe'
import t from 'tap'
import { disputeNotice, refundNotice } from '../../../src/payments/notices.ts'

const REFUNDS = {
  pending: 'took',
  requires_action: 'took',
  succeeded: 'took',
  failed: 'gave_back',
  canceled: 'gave_back',
} as const

for (const [status, event] of Object.entries(REFUNDS))
  t.test(`refund ${status}: ${event}`, async (t) => {
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

/** With what moved of the balance, and without. */
const DISPUTES = {
  warning_needs_response: [null, null],
  needs_response: ['took', 'took'],
  under_review: ['took', 'took'],
  lost: ['took', 'took'],
  won: ['gave_back', 'gave_back'],
  prevented: ['took', null],
} as const

for (const [status, events] of Object.entries(DISPUTES))
  t.test(`dispute ${status}: ${events.map((event) => event ?? 'nothing').join(', ')}`, async (t) => {
    const dispute = { id: 'dp_1', payment_intent: 'pi_1', amount: 200, currency: 'usd', status }
    for (const [index, balance_transactions] of [[{ id: 'txn_1', net: -200 }], []].entries()) {
      const notice = disputeNotice({ ...dispute, balance_transactions } as unknown as Stripe.Dispute)
      t.equal(notice?.event ?? null, events[index])
    }
  })
