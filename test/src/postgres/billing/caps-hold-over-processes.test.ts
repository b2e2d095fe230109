import t from 'tap'
import { newId } from '../../../../src/core/keys/ids.ts'
import { CAP_RESERVATION_MINUTES } from '../../../../src/postgres/billing/caps.ts'
import { eventually } from '../../../support/service.ts'
import { newAccount, reserveCap, settlement, startDatabase } from '../support.ts'
import { created, giveBack, newVideo, settle } from '../tasks/support.ts'

const { database, sql, openAnother } = await startDatabase(t)
const other = await openAnother()

async function newKey(spendCap: bigint | null) {
  const accountId = await newAccount(database)
  const { key } = await database.keys.create({ accountId, name: 'capped', kind: 'employee', spendCap })
  return { accountId, keyId: key.id }
}

const reserved = async (keyId: string): Promise<bigint> => {
  const [row] = await sql<[{ sum: string }]>`
    SELECT coalesce(sum(amount), 0)::text AS sum FROM cap_reservations WHERE key_id = ${keyId}`
  return BigInt(row.sum)
}
const grantOf = async (keyId: string) => (await database.keys.show(keyId)).grant

t.test('of many that ask at once in two processes, those get it whom the cap covers', async (t) => {
  const { keyId } = await newKey(50n)
  const asked = Array.from({ length: 40 }, (_, at) =>
    reserveCap([database, other][at % 2]!, { keyId, requestId: newId('req'), amount: 10n }),
  )
  t.equal((await Promise.all(asked)).filter(Boolean).length, 5)
  t.equal(await reserved(keyId), 50n)
})

t.test('who asks while another reservation is being made waits for it', async (t) => {
  const { keyId } = await newKey(50n)
  let answer: boolean | null = null
  const isWaiting = async () => {
    const [row] = await sql<[{ count: bigint }]>`SELECT count(*) FROM pg_locks WHERE NOT granted`
    return row.count > 0n || answer !== null ? true : undefined
  }
  const asked = await sql.begin(async (transaction) => {
    await transaction`SELECT reserve_spend(${newId('req')}, ${keyId}, 30, ${Date.now()}, '1 hour')`
    const asking = reserveCap(other, { keyId, requestId: newId('req'), amount: 30n })
    void asking.then((isReserved) => {
      answer = isReserved
    })
    await eventually('it waits', isWaiting)
    return { asking }
  })
  t.equal(await asked.asking, false)
})

t.test('a booking spends what was reserved, in the transaction that frees the reservation', async (t) => {
  const { accountId, keyId } = await newKey(50n)
  const requestId = newId('req')
  t.ok(await reserveCap(database, { keyId, requestId, amount: 30n }))
  t.ok(await reserveCap(other, { keyId, requestId, amount: 30n }), 'a request reserves once')
  t.equal(await reserved(keyId), 30n)
  const ended = settlement(accountId, { request_id: requestId, key_id: keyId, cost: '20' })
  const { wallets } = await database.bookings.book([ended, settlement(accountId, { cost: '7' })])
  t.match(
    wallets.find(({ accountId: id }) => id === keyId),
    { balance: 30n, used: 20n, version: 2n },
    'the notification has what the cap leaves',
  )
  t.equal(await reserved(keyId), 0n)
  t.match(await grantOf(keyId), { spent: 20n, version: 2n })
  t.same((await database.bookings.book([ended])).wallets, [], 'a second delivery changes nothing')
  t.match(await grantOf(keyId), { spent: 20n, version: 2n })
  t.same(
    (await database.wallets.read([keyId])).map(({ balance }) => balance),
    [30n],
  )
  t.same(
    (await database.bookings.readBooked([], [keyId])).wallets.map(({ used }) => used),
    [20n],
  )

  const free = newId('req')
  t.ok(await reserveCap(database, { keyId, requestId: free, amount: 30n }))
  const refused = settlement(accountId, { request_id: free, key_id: keyId, cost: '0', status: 'interrupted' })
  t.match((await database.bookings.book([refused])).wallets, [{ accountId: keyId, balance: 30n }])
  t.equal(await reserved(keyId), 0n, 'a call at no charge frees what it reserved')
  t.match(await grantOf(keyId), { spent: 20n, version: 2n })
  t.equal((await database.audits.verifyWallets()).ok, true)
})

t.test('a call that has ended reserves its cost, and one that was given up nothing', async (t) => {
  const { keyId } = await newKey(50n)
  const [ended, givenUp] = [newId('req'), newId('req')]
  await reserveCap(database, { keyId, requestId: ended, amount: 40n })
  await database.reservations.shrink(ended, 15n)
  t.ok(await reserveCap(other, { keyId, requestId: givenUp, amount: 35n }))
  t.notOk(await reserveCap(other, { keyId, requestId: newId('req'), amount: 1n }))
  await database.reservations.release(givenUp)
  await sql`
    UPDATE cap_reservations SET expires_at = expires_at - make_interval(mins => ${CAP_RESERVATION_MINUTES})
    WHERE key_id = ${keyId}`
  t.notOk(await reserveCap(other, { keyId, requestId: newId('req'), amount: 36n }), 'its row may come late')
  t.equal(await reserved(keyId), 15n)
})

t.test('what a process left behind that died is free again in time', async (t) => {
  const { keyId } = await newKey(50n)
  await reserveCap(database, { keyId, requestId: newId('req'), amount: 50n })
  t.notOk(await reserveCap(other, { keyId, requestId: newId('req'), amount: 1n }))
  await sql`UPDATE cap_reservations SET expires_at = now() WHERE key_id = ${keyId}`
  t.ok(await reserveCap(other, { keyId, requestId: newId('req'), amount: 50n }))
})

t.test('a cap that is raised, lowered or taken away holds from then on', async (t) => {
  const { keyId } = await newKey(50n)
  const ask = (amount: bigint) => reserveCap(other, { keyId, requestId: newId('req'), amount })
  t.notOk(await ask(60n))
  await database.keys.update(keyId, { spendCap: 60n })
  t.ok(await ask(60n))
  await database.keys.update(keyId, { spendCap: 10n })
  t.notOk(await ask(1n))
  await database.keys.update(keyId, { spendCap: null })
  t.ok(await ask(1_000n))
  t.equal(await reserved(keyId), 60n, 'nothing is reserved without a cap')
  t.same(await database.wallets.read([keyId]), [])
})

t.test('a task reserves its hold until it ends, however it ends', async (t) => {
  const { accountId, keyId } = await newKey(1_000n)
  const order = (hold: bigint) => database.tasks.create(newVideo(accountId, { keyId, hold }))
  const made = (hold: bigint) => created(database, newVideo(accountId, { keyId, hold }))
  const [first, second] = [await made(600n), await made(300n)]
  t.same(await order(200n), { outcome: 'over_limit', refusal: { by: 'spend_cap' } })
  t.equal(await reserved(keyId), 900n)
  t.equal((await database.accounts.show(accountId)).wallet.held, 900n, 'what was refused holds nothing')

  const wallet = await settle(database, first, 450n)
  t.equal(wallet.accountId, accountId, 'a move tells of the account’s wallet')
  t.match(await grantOf(keyId), { spent: 450n })
  t.equal(await reserved(keyId), 300n)
  await giveBack(database, second, 'failed')
  t.equal(await reserved(keyId), 0n)
  t.match(await grantOf(keyId), { spent: 450n })

  const poor = await database.accounts.create({ name: 'poor', credit: 10n })
  const { key } = await database.keys.create({
    accountId: poor.account.id,
    name: 'capped',
    kind: 'employee',
    spendCap: 1_000n,
  })
  t.match(await database.tasks.create(newVideo(poor.account.id, { keyId: key.id, hold: 11n })), {
    outcome: 'insufficient',
  })
  t.equal(await reserved(key.id), 0n, 'what the wallet refuses reserves nothing')
  t.equal((await database.audits.verifyWallets()).ok, true)
})

t.test('calls and tasks of one account are made, moved and booked at once without deadlock', async (t) => {
  const { accountId, keyId } = await newKey(1_000_000n)
  const work = Array.from({ length: 30 }, async (_, at) => {
    const by = [database, other][at % 2]!
    if (at % 3 === 0) {
      const made = await by.tasks.create(newVideo(accountId, { keyId, hold: 100n }))
      if (made.outcome === 'created') await settle(by, made.task, 60n)
      return
    }
    const requestId = newId('req')
    await reserveCap(by, { keyId, requestId, amount: 50n })
    await by.bookings.book([settlement(accountId, { request_id: requestId, key_id: keyId, cost: '40' })])
  })
  await Promise.all(work)
  t.match(await grantOf(keyId), { spent: 10n * 60n + 20n * 40n })
  t.equal(await reserved(keyId), 0n)
  t.equal((await database.audits.verifyWallets()).ok, true)
})
