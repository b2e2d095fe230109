/** Automatic top-ups: one payment however many workers see the low balance, never above the maximum, and once after a kill. */

import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { topUpAutomatically } from '../../../pipelines/payments/automatic.ts'
import { ONE_CREDIT } from '../../../schemas/money.ts'
import { computePrice } from '../../../src/core/payments/price.ts'
import { openProvider } from '../../../src/payments/provider.ts'
import { settlement } from '../../src/postgres/support.ts'
import { connectTo } from '../../support/connections.ts'
import { eventually, TEST_MASTER_KEY, until } from '../../support/service.ts'
import { balanceOf, type Customer, fillPage, openShop, payAt, startTopUp, untilState } from './support.ts'

const WORKERS = 50
const PROCESSES = 4
const ATTEMPTER = fileURLToPath(new URL('./top-up-until-stopped.ts', import.meta.url))

// Its own task worker would be the first of the attempts.
const shop = await openShop(t, { TOLLGATE_ROLES: 'gateway,settler' })
const { service, control } = shop
const { database, engines } = service
const sql = connectTo(t, engines.databaseUrl)

const settings = { secretKey: 'sk_test_shop', webhookSecrets: [], apiUrl: engines.simulatorUrl }
const deps = {
  database,
  provider: await openProvider(settings),
  log: { info() {}, warn() {}, error() {} },
  publicUrl: 'https://gateway.example.com',
  computePrice: (credits: bigint) =>
    computePrice(credits, { currency: 'usd', credits_per_unit: 10_000_000_000n }),
}

/** A customer with a saved card whose balance is below the threshold. */
async function withCard(number: string, { maximum = '5000' } = {}): Promise<Customer> {
  const customer = await shop.newCustomer()
  const { id, url } = await startTopUp(customer, '500', true)
  await payAt(url, number)
  if (number.endsWith('3184') || number.endsWith('3155')) await fillPage(url, { answer: 'confirm' })
  await untilState(customer, id, 'paid')
  await until('the card is known', async () => (await cardsOf(customer)).length > 0)
  const { status } = await customer.client.send('PUT', '/automatic-top-up', {
    account_id: customer.accountId,
    enabled: true,
    threshold: '100',
    amount: '500',
    monthly_maximum: maximum,
  })
  t.equal(status, 200)
  return customer
}

const cardsOf = async ({ client, accountId }: Customer) =>
  (await client.send('GET', `/cards?account_id=${accountId}`)).body.data
const automaticOf = async ({ client, accountId }: Customer) =>
  (await client.send('GET', `/automatic-top-up?account_id=${accountId}`)).body
const automaticPaymentsOf = async ({ client, accountId }: Customer) =>
  (await client.send('GET', `/payments?account_id=${accountId}`)).body.data.filter(
    ({ kind }: { kind: string }) => kind === 'automatic',
  )
const chargesOf = async (paymentId: string) =>
  Object.values((await control('GET', '')).intents).filter(
    ({ status, metadata }) => status === 'succeeded' && metadata.tollgate_payment === paymentId,
  )
const eventsOf = ({ accountId }: Customer) =>
  sql<{ type: string; data: Record<string, unknown> }[]>`
    SELECT type, data FROM events WHERE account_id = ${accountId} ORDER BY created_at`
const spend = ({ accountId }: Customer, credits: bigint) =>
  database.bookings.book([settlement(accountId, { cost: String(credits * ONE_CREDIT) })])

function startProcesses(count: number) {
  const children = Array.from({ length: count }, () =>
    fork(ATTEMPTER, [], {
      env: {
        ...process.env,
        TEST_DATABASE_URL: engines.databaseUrl,
        TEST_API_URL: engines.simulatorUrl,
        TEST_MASTER_KEY: TEST_MASTER_KEY.toString('base64'),
      },
    }),
  )
  t.teardown(() => children.map((child) => child.kill('SIGKILL')))
  return children
}

t.test('many workers in several processes see the low balance at once: one payment', async (t) => {
  const children = startProcesses(PROCESSES)
  await Promise.all(children.map((child) => once(child, 'message')))
  const customer = await withCard('4242424242424242')
  await spend(customer, 450n)
  await Promise.all(Array.from({ length: WORKERS }, () => topUpAutomatically(deps)))
  await until('it is booked', async () => (await balanceOf(shop, customer)) === 550n)
  for (const child of children) child.send('stop')
  await Promise.all(children.map((child) => once(child, 'exit')))
  const payments = await automaticPaymentsOf(customer)
  t.equal(payments.length, 1)
  t.match(payments, [{ state: 'paid', credits: '500' }])
  t.equal((await chargesOf(payments[0].id)).length, 1)
  t.equal((await automaticOf(customer)).failures, 0)
})

t.test('the monthly maximum is never passed', async (t) => {
  const customer = await withCard('4242424242424242', { maximum: '1200' })
  for (let round = 0; round < 5; round++) {
    const { wallet } = await database.accounts.show(customer.accountId)
    await spend(customer, wallet.balance / ONE_CREDIT)
    await Promise.all(Array.from({ length: 5 }, () => topUpAutomatically(deps)))
  }
  t.equal((await automaticPaymentsOf(customer)).length, 2)
  const { waits_for, waits_until, enabled } = await automaticOf(customer)
  t.match({ waits_for, enabled }, { waits_for: 'month', enabled: true })
  t.match(waits_until, /-01T00:00:00\.000Z$/)
  const reached = (await eventsOf(customer)).filter(({ data }) => data.reason === 'monthly_maximum')
  t.equal(reached.length, 1)
})

t.test('after three failures it switches itself off, and says so', async (t) => {
  const customer = await withCard('4000000000000341')
  await spend(customer, 450n)
  for (let round = 0; round < 5; round++) {
    await topUpAutomatically(deps)
    await sql`UPDATE automatic_topups SET waits_until = now() WHERE account_id = ${customer.accountId}`
  }
  t.match(await automaticOf(customer), { enabled: false, failures: 3, off_reason: 'failures' })
  t.equal((await automaticPaymentsOf(customer)).length, 3)
  const failed = (await eventsOf(customer)).filter(({ type }) => type === 'topup.failed')
  t.match(
    failed.map(({ data }) => data.automatic_topup_off),
    [false, false, true],
  )
  t.equal(await balanceOf(shop, customer), 50n)
})

t.test('an account whose attempt cannot begin keeps no other waiting', async (t) => {
  const [broken, whole] = [await withCard('4242424242424242'), await withCard('4242424242424242')]
  for (const customer of [broken, whole]) await spend(customer, 450n)
  await sql.unsafe(`
    CREATE FUNCTION refuse_payment() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN RAISE EXCEPTION 'a fault of one account'; END $$;
    CREATE TRIGGER refuse_payment BEFORE INSERT ON payments
      FOR EACH ROW WHEN (NEW.account_id = '${broken.accountId}') EXECUTE FUNCTION refuse_payment()`)
  const logged: object[] = []
  const log = { ...deps.log, warn: (details: object) => void logged.push(details) }
  await topUpAutomatically({ ...deps, log }).finally(() => sql`DROP FUNCTION refuse_payment CASCADE`)
  t.match(await automaticPaymentsOf(whole), [{ state: 'paid' }])
  t.same(await automaticPaymentsOf(broken), [])
  t.match(logged, [{ account: broken.accountId, err: { message: 'a fault of one account' } }])
  await topUpAutomatically(deps)
  t.match(await automaticPaymentsOf(broken), [{ state: 'paid' }])
})

t.test('a charge that needs its customer leads them to a page', async (t) => {
  const customer = await withCard('4000002760003184')
  await spend(customer, 450n)
  await topUpAutomatically(deps)
  await topUpAutomatically(deps)
  const [payment, ...more] = await automaticPaymentsOf(customer)
  t.equal(more.length, 0, 'no other attempt begins')
  t.match(payment, { state: 'confirming', failure_code: 'confirmation_required' })
  const asked = (await eventsOf(customer)).find(({ data }) => data.reason === 'confirmation_required')
  t.equal(asked?.data.confirm_url, payment.url)
  await payAt(payment.url, '4000002760003184')
  await fillPage(payment.url, { answer: 'confirm' })
  await untilState(customer, payment.id, 'paid')
  t.equal((await chargesOf(payment.id)).length, 1)
  t.equal(await balanceOf(shop, customer), 550n)
})

t.test('killed between the charge and the booking: booked after a restart, once', async (t) => {
  const customer = await withCard('4242424242424242')
  await spend(customer, 450n)
  // The charge is made, and its answer never comes: neither by the call nor by a webhook.
  await control('PUT', '/faults', { mode: 'drop', directives: 'fault=hang:0' })
  const [child] = startProcesses(1)
  const payment = await eventually('the card is charged', async () => {
    const [begun] = await automaticPaymentsOf(customer)
    return begun !== undefined && (await chargesOf(begun.id)).length === 1 ? begun : undefined
  })
  child!.kill('SIGKILL')
  await once(child!, 'exit')
  t.equal(await balanceOf(shop, customer), 50n)
  await control('PUT', '/faults', { mode: 'drop' })
  await sql`UPDATE payments SET claimed_until = now() WHERE id = ${payment.id}`
  await topUpAutomatically(deps)
  await untilState(customer, payment.id, 'paid')
  t.equal((await chargesOf(payment.id)).length, 1)
  t.equal(await balanceOf(shop, customer), 550n)
  await control('PUT', '/faults', {})
})

t.test('a card that is removed pays nothing more', async (t) => {
  const customer = await withCard('4242424242424242')
  const [card] = await cardsOf(customer)
  const removed = await customer.client.send('DELETE', `/cards/${card.id}?account_id=${customer.accountId}`)
  t.equal(removed.status, 200)
  t.match(await automaticOf(customer), { enabled: false, off_reason: 'method_removed' })
  const again = {
    account_id: customer.accountId,
    enabled: true,
    threshold: '1',
    amount: '500',
    monthly_maximum: '500',
  }
  t.match(await customer.client.send('PUT', '/automatic-top-up', again), { status: 400 })
})

for (const [verb, reason] of [
  ['refund', 'refund'],
  ['dispute', 'chargeback'],
] as const)
  t.test(`a ${verb} switches it off, and charges no card again`, async (t) => {
    const customer = await withCard('4242424242424242')
    const [{ id }] = (await customer.client.send('GET', `/payments?account_id=${customer.accountId}`)).body
      .data
    const [intent] = await chargesOf(id)
    await control('POST', `/intents/${intent!.id}/${verb}`)
    await until('it is booked', async () => (await balanceOf(shop, customer)) === 0n)
    await topUpAutomatically(deps)
    t.match(await automaticOf(customer), { enabled: false, off_reason: reason })
    t.same(await automaticPaymentsOf(customer), [])
    const { threshold, amount, monthly_maximum } = await automaticOf(customer)
    const again = { account_id: customer.accountId, enabled: true, threshold, amount, monthly_maximum }
    t.match((await customer.client.send('PUT', '/automatic-top-up', again)).body, { off_reason: null })
    await topUpAutomatically(deps)
    t.equal((await automaticPaymentsOf(customer)).length, 1, 'the customer may switch it on again')
  })

t.test('in the end every book agrees', async (t) => {
  const { differences } = await database.audits.verifyWallets(undefined, { payments: deps.provider })
  // Calls without a row in a call log of theirs are this test's own.
  t.same(differences, [])
})
