/** Receipts, and reports of refunds. */
import type Stripe from 'stripe'
import t from 'tap'
import type { Receipt } from '../../schemas/payments/payment.ts'
import { writeReceiptPage } from '../../src/core/payments/receipt-page.ts'
import { disputeNotice, refundNotice } from '../../src/payments/notices.ts'

t.test('a receipt has its facts, and no markup of a name', async (t) => {
  const receipt: Receipt = {
    number: 7n,
    kind: 'receipt',
    paymentId: 'pay_01J8Z3N4V9QKX2T5W7Y0ABCDEF',
    reversalId: null,
    accountId: 'acc_01J8Z3N4V9QKX2T5W7Y0ABCDEF',
    accountName: '김철수 & <b>Michał</b>, 北京',
    amount: 500n,
    currency: 'usd',
    credits: 50_000_000_000n,
    issuedAt: new Date('2026-11-24T12:00:00Z'),
  }
  const page = writeReceiptPage(receipt, ['Tollgate <Inc.>', '1 Main Street'])
  for (const fact of ['000007', '2026-11-24', receipt.paymentId, receipt.accountId, '>5.00 USD<', '>500'])
    t.match(page, fact)
  t.match(page, '김철수 &amp; &lt;b&gt;Michał&lt;/b&gt;, 北京')
  t.match(page, 'Tollgate &lt;Inc.&gt;\n1 Main Street')
  const note = writeReceiptPage({ ...receipt, kind: 'credit_note', reversalId: 're_1' }, [])
  for (const fact of ['Credit note', 're_1', '>-5.00 USD<', '>-500']) t.match(note, fact)
})

t.test('reports of refunds are read', async (t) => {
  // Refunds and disputes take money when they are made, whatever they wait for, until they fail or are won.
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
})
