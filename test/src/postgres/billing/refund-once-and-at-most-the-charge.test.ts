/** A call or task is refunded once, at most by its charge, and the books stay right. */
import t from 'tap'
import { newAccount, settlement, startDatabase } from '../support.ts'
import { hold, settle } from '../tasks/support.ts'

const { database } = await startDatabase(t)
const reason = 'the answer was empty'

t.test('a refund is booked once, also when two come at once', async (t) => {
  const account = await newAccount(database)
  const call = settlement(account)
  await database.bookings.book([call])
  const { wallet: before } = await database.accounts.show(account)
  const refund = () => database.wallets.refund(account, call.request_id, { amount: null, reason })
  const [one, two] = await Promise.all([refund(), refund()])
  t.same([one.isRepeated, two.isRepeated].sort(), [false, true])
  t.equal(one.entry.amount, BigInt(call.cost))
  t.equal(one.entry.ref, call.request_id)
  const { wallet } = await database.accounts.show(account)
  t.equal(wallet.balance, before.balance + BigInt(call.cost))
  t.equal(wallet.used, before.used, 'what was used stays used')
  t.same((await database.audits.verifyWallets()).differences, [])
})

t.test('nothing is given back above the charge, or without one', async (t) => {
  const account = await newAccount(database)
  const call = settlement(account)
  const rejected = settlement(account, { cost: '0', status: 'rejected' })
  await database.bookings.book([call, rejected])
  const above = BigInt(call.cost) + 1n
  const refund = (ref: string, amount: bigint | null) =>
    database.wallets.refund(account, ref, { amount, reason })
  await t.rejects(refund(call.request_id, above), { code: 'invalid_amount' })
  await t.rejects(refund(call.request_id, 0n), { code: 'invalid_amount' })
  await t.rejects(refund(call.request_id, -1n), { code: 'invalid_amount' })
  await t.rejects(refund(rejected.request_id, null), { code: 'charge_not_found' })
  await t.rejects(
    database.wallets.refund(await newAccount(database), call.request_id, { amount: 1n, reason }),
    {
      code: 'charge_not_found',
    },
  )
  await refund(call.request_id, 1n)
  await t.rejects(refund(call.request_id, 2n), { code: 'refunded_already' })
  t.match(await database.wallets.findRefund(account, call.request_id), { amount: 1n, note: reason })
})

t.test('a task is refunded like a call', async (t) => {
  const account = await newAccount(database)
  const ref = await hold(database, account, 50_000_000n, 'vid_refund')
  await settle(database, ref, 20_000_000n)
  const { entry } = await database.wallets.refund(account, 'vid_refund', { amount: null, reason })
  t.equal(entry.amount, 20_000_000n)
  t.same(
    (await database.audits.verifyWallets()).differences.filter(({ account_id }) => account_id === account),
    [],
  )
})
