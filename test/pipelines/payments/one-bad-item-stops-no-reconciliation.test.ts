/** Reconciliation takes all that it can: what fails is logged and counted, and nothing of before its mark is left out. */
import t from 'tap'
import { reconcile } from '../../../pipelines/payments/reconcile.ts'
import { Failure } from '../../../schemas/failure.ts'
import type { Payment } from '../../../schemas/payments/payment.ts'
import type { PaymentNotice, ProviderEvent } from '../../../schemas/payments/provider.ts'
import { openProvider } from '../../../src/payments/provider.ts'
import { simulatorFor } from '../../simulator/support.ts'
import { newPayment, paymentNotice, providerEvent } from '../../src/postgres/payments/support.ts'
import { newAccount, startDatabase } from '../../src/postgres/support.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const { database, sql } = await startDatabase(t)
const simulator = await simulatorFor(t)
const settings = { secretKey: 'sk_test_reconcile', webhookSecrets: [], apiUrl: simulator.url }

let logged: object[] = []
const log = { info() {}, warn() {}, error: (details: object) => void logged.push(details) }
t.beforeEach(() => {
  logged = []
})

interface Books {
  readonly events?: readonly ProviderEvent[]
  readonly readPayment?: (payment: Payment) => Promise<PaymentNotice | null>
}

const reconciled = async ({ events = [], readPayment }: Books = {}, since?: Date) => {
  const provider = Object.assign(await openProvider(settings), {
    listEvents: async () => [...events],
    ...(readPayment && { readPayment }),
  })
  return reconcile({ database, provider, log }, since)
}

/** A payment whose page was opened so many hours ago. */
async function openPayment(hours = 2): Promise<Payment> {
  const payment = await newPayment(database, await newAccount(database, 0n))
  await database.payments.takeNotice(paymentNotice(payment, { event: 'opened' }))
  await sql`UPDATE payments SET created_at = now() - make_interval(hours => ${hours}) WHERE id = ${payment.id}`
  return payment
}

const stateOf = async ({ id }: Payment) => (await database.payments.show(id)).state
const setMark = (until: Date) => sql`
  INSERT INTO payment_reconciliation (until) VALUES (${until}) ON CONFLICT (only_row) DO UPDATE SET until = ${until}`
const markAge = async () => Date.now() - (await database.payments.readReconciled())!.getTime()

t.test('a payment that the provider will not read stops no other', async (t) => {
  const payments = [await openPayment(), await openPayment(), await openPayment()]
  const bad = payments[1]!
  await setMark(new Date(Date.now() - DAY_MS))
  const answer = await reconciled({
    readPayment: async (payment) => {
      if (payment.id === bad.id) throw new Failure('invalid_request', 'No such session')
      return paymentNotice(payment)
    },
  })
  t.match(answer, { found: 2, failed: 1 })
  t.same(await Promise.all(payments.map(stateOf)), ['paid', 'open', 'paid'])
  t.match(logged, [{ payment: bad.id, err: { message: 'No such session' } }])
  t.ok((await markAge()) < HOUR_MS)
})

t.test('an event whose booking fails stops no other, and is read again', async (t) => {
  const [first, second] = [await openPayment(), await openPayment()]
  const intentId = 'pi_of_another_payment'
  await database.payments.takeNotice(paymentNotice(await openPayment(), { intentId }))
  const createdAt = new Date(Date.now() - 3 * HOUR_MS)
  const bad = { ...providerEvent(paymentNotice(first, { intentId })), createdAt }
  await setMark(new Date(Date.now() - DAY_MS))
  const books = { events: [bad, providerEvent(paymentNotice(second))], readPayment: async () => null }
  t.match(await reconciled(books), { events: 2, found: 1, failed: 1 })
  t.same([await stateOf(first), await stateOf(second)], ['open', 'paid'])
  t.match(logged, [{ event: bad.id }])
  t.ok((await database.payments.readReconciled())! <= createdAt)
})

t.test('while the provider is away nothing counts as compared', async (t) => {
  await openPayment()
  await setMark(new Date(Date.now() - DAY_MS))
  const away = new Failure('service_unavailable', 'The payment provider does not answer.')
  const readPayment = () => Promise.reject(away)
  await t.rejects(reconciled({ readPayment }), away)
  t.ok((await markAge()) >= DAY_MS)
})

t.test('a page that the provider does not know ends once it can take no money', async (t) => {
  const [young, old] = [await openPayment(2), await openPayment(26)]
  t.match(await reconciled(), { failed: 0 })
  t.same([await stateOf(young), await stateOf(old)], ['open', 'expired'])
})

t.test('what a shorter comparison leaves out stays to be compared', async (t) => {
  await setMark(new Date(Date.now() - 3 * DAY_MS))
  await reconciled({}, new Date(Date.now() - DAY_MS))
  t.ok((await markAge()) >= 3 * DAY_MS)
  await reconciled({}, new Date(Date.now() - 4 * DAY_MS))
  t.ok((await markAge()) < HOUR_MS)
  await sql`DELETE FROM payment_reconciliation`
  await reconciled({}, new Date(Date.now() - DAY_MS))
  t.equal(await database.payments.readReconciled(), null, 'nothing before it was ever compared')
})
