/** A reservation that is made after its caller stopped waiting is released: the call may be booked by then, and nothing else ends it. */
import t from 'tap'
import { newId } from '../../../../src/core/keys/ids.ts'
import { DeadlineExceeded } from '../../../../src/postgres/errors.ts'
import { until } from '../../../support/eventually.ts'
import { newAccount, startDatabase } from '../support.ts'

const { database, sql, openAnother } = await startDatabase(t)
const other = await openAnother()
const accountId = await newAccount(database)
const { key } = await database.keys.create({ accountId, name: 'capped', kind: 'employee', spendCap: 1_000n })

const LOCKS = {
  'in a spend cap': async (work: () => Promise<void>) =>
    void (await sql.begin(async (holding) => {
      await holding`SELECT FROM grants WHERE key_id = ${key.id} FOR UPDATE`
      await work()
    })),
  'in a wallet': async (work: () => Promise<void>) =>
    void (await sql.begin(async (holding) => {
      await holding`SELECT FROM wallets WHERE account_id = ${accountId} FOR UPDATE`
      await work()
    })),
}
const reservedIn = undefined

for (const [where, underLock] of Object.entries(LOCKS))
  t.test(where, async (t) => {
    const requestId = newId('req')
    const wanted = { requestId, amount: 100n, submittedAt: Date.now(), keyId: key.id, accountId, reservedIn }
    await underLock(async () => {
      const reserving: Promise<unknown> =
        where === 'in a wallet'
          ? other.reservations.reserveWallet(wanted)
          : other.reservations.reserveSpend(wanted)
      await t.rejects(reserving, DeadlineExceeded)
    })
    const left = async () => {
      const rows = await sql`
        SELECT ref FROM cap_reservations WHERE ref = ${requestId}
        UNION SELECT ref FROM wallet_reservations WHERE ref = ${requestId}`
      return rows.length
    }
    const isIdle = async () => {
      const [row] = await sql<[{ busy: bigint }]>`
        SELECT count(*) AS busy FROM pg_stat_activity WHERE state = 'active' AND query LIKE '%reserve_%' AND pid <> pg_backend_pid()`
      return row.busy === 0n
    }
    await until('the late statement is over', isIdle)
    await until('nothing stays reserved', async () => (await left()) === 0)
  })
