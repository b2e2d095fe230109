/** `tollgate budget …`, by the acts of the management API, on a real PostgreSQL. */
import t from 'tap'
import { newAccount, startDatabase } from '../postgres/support.ts'
import { command, commandsOn, wiringOn } from './support.ts'

const { database } = await startDatabase(t)
const wiring = wiringOn(database)
const { json, refused } = commandsOn(wiring)

t.test('a budget is set, replaced, listed and deleted, in the name of the operator', async (t) => {
  const account = await newAccount(database)
  const { key } = await database.keys.create({ accountId: account, kind: 'console', name: 'a key' })
  const set = (...words: string[]) => json('budget', 'set', '--account', account, ...words)
  const week = await set('--amount', '500', '--period', 'week', '--timezone', 'Europe/Berlin')
  t.match(week, { amount: '500', period: 'week', timezone: 'Europe/Berlin' })
  t.match(await set('--amount', '400', '--period', 'week'), { id: week.id, amount: '400', timezone: 'UTC' })
  const day = await set('--key', key.id, '--amount', '1.5', '--period', 'day')
  t.match(day, { key_id: key.id, amount: '1.5', period: 'day' })
  const ids = async (of: string) =>
    (await json('budget', 'list', '--account', of)).map(({ id }: { id: string }) => id).sort()
  t.same(await ids(account), [week.id, day.id].sort())
  t.same(await ids(await newAccount(database)), [])
  await json('budget', 'delete', week.id)
  t.same(await ids(account), [day.id])
  t.match(await refused('budget', 'delete', week.id), /no budget/)
  const acts = await database.auditRecord.list({ accountId: account, action: 'budget', limit: 10 })
  t.ok(acts.length >= 4)
  t.ok(acts.every(({ actor }) => actor === 'operator:test'))
})

t.test('wrong amounts, periods, time zones and subjects are refused', async (t) => {
  const [account, stranger] = [await newAccount(database), await newAccount(database)]
  const { key } = await database.keys.create({ accountId: stranger, kind: 'console', name: 'theirs' })
  const set = ['budget', 'set', '--account', account]
  const code = async (...words: string[]) => (await command([...set, ...words], wiring)).code
  t.equal(await code('--amount', '0', '--period', 'day'), 2)
  t.equal(await code('--amount', '5', '--period', 'year'), 2)
  t.equal(await code('--period', 'day'), 2)
  t.equal(await code('--amount', '5', '--period', 'day', '--key', key.id, '--member', stranger), 2)
  const day = ['--amount', '5', '--period', 'day']
  t.match(await refused(...set, ...day, '--timezone', 'Moon/Base'), /Moon\/Base/)
  t.match(await refused(...set, ...day, '--key', key.id), new RegExp(key.id))
  t.same(await json('budget', 'list', '--account', account), [])
})
