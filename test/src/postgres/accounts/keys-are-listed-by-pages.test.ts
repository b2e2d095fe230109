/** An account may have a million keys: lists and reports read those that they show. */
import t from 'tap'
import { parseCredits } from '../../../../schemas/money.ts'
import { startDatabase } from '../support.ts'

const { database, sql } = await startDatabase(t)
const { account } = await database.accounts.create({ name: 'company', kind: 'organization', credit: 0n })
const { account: member } = await database.accounts.create({ name: 'member', credit: 0n })
const accountId = account.id
const ids: string[] = []
for (let at = 0; at < 5; at++) {
  const more = at === 0 ? {} : { kind: 'employee' as const, spendCap: parseCredits('100') }
  ids.push((await database.keys.create({ accountId, name: `key ${at}`, ...more })).key.id)
}
ids.sort()
const listed = async (listing?: Parameters<typeof database.keys.list>[1]) =>
  (await database.keys.list(accountId, listing)).map(({ id }) => id)

t.test('page after page', async (t) => {
  t.same(await listed(), ids)
  t.same(await listed({ limit: 2 }), ids.slice(0, 2))
  t.same(await listed({ after: ids[1]!, limit: 2 }), ids.slice(2, 4))
  t.same(await listed({ after: ids[4]!, limit: 2 }), [])
})

t.test('those of a member', async (t) => {
  await sql`UPDATE grants SET member_id = ${member.id} WHERE key_id = ${ids[3]!}`
  t.same(await listed({ memberId: member.id }), [ids[3]])
  t.same(await listed({ memberId: member.id, after: ids[3]! }), [])
})

t.test('those near their cap, and the names of some', async (t) => {
  const capped = (await database.keys.list(accountId)).filter(({ grant }) => grant !== null)
  const [near, far, revoked] = capped
  for (const [key, spent] of [
    [near, '80'],
    [far, '79'],
    [revoked, '100'],
  ] as const)
    await sql`UPDATE grants SET spent = ${parseCredits(spent)} WHERE key_id = ${key!.id}`
  await database.keys.revoke(revoked!.id)
  const found = await database.keys.listNearCap(accountId, { percent: 80n, limit: 10 })
  t.same(
    found.map(({ id }) => id),
    [near!.id],
  )
  const named = await database.keys.readNamed([ids[3]!, 'key_none'])
  t.same([...named.keys()], [ids[3]])
  t.match(named.get(ids[3]!), { name: /^key \d$/, memberId: member.id })
})
