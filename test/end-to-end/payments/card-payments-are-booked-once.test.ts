/** A customer tops up by card, through the vendor's library, the provider's pages and its signed webhooks. */
import t from 'tap'
import { eventually, until } from '../../support/eventually.ts'
import { signIn } from '../../support/manage.ts'
import {
  balanceOf,
  FORMER_SECRET,
  fillPage,
  openShop,
  payAt,
  paymentOf,
  startTopUp,
  untilState,
  WEBHOOK_SECRET,
} from './support.ts'

const shop = await openShop(t, { STRIPE_WEBHOOK_SECRET: `${WEBHOOK_SECRET}, ${FORMER_SECRET}` })
const { service, control } = shop
const noFaults = () => control('PUT', '/faults', {})
const operator = await signIn(service, { role: 'operator' })

t.test('a test card pays, and the credits are booked by the webhook', async (t) => {
  const customer = await shop.newCustomer()
  const payment = await startTopUp(customer)
  t.equal(payment.state, 'open')
  const { status, location } = await payAt(payment.url)
  t.equal(status, 303)
  t.match(location, `/console/billing?account=${customer.accountId}&payment=${payment.id}`)
  t.match(await untilState(customer, payment.id, 'paid'), {
    credits: '500',
    amount: '5.00',
    currency: 'usd',
    url: null,
    receipts: [{ kind: 'receipt', amount: '5.00' }],
  })
  t.equal(await balanceOf(shop, customer), 500n)
})

t.test('declined cards and 3-D Secure end as the customer does', async (t) => {
  const customer = await shop.newCustomer()
  const payment = await startTopUp(customer)
  t.match(await payAt(payment.url, '4000000000000002'), { status: 400, text: /declined/ })
  t.equal((await payAt(payment.url, '4000002760003184')).status, 303)
  t.match(await fillPage(payment.url, { answer: 'deny' }), { status: 400, text: /could not confirm/ })
  await payAt(payment.url, '4000002760003184')
  await fillPage(payment.url, { answer: 'confirm' })
  await untilState(customer, payment.id, 'paid')
  t.equal(await balanceOf(shop, customer), 500n)
})

t.test('duplicates in reversed order, days late, book once', async (t) => {
  const customer = await shop.newCustomer()
  await control('PUT', '/faults', { mode: 'hold', copies: 3 })
  const payment = await startTopUp(customer)
  await payAt(payment.url)
  t.equal((await paymentOf(customer, payment.id)).state, 'open', 'the return page waits')
  await control('POST', `/advance?seconds=${3 * 86_400}`)
  await control('POST', '/release?order=reversed')
  await noFaults()
  t.equal((await paymentOf(customer, payment.id)).state, 'paid')
  t.equal(await balanceOf(shop, customer), 500n)
})

t.test('a former secret signs while it is configured; others, and forgeries, are refused', async (t) => {
  const customer = await shop.newCustomer()
  await control('PUT', '/faults', { secret: FORMER_SECRET })
  const first = await startTopUp(customer)
  await payAt(first.url)
  await untilState(customer, first.id, 'paid')
  await control('PUT', '/faults', { secret: 'whsec_of_somebody' })
  const second = await startTopUp(customer)
  await payAt(second.url)
  await until('it is refused', async () => {
    const { deliveries } = await control('GET', '')
    return deliveries.some(({ status }) => status === 400)
  })
  t.equal((await paymentOf(customer, second.id)).state, 'open')
  await noFaults()
  await untilState(customer, second.id, 'paid')
  const forged = { id: 'evt_forged', type: 'payment_intent.succeeded', data: { object: { id: 'pi_forged' } } }
  const headers = { 'stripe-signature': `t=${Math.floor(Date.now() / 1000)},v1=${'0'.repeat(64)}` }
  const answer = await fetch(`${service.baseUrl}/webhooks/stripe`, {
    method: 'POST',
    body: JSON.stringify(forged),
    headers,
  })
  t.equal(answer.status, 400)
  t.equal(await balanceOf(shop, customer), 1000n)
})

t.test('lost webhooks are named by verify, and found by reconciliation', async (t) => {
  const customer = await shop.newCustomer()
  const losePayment = async () => {
    await control('PUT', '/faults', { mode: 'drop' })
    const payment = await startTopUp(customer)
    await payAt(payment.url)
    const started = await operator.send('POST', '/jobs', { kind: 'verify' })
    const verified = await eventually('verify ends', async () => {
      const { body } = await operator.send('GET', `/jobs/${started.body.id}`)
      return body.verified ?? undefined
    })
    await noFaults()
    const { body: reconciled } = await operator.send('POST', '/payments/reconcile', { days: 30 })
    t.equal((await paymentOf(customer, payment.id)).state, 'paid')
    return { payment, verified, reconciled }
  }
  let lost = await losePayment()
  let credits = 500n
  // The task worker reconciles too, every five minutes: it may be faster once.
  if (lost.reconciled.found === 0) {
    lost = await losePayment()
    credits += 500n
  }
  t.match(lost.verified, {
    ok: false,
    differences: [{ kind: 'provider_payment', ref: lost.payment.id, expected: '5.00 usd', found: '0' }],
  })
  t.match(lost.reconciled, { found: 1, refused: 0 })
  t.equal(await balanceOf(shop, customer), credits)
  t.equal((await operator.send('POST', '/payments/reconcile', { days: 30 })).body.found, 0)
})

t.test('refunds and disputes take credits back, below zero where they are spent', async (t) => {
  const customer = await shop.newCustomer()
  const { id, url } = await startTopUp(customer)
  await payAt(url)
  await untilState(customer, id, 'paid')
  await service.database.wallets.adjust(customer.accountId, -45_000_000_000n, { reason: 'spent' })
  const refund = (key: string, amount = '2.00') =>
    operator.send(
      'POST',
      `/payments/${id}/refunds`,
      { amount, reason: 'half of it' },
      { 'idempotency-key': key },
    )
  const [one, again] = [await refund('one'), await refund('one')]
  t.match([one.status, again.status], [200, 200])
  t.match(again.body, {
    refunded: '2.00',
    credits_taken: '200',
    receipts: [{}, { kind: 'credit_note', amount: '2.00' }],
  })
  t.match(await refund('one', '1.00'), { status: 409, body: { error: { code: 'idempotency_key_reuse' } } })
  t.equal(await balanceOf(shop, customer), -150n)
  const books = await control('GET', '')
  const intent = Object.values(books.intents).find(({ metadata }) => metadata.tollgate_payment === id)!
  await control('POST', `/intents/${intent.id}/dispute`)
  await until('the credits are taken', async () => (await balanceOf(shop, customer)) === -450n)
  const [dispute] = Object.values((await control('GET', '')).disputes)
  await control('POST', `/disputes/${dispute!.id}/close?status=won`)
  await until('they are given back', async () => (await balanceOf(shop, customer)) === -150n)
  t.equal((await customer.client.send('POST', `/payments/${id}/refunds`, { reason: 'mine' })).status, 403)
})

t.test('a dispute above the payment takes all of its credits', async (t) => {
  const customer = await shop.newCustomer()
  const { id, url } = await startTopUp(customer)
  await payAt(url)
  await untilState(customer, id, 'paid')
  const { intents } = await control('GET', '')
  const intent = Object.values(intents).find(({ metadata }) => metadata.tollgate_payment === id)!
  await control('POST', `/intents/${intent.id}/dispute?amount=512`)
  await until('it is taken', async () => (await balanceOf(shop, customer)) === 0n)
  t.match(await paymentOf(customer, id), { disputed: '5.00', credits_taken: '500' })
})

t.test('a customer of other keys is created again, and their cards can be removed', async (t) => {
  const customer = await shop.newCustomer()
  const { accountId, client } = customer
  const former = 'cus_of_test_keys'
  await service.database.payments.keepCustomer(accountId, former)
  await service.database.payments.takeNotice({
    about: 'method',
    event: 'saved',
    id: 'pm_of_test_keys',
    customerId: former,
    brand: 'visa',
    last4: '4242',
    expires: '12/2034',
    createdAt: new Date(),
  })
  const [first, second] = [await startTopUp(customer), await startTopUp(customer)]
  for (const { id, url } of [first, second]) {
    await payAt(url)
    await untilState(customer, id, 'paid')
  }
  t.equal(await balanceOf(shop, customer), 1000n)
  const removed = await client.send('DELETE', `/cards/pm_of_test_keys?account_id=${accountId}`)
  t.match(removed, { status: 200, body: { removed: true } })
  t.same((await client.send('GET', `/cards?account_id=${accountId}`)).body.data, [])
})

t.test('one Idempotency-Key starts one payment; strangers see none of it', async (t) => {
  const customer = await shop.newCustomer()
  const stranger = await shop.newCustomer()
  const start = (credits: string) =>
    customer.client.send(
      'POST',
      '/payments',
      { account_id: customer.accountId, credits },
      { 'idempotency-key': 'k' },
    )
  const [one, two] = [await start('500'), await start('500')]
  t.equal(one.body.id, two.body.id)
  t.equal((await start('600')).status, 409)
  t.match(await start('404.3'), { status: 400, body: { error: { message: /at least 404\.4/ } } })
  t.equal((await stranger.client.send('GET', `/payments/${one.body.id}`)).status, 404)
  t.equal((await stranger.client.send('GET', `/payments?account_id=${customer.accountId}`)).status, 404)
})

t.test('a receipt is a page with the name of its account', async (t) => {
  const customer = await shop.newCustomer()
  await service.database.accounts.rename(customer.accountId, '北京示例科技有限公司')
  const { id, url } = await startTopUp(customer)
  await payAt(url)
  const { receipts } = await untilState(customer, id, 'paid')
  const answer = await fetch(`${service.baseUrl}/api/manage/v1/receipts/${receipts[0].number}`, {
    headers: { cookie: customer.client.cookie },
  })
  t.equal(answer.headers.get('content-type'), 'text/html; charset=utf-8')
  t.match(answer.headers.get('content-security-policy'), "default-src 'none'")
  t.match(await answer.text(), '北京示例科技有限公司')
  const stranger = await shop.newCustomer()
  t.equal((await stranger.client.send('GET', `/receipts/${receipts[0].number}`)).status, 404)
})

t.test('in the end every book agrees', async (t) => {
  const started = await operator.send('POST', '/jobs', { kind: 'verify' })
  const verified = await eventually('verify ends', async () => {
    const { body } = await operator.send('GET', `/jobs/${started.body.id}`)
    return body.verified ?? undefined
  })
  t.match(verified, { ok: true })
  t.equal(verified.payments_not_compared, undefined)
})
