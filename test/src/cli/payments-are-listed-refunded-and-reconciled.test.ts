/** `tollgate payments …`, by the acts of the management API, on PostgreSQL and the simulated payment provider. */
import t from 'tap'
import { openProvider } from '../../../src/payments/provider.ts'
import { payAt } from '../../end-to-end/payments/support.ts'
import { startEngines } from '../../support/engines.ts'
import { newPayment, paymentNotice, providerEvent } from '../postgres/payments/support.ts'
import { newAccount, openMigrated } from '../postgres/support.ts'
import { command, commandsOn, wiringOn } from './support.ts'

const engines = await startEngines(t, { only: ['postgres', 'simulator'] })
const { database } = await openMigrated(t, engines.databaseUrl)
const provider = await openProvider({
  secretKey: 'sk_test_cli',
  webhookSecrets: ['whsec_cli'],
  apiUrl: engines.simulatorUrl,
})
const config = { payments: { currency: 'usd', credits_per_unit: '100', seller: ['Test'] } }
const wiring = wiringOn(database, config, {
  openProvider: async () => async () => provider,
  publicUrl: async () => 'https://gateway.example',
})
const { json, text, refused } = commandsOn(wiring)

/** A customer pays 5.00 usd, and no webhook reports it. */
async function payUnreported() {
  const accountId = await newAccount(database, 0n)
  const customerId = await provider.createCustomer(accountId, 'Test')
  await database.payments.keepCustomer(accountId, customerId)
  const payment = await newPayment(database, accountId)
  const pages = { successUrl: 'https://gateway.example/', cancelUrl: 'https://gateway.example/' }
  const opened = await provider.openCheckout(payment, customerId, { ...pages, savesMethod: false })
  await database.payments.takeNotice(opened)
  await payAt(opened.url!)
  return { accountId, id: payment.id }
}

t.test('what no webhook reported is reconciled, listed, shown and refunded', async (t) => {
  const [first, second] = [await payUnreported(), await payUnreported()]
  t.match(await json('payments', 'show', first.id), { state: 'open', receipts: { length: 0 } })
  t.match(await json('payments', 'reconcile', '--days', '1'), { found: 2, refused: 0 })
  t.equal((await json('payments', 'reconcile', '--days', '1')).found, 0)
  const ids = async (...words: string[]) =>
    (await json('payments', 'list', ...words)).map(({ id }: { id: string }) => id)
  t.same(await ids(), [second.id, first.id])
  t.same(await ids('--account', first.accountId), [first.id])
  t.same(await ids('--limit', '1'), [second.id])
  t.match(await text('payments', 'show', first.id), /receipt \d/)
  const refund = ['payments', 'refund', first.id, '--reason', 'bought by mistake']
  t.match(await json(...refund, '--amount', '2.00'), { refunded: '2.00', credits_taken: '200' })
  t.match(await json(...refund), { refunded: '5.00', credits_taken: '500' })
  t.equal((await database.accounts.show(first.accountId)).wallet.balance, 0n)
  t.match(await refused('payments', 'show', 'pay_x'), /There is no payment pay_x/)
  t.equal((await command(['payments', 'refund', second.id], wiring)).code, 2, 'a reason is required')
  t.equal((await command(['payments', 'reconcile', '--days', '31'], wiring)).code, 2, '30 days at most')
})

t.test('a refused event is a difference until it is closed, with a reason, once', async (t) => {
  const payment = await newPayment(database, await newAccount(database, 0n))
  const event = providerEvent(paymentNotice(payment, { amount: 499n }))
  t.match(await database.payments.takeProviderEvent(event), { outcome: 'refused' })
  const refusedEvents = async () =>
    (await database.audits.verifyWallets()).differences.filter(({ kind }) => kind === 'payment_event')
  t.match(await refusedEvents(), [{ ref: event.id, account_id: payment.accountId }])
  t.match(await json('payments', 'refused'), [
    { id: event.id, payment_id: payment.id, refusal: /4\.99 usd was paid/, closed_at: null },
  ])
  const close = ['payments', 'close', event.id, '--reason', 'refunded by hand']
  t.match(await json(...close), { closed_by: 'operator:test', close_reason: 'refunded by hand' })
  t.same(await refusedEvents(), [])
  t.same(await json('payments', 'refused'), [])
  t.match(await json('payments', 'refused', '--all'), [{ id: event.id, close_reason: 'refunded by hand' }])
  t.match(await refused(...close), /operator:test has closed .* already/)
  t.match(await refused('payments', 'close', 'evt_x', '--reason', 'none'), /no refused payment event evt_x/)
  t.equal((await command(['payments', 'close', event.id], wiring)).code, 2, 'a reason is required')
  t.match(
    await database.payments.takeProviderEvent(event),
    { outcome: 'seen' },
    'it stays closed when it comes again',
  )
  const [act] = await database.auditRecord.list({ subjectId: event.id, limit: 1 })
  t.match(act, {
    action: 'payment_event.close',
    actor: 'operator:test',
    accountId: payment.accountId,
    before: { payment_id: payment.id },
    after: { reason: 'refunded by hand' },
  })
})

t.test('without a provider nothing is refunded, and the list is there', async (t) => {
  const { json, refused } = commandsOn({ ...wiring, openProvider: async () => null })
  t.equal((await json('payments', 'list')).length, 3)
  t.match(await refused('payments', 'reconcile'), /takes no cards/)
})
