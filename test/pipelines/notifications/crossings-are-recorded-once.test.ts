/** Balances and circuit breakers: one event for each crossing, however many processes see it. */
import t from 'tap'
import { ONE_CREDIT } from '../../../schemas/money.ts'
import { newId } from '../../../src/core/keys/ids.ts'
import { settlement } from '../../src/postgres/support.ts'
import { startNotifications } from './support.ts'

const bench = await startNotifications(t)
const { database, sql } = bench

const typesOf = async (subject: string) =>
  (
    await sql<
      { type: string }[]
    >`SELECT type FROM events WHERE subject_id = ${subject} ORDER BY created_at, type`
  ).map(({ type }) => type)
const spend = (accountId: string, credits: number) =>
  database.bookings.book([
    settlement(accountId, { request_id: newId('req'), cost: String(BigInt(credits) * ONE_CREDIT) }),
  ])

t.test('a balance that falls below its threshold is one event, until it was above it again', async (t) => {
  const accountId = await bench.newAccount(100n)
  await database.alerts.setLowBalance(accountId, 50n * ONE_CREDIT)
  await spend(accountId, 50)
  t.same(await typesOf(accountId), [], 'exactly the threshold is not below it')
  await Promise.all([1, 2, 3, 4].map(() => spend(accountId, 1)))
  t.same(await typesOf(accountId), ['balance.low'])
  await database.wallets.adjust(accountId, 10n * ONE_CREDIT, { reason: 'test' })
  await spend(accountId, 20)
  t.same(await typesOf(accountId), ['balance.low', 'balance.low'])
  await spend(accountId, 40)
  await spend(accountId, 1)
  t.same(await typesOf(accountId), ['balance.low', 'balance.low', 'balance.empty'])
  t.match(await sql`SELECT data FROM events WHERE type = 'balance.empty' AND subject_id = ${accountId}`, [
    { data: { balance: '-4', held: '0', threshold: '50' } },
  ])
  await database.alerts.setLowBalance(accountId, null)
  await database.wallets.topUp(accountId, 500n * ONE_CREDIT)
  await spend(accountId, 490)
  t.equal((await typesOf(accountId)).length, 3, 'without a threshold there is no event')
})

t.test('a hold that comes and goes is no crossing', async (t) => {
  const accountId = await bench.newAccount(60n)
  await database.alerts.setLowBalance(accountId, 50n * ONE_CREDIT)
  for (const ref of ['vid_1', 'vid_2', 'vid_3']) {
    await sql`UPDATE wallets SET balance = balance - ${20n * ONE_CREDIT}, held = held + ${20n * ONE_CREDIT} WHERE account_id = ${accountId}`
    await sql`UPDATE wallets SET balance = balance + ${20n * ONE_CREDIT}, held = held - ${20n * ONE_CREDIT} WHERE account_id = ${accountId}`
    t.same(await typesOf(accountId), [], ref)
  }
})

t.test('breakers of all processes make one event for each crossing, and flapping makes none', async (t) => {
  const other = await bench.database
  const report = (isOpen: boolean) =>
    Promise.all([database, other].map((one) => one.alerts.recordBreakers([{ channelId: 'primary', isOpen }])))
  const calm = () => sql`UPDATE channel_breakers SET closed_since = closed_since - interval '2 minutes'`
  await report(false)
  t.same(await typesOf('primary'), [])
  await report(true)
  await report(true)
  t.same(await typesOf('primary'), ['channel.opened'])
  await report(false)
  await report(true)
  await calm()
  await report(false)
  t.same(await typesOf('primary'), ['channel.opened'], 'closed for a moment')
  await calm()
  await report(false)
  t.same(await typesOf('primary'), ['channel.opened', 'channel.closed'])
  await report(true)
  t.same((await typesOf('primary')).length, 3)
  t.match(await sql`SELECT account_id FROM events WHERE subject_id = 'primary' LIMIT 1`, [
    { account_id: null },
  ])
})
