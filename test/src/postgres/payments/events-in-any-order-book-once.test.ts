/** Events of the payment provider that come twice, late, or out of order book credits once, or not at all. */
import fc from 'fast-check'
import t from 'tap'
import { takeEvent } from '../../../../pipelines/payments/take-event.ts'
import type { Payment } from '../../../../schemas/payments/payment.ts'
import type { PaymentNotice, ProviderNotice, ReversalNotice } from '../../../../schemas/payments/provider.ts'
import type { Provider } from '../../../../src/payments/provider.ts'
import { newAccount, startDatabase } from '../support.ts'
import { newPayment, paymentNotice, providerEvent, reversalNotice } from './support.ts'

const { database, sql } = await startDatabase(t)
const RUNS = 25
const log = { info() {}, warn() {}, error() {} }

const balanceOf = async (accountId: string): Promise<bigint> =>
  (await database.accounts.show(accountId)).wallet.balance

const differencesOf = async (accountId: string) =>
  (await database.audits.verifyWallets()).differences.filter(({ account_id }) => account_id === accountId)

/** Parts of a payment of 500, together more than it. The second refund comes to nothing in the end, as does a dispute. */
const REVERSALS = [
  { id: 're_one', kind: 'refund', amount: 120n, end: null },
  { id: 're_two', kind: 'refund', amount: 330n, end: 'gave_back' },
  { id: 'du_won', kind: 'chargeback', amount: 347n, end: 'gave_back' },
  { id: 'du_lost', kind: 'chargeback', amount: 400n, end: 'took' },
] as const

type What =
  | { readonly kind: 'payment'; readonly event: PaymentNotice['event'] }
  | { readonly kind: 'reversal'; readonly which: number; readonly event: ReversalNotice['event'] }

const noticeOf = (payment: Payment, what: What): ProviderNotice => {
  if (what.kind === 'payment') return paymentNotice(payment, { event: what.event })
  const { id, kind, amount } = REVERSALS[what.which]!
  return reversalNotice(payment, { id: `${id}_${payment.id}`, kind, amount, event: what.event })
}

const paymentEvent = fc
  .constantFrom('opened', 'paid', 'failed', 'expired', 'confirmation_needed')
  .map((event): What => ({ kind: 'payment', event }))
const reversalEvent = fc.record({ which: fc.nat({ max: REVERSALS.length - 1 }), isEnd: fc.boolean() }).map(
  ({ which, isEnd }): What => ({
    kind: 'reversal',
    which,
    event: isEnd ? (REVERSALS[which]!.end ?? 'took') : 'took',
  }),
)

/** The provider's own books: it answers for an intent once somebody asks, and there is one as soon as it was refunded. */
const providerOf = (payment: Payment) =>
  ({ readIntent: async () => paymentNotice(payment, { sessionId: null }) }) as unknown as Provider

t.test('whatever comes, however often, in whatever order', async (t) => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.oneof(paymentEvent, reversalEvent), { minLength: 1, maxLength: 12, size: 'max' }),
      fc.array(fc.nat(), { maxLength: 5 }),
      async (whats, again) => {
        const accountId = await newAccount(database, 0n)
        const payment = await newPayment(database, accountId)
        const provider = providerOf(payment)
        const events = whats.map((what) => providerEvent(noticeOf(payment, what)))
        const sent = [...events, ...again.map((index) => events[index % events.length]!)]
        // Two gateways at a time.
        for (let at = 0; at < sent.length; at += 2)
          await Promise.all(
            sent.slice(at, at + 2).map((event) => takeEvent({ database, provider, log }, event)),
          )
        const isPaid = whats.some((what) => what.kind === 'reversal' || what.event === 'paid')
        const reported = (which: number, event: string) =>
          whats.some((what) => what.kind === 'reversal' && what.which === which && what.event === event)
        const gone = REVERSALS.reduce(
          (sum, { amount }, which) =>
            reported(which, 'took') && !reported(which, 'gave_back') ? sum + amount : sum,
          0n,
        )
        const kept = isPaid ? (payment.credits * (500n - (gone > 500n ? 500n : gone))) / 500n : 0n
        const { disputed, refunded, creditsTaken } = await database.payments.show(payment.id)
        t.equal(refunded + disputed, gone)
        t.equal(await balanceOf(accountId), kept)
        t.equal(isPaid ? payment.credits - creditsTaken : 0n, kept)
        const receipts = (await database.payments.listReceipts([payment.id])).filter(
          ({ reversalId }) => reversalId === null,
        )
        t.equal(receipts.length, isPaid ? 1 : 0)
      },
    ),
    { numRuns: RUNS, seed: 22 },
  )
  t.same((await database.audits.verifyWallets()).differences, [])
})

/** A paid payment of 5.00, and what a report of its refunds and disputes leaves of its 500 credits. */
async function paidPayment() {
  const accountId = await newAccount(database, 0n)
  const payment = await newPayment(database, accountId)
  await database.payments.takeNotice(paymentNotice(payment))
  const leaves = async (more: Partial<ReversalNotice>): Promise<bigint> => {
    await database.transactAs('test', (writing) => writing.payments.takeNotice(reversalNotice(payment, more)))
    return (await balanceOf(accountId)) / 100_000_000n
  }
  return { accountId, payment, leaves }
}

t.test('a refund that fails while a dispute is open gives back nothing that the dispute takes', async (t) => {
  const { accountId, payment, leaves } = await paidPayment()
  const dispute = { id: `du_${payment.id}`, kind: 'chargeback' } as const
  t.equal(await leaves({}), 0n)
  t.equal(await leaves(dispute), 0n)
  t.equal(await leaves({ event: 'gave_back' }), 0n, 'the dispute has the money')
  t.equal(await leaves({ ...dispute, event: 'gave_back' }), 500n)
  t.same(await differencesOf(accountId), [])
})

t.test('a dispute that is won gives back nothing that a refund took after it', async (t) => {
  const { accountId, payment, leaves } = await paidPayment()
  const dispute = { id: `du_${payment.id}`, kind: 'chargeback' } as const
  const small = { id: `re_small_${payment.id}`, amount: 100n }
  t.equal(await leaves(dispute), 0n)
  t.equal(await leaves({ amount: 200n }), 0n)
  t.equal(await leaves(small), 0n)
  t.equal(await leaves({ ...dispute, event: 'gave_back' }), 200n, 'two refunds keep their part')
  t.equal(await leaves({ ...small, event: 'gave_back' }), 300n)
  t.same(await differencesOf(accountId), [])
})

t.test('a dispute above the payment takes all of its credits', async (t) => {
  const { accountId, payment, leaves } = await paidPayment()
  const dispute = { id: `du_${payment.id}`, kind: 'chargeback', amount: 512n } as const
  t.equal(await leaves(dispute), 0n)
  t.equal((await database.payments.show(payment.id)).disputed, 500n)
  t.equal(await leaves({ amount: 512n }), 0n)
  t.equal((await database.payments.show(payment.id)).refunded, 0n, 'no refund is above the payment')
  t.equal(await leaves({ ...dispute, event: 'gave_back' }), 500n)
  t.same(await differencesOf(accountId), [])
})

t.test('a refused payment is a difference until all of its money was given back', async (t) => {
  const { accountId, payment } = await paidPayment()
  const { id: paymentId, amount, currency } = payment
  const first = { paymentId, intentId: `pi_${paymentId}`, amount, currency, refunded: 0n, disputed: 0n }
  const differences = async (back: { refunded: bigint; disputed: bigint }) => {
    const listPaid = async () => [first, { ...first, intentId: 'pi_refused', ...back }]
    const { differences } = await database.audits.verifyWallets(undefined, { payments: { listPaid } })
    return differences.filter(({ account_id }) => account_id === accountId)
  }
  t.match(await differences({ refunded: 499n, disputed: 0n }), [
    { kind: 'provider_payment', ref: paymentId, expected: '5.00 usd', found: '0' },
  ])
  t.same(await differences({ refunded: 500n, disputed: 0n }), [])
  t.same(await differences({ refunded: 0n, disputed: 500n }), [])
})

t.test('one event at many gateways at once is taken once', async (t) => {
  const accountId = await newAccount(database, 0n)
  const payment = await newPayment(database, accountId)
  const event = providerEvent(paymentNotice(payment))
  const others = await Promise.all(
    Array.from({ length: 8 }, () => database.payments.takeProviderEvent(event)),
  )
  t.same(others.filter(({ outcome }) => outcome === 'taken').length, 1)
  t.same(others.filter(({ outcome }) => outcome === 'seen').length, 7)
  t.equal(await balanceOf(accountId), payment.credits)
  const rows = await sql<
    { type: string; data: object }[]
  >`SELECT type, data FROM events WHERE account_id = ${accountId}`
  t.match(rows, [{ type: 'topup.succeeded', data: { credits: '500', amount: '5.00', currency: 'usd' } }])
  t.equal(rows.length, 1)
})

t.test('what contradicts our own row books nothing, and the audit names it', async (t) => {
  const accountId = await newAccount(database, 0n)
  const payment = await newPayment(database, accountId)
  const other = await newPayment(database, await newAccount(database, 0n))
  const wrong: [Partial<PaymentNotice>, RegExp][] = [
    [{ amount: 499n }, /4\.99 usd was paid, not 5\.00 usd/],
    [{ currency: 'eur' }, /5\.00 eur was paid/],
    [{ customerId: `cus_${other.accountId}` }, /the customer .* is not that of/],
    [{ intentId: null }, /no intent/],
    [{ paymentId: 'pay_of_nobody' }, /no such payment/],
  ]
  for (const [more, refusal] of wrong)
    t.match(await database.payments.takeProviderEvent(providerEvent(paymentNotice(payment, more))), {
      outcome: 'refused',
      refusal,
    })
  t.equal(await balanceOf(accountId), 0n)
  t.equal((await differencesOf(accountId)).filter(({ kind }) => kind === 'payment_event').length, 4)
  await database.payments.takeProviderEvent(providerEvent(paymentNotice(payment)))
  t.equal(await balanceOf(accountId), payment.credits)
  const twice = paymentNotice(payment, { intentId: 'pi_again' })
  t.match(await database.payments.takeProviderEvent(providerEvent(twice)), {
    outcome: 'refused',
    refusal: /paid by .* already/,
  })
  t.equal(await balanceOf(accountId), payment.credits)
})

t.test('a payment that an earlier customer of the account began is booked', async (t) => {
  const accountId = await newAccount(database, 0n)
  const payment = await newPayment(database, accountId)
  await database.payments.keepCustomer(accountId, `cus_new_${accountId}`)
  t.match(await database.payments.takeNotice(paymentNotice(payment)), { outcome: 'taken' })
  const next = await newPayment(database, accountId)
  const customerId = `cus_new_${accountId}`
  t.equal(await database.payments.findCustomer(accountId), customerId)
  t.match(await database.payments.takeNotice(paymentNotice(next, { customerId })), { outcome: 'taken' })
})

t.test('numbers of receipts have no gap, also where bookings fail', async (t) => {
  const accountId = await newAccount(database, 0n)
  const payments = await Promise.all(Array.from({ length: 6 }, () => newPayment(database, accountId)))
  const taking = payments.map(async (payment, index) => {
    const work = database.transactAs('test', async (writing) => {
      await writing.payments.takeNotice(paymentNotice(payment))
      if (index % 2 === 0) throw new Error('the process fails before its commit')
    })
    await work.catch(() => undefined)
  })
  await Promise.all(taking)
  const numbers = await sql<{ number: bigint }[]>`SELECT number FROM receipts ORDER BY number`
  t.same(
    numbers.map(({ number }) => number),
    numbers.map((_, index) => BigInt(index + 1)),
  )
})
