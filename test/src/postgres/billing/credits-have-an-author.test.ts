import t from 'tap'
import { ONE_CREDIT } from '../../../../schemas/money.ts'
import { openDatabase } from '../../../../src/postgres/database.ts'
import { newAccount, settlement, startDatabase } from '../support.ts'

const ACTOR = 'operator:ada'
const { sql, url, masterKey } = await startDatabase(t)
const database = await openDatabase({ url, masterKey, maxConnections: 4, actor: ACTOR })
t.teardown(() => database.close())

const balanceOf = async (account: string) => (await database.accounts.show(account)).wallet.balance
const actsOf = async (account: string) =>
  (await database.auditRecord.list({ accountId: account, limit: 100 }))
    .filter(({ action }) => action.startsWith('wallet.'))
    .map(({ actor, action, before, after }) => ({ actor, action, before, after }))
    .reverse()

t.test('ledger and audit name the actor and the amount of every credit', async (t) => {
  const account = await newAccount(database, 100n)
  const first = await database.wallets.topUp(account, 500n * ONE_CREDIT, {
    note: 'by card',
    reference: 'pay 1',
  })
  const second = await database.wallets.adjust(account, -25n * ONE_CREDIT, { reason: 'charged twice' })
  const entries = (await database.wallets.readLedger(account, { before: null, limit: 10 })).reverse()
  t.match(entries, [
    { kind: 'trial', amount: 100n * ONE_CREDIT, actor: ACTOR, reference: null },
    { kind: 'topup', amount: 500n * ONE_CREDIT, actor: ACTOR, reference: 'pay 1', note: 'by card' },
    { kind: 'adjustment', amount: -25n * ONE_CREDIT, actor: ACTOR, reference: null, note: 'charged twice' },
  ])
  t.same([first.entry, second.entry], entries.slice(1))
  const [trial, topup, adjustment] = entries.map(({ id }) => Number(id))
  t.same(await actsOf(account), [
    {
      actor: ACTOR,
      action: 'wallet.trial',
      before: { balance: '0' },
      after: { balance: '100', amount: '100', note: null, reference: null, entry: trial },
    },
    {
      actor: ACTOR,
      action: 'wallet.topup',
      before: { balance: '100' },
      after: { balance: '600', amount: '500', note: 'by card', reference: 'pay 1', entry: topup },
    },
    {
      actor: ACTOR,
      action: 'wallet.adjustment',
      before: { balance: '600' },
      after: { balance: '575', amount: '-25', note: 'charged twice', reference: null, entry: adjustment },
    },
  ])
  await database.bookings.book([settlement(account)])
  t.match(await database.wallets.readLedger(account, { before: null, limit: 1 }), [
    { kind: 'charge', actor: null, reference: null },
  ])
  t.match(await database.audits.verifyWallets(), { ok: true, differences: { length: 0 } })
})

t.test('a reference counts once, also where the command is repeated at the same time', async (t) => {
  const account = await newAccount(database, 0n)
  const amount = 500n * ONE_CREDIT
  const done = await Promise.all(
    ['a', 'b', 'c', 'd'].map((note) => database.wallets.topUp(account, amount, { note, reference: 'pay 2' })),
  )
  t.equal(done.filter(({ isRepeated }) => !isRepeated).length, 1)
  t.equal(new Set(done.map(({ entry }) => entry.id)).size, 1, 'each is answered the one entry')
  t.equal(await balanceOf(account), amount)
  t.equal((await actsOf(account)).length, 1)

  for (const refused of [
    () => database.wallets.topUp(account, amount + 1n, { reference: 'pay 2' }),
    () => database.wallets.adjust(account, amount, { reason: 'x', reference: 'pay 2' }),
  ])
    await t.rejects(refused, { code: 'reference_conflict', message: /"pay 2".*topup of 500 credits/ })
  t.equal(await balanceOf(account), amount)

  const other = await newAccount(database, 0n)
  t.match(await database.wallets.topUp(other, amount, { reference: 'pay 2' }), { isRepeated: false })
  const down = () =>
    database.wallets.adjust(other, -amount * 2n, { reason: 'chargeback', reference: 'back 2' })
  t.match(await down(), { isRepeated: false, wallet: { balance: -amount } })
  t.match(await down(), { isRepeated: true, wallet: { balance: -amount } })
  await t.rejects(database.wallets.adjust(other, 0n, { reason: 'x' }), { code: 'invalid_amount' })
  await t.rejects(database.wallets.adjust('acc_none', 1n, { reason: 'x' }), { code: 'account_not_found' })
  t.match(await database.audits.verifyWallets(), { ok: true, differences: { length: 0 } })
})

t.test('what is booked cannot be changed or deleted', async (t) => {
  const account = await newAccount(database)
  const call = settlement(account)
  await database.bookings.book([call])
  const refused = /are only ever added/
  await t.rejects(sql`UPDATE ledger_entries SET amount = -1 WHERE ref = ${call.request_id}`, refused)
  await t.rejects(sql`DELETE FROM ledger_entries WHERE ref = ${call.request_id}`, refused)
  await t.rejects(sql`TRUNCATE ledger_entries`, refused)
  await t.rejects(sql`UPDATE usage_rows SET cost = 0 WHERE request_id = ${call.request_id}`, refused)
  await t.rejects(sql`DELETE FROM usage_rows WHERE request_id = ${call.request_id}`, refused)
  await t.rejects(sql`TRUNCATE usage_rows`, refused)
  t.match(
    await database.bookings.book([call]),
    { booked: { length: 0 } },
    'a second delivery is none of these',
  )
  t.match(await database.audits.verifyWallets(), { ok: true })
})
