import t from 'tap'
import { newId } from '../../../../src/core/keys/ids.ts'
import { CAP_RESERVATION_MINUTES } from '../../../../src/postgres/billing/caps.ts'
import { newAccount, settlement, startDatabase } from '../support.ts'
import { newVideo } from '../tasks/support.ts'

const { database, sql, openAnother } = await startDatabase(t)
const other = await openAnother()

/** An account with a balance of 100 units beside what another one has. */
async function newWallet(): Promise<string> {
  const accountId = await newAccount(database, 0n)
  await sql`UPDATE wallets SET balance = 100 WHERE account_id = ${accountId}`
  return accountId
}
const reserve = (accountId: string, amount: bigint, by = database, requestId = newId('req')) =>
  by.reservations.reserveWallet({ accountId, requestId, amount })
const reservedIn = async (accountId: string): Promise<bigint> => {
  const [row] = await sql<[{ reserved: bigint }]>`SELECT reserved_in(${accountId}) AS reserved`
  return row.reserved
}

t.test('of many that ask at once in two processes, the balance covers those that get it', async (t) => {
  const accountId = await newWallet()
  await reserve(await newWallet(), 100n)
  const asked = Array.from({ length: 40 }, (_, at) => reserve(accountId, 20n, [database, other][at % 2]))
  t.equal((await Promise.all(asked)).filter(Boolean).length, 5)
  t.equal(await reservedIn(accountId), 100n)
  t.notOk(await reserve('acc_unknown', 0n))
})

t.test('a booking ends the reservation, and every reader learns what stays reserved', async (t) => {
  const accountId = await newWallet()
  const [ended, free, open] = [newId('req'), newId('req'), newId('req')]
  for (const requestId of [ended, free, open]) t.ok(await reserve(accountId, 30n, database, requestId))
  t.ok(await reserve(accountId, 30n, other, open), 'a request reserves once')
  t.equal(await reservedIn(accountId), 90n)
  const booking = [
    settlement(accountId, { request_id: ended, cost: '20' }),
    settlement(accountId, { request_id: free, cost: '0', status: 'interrupted' }),
  ]
  const left = { accountId, balance: 80n, reserved: 30n }
  t.match((await database.bookings.book(booking)).wallets, [left])
  t.equal(await reservedIn(accountId), 30n)
  t.match(await database.wallets.read([accountId]), [left])
  t.match((await database.bookings.readBooked([], [accountId])).wallets, [left])
  const { raw } = await database.keys.create({ accountId, name: 'reader' })
  t.match((await database.keys.findCredential(database.keys.lookupHash(raw)))?.wallet, left)

  await database.reservations.release(open)
  await reserve(await newWallet(), 1n)
  const last = settlement(accountId, { cost: '5' })
  const [wallet] = (await database.bookings.book([last])).wallets
  t.equal(wallet?.reserved, undefined, 'nothing stays reserved')
})

t.test('a call that has ended reserves its cost, and a dead process frees its calls in time', async (t) => {
  const accountId = await newWallet()
  const [ended, dead] = [newId('req'), newId('req')]
  await reserve(accountId, 60n, database, ended)
  await database.reservations.shrink(ended, 15n)
  t.ok(await reserve(accountId, 85n, other, dead))
  t.notOk(await reserve(accountId, 1n))
  await sql`
    UPDATE wallet_reservations SET expires_at = expires_at - make_interval(mins => ${CAP_RESERVATION_MINUTES})
    WHERE account_id = ${accountId}`
  t.notOk(await reserve(accountId, 86n), 'the row of the call that has ended may come late')
  t.ok(await reserve(accountId, 85n))
})

t.test('a task is held only from what no call has reserved', async (t) => {
  const accountId = await newWallet()
  await reserve(accountId, 60n)
  t.match(await database.tasks.create(newVideo(accountId, { hold: 41n })), { outcome: 'insufficient' })
  const made = await database.tasks.create(newVideo(accountId, { hold: 40n }))
  t.match(made, { outcome: 'created', wallet: { balance: 60n, held: 40n, reserved: 60n } })
  t.notOk(await reserve(accountId, 1n))
})
