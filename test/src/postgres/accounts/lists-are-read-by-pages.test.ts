/** Lists of people, their requests and what opens the management API: a page reads its entries, and no others. */
import { randomBytes } from 'node:crypto'
import t, { type Test } from 'tap'
import { startDatabase } from '../support.ts'

const ENTRIES = 5
const { database, sql } = await startDatabase(t)
const operator = await database.users.create({ email: 'o@example.com', name: 'O', credit: 0n })
const { account } = await database.accounts.create({ name: 'company', kind: 'organization', credit: 0n })
const accountId = account.id
await database.organizations.putMember(accountId, operator.accountId, 'owner')

interface Listing {
  readonly after?: string
  readonly limit?: number
}

/** Checks that pages of a list are its parts. */
async function pages(
  t: Test,
  list: (listing?: Listing) => Promise<readonly { readonly id: string }[]>,
  all: readonly string[],
) {
  const idsOf = async (listing?: Listing) => (await list(listing)).map(({ id }) => id)
  t.same(await idsOf(), all)
  t.same(await idsOf({ limit: 2 }), all.slice(0, 2))
  t.same(await idsOf({ after: all[1]!, limit: 2 }), all.slice(2, 4))
  t.same(await idsOf({ after: all.at(-1)! }), [])
}

/** Makes entries one after another, and returns their ids in order. */
async function made(make: (at: number) => Promise<{ readonly id: string }>): Promise<string[]> {
  const ids: string[] = []
  for (let at = 0; at < ENTRIES; at++) ids.push((await make(at)).id)
  return ids.sort()
}

const users = new Map<string, string>()

t.before(async () => {
  for (let at = 0; at < ENTRIES; at++) {
    const user = await database.users.create({ email: `User${at}@example.com`, name: `N ${at}`, credit: 0n })
    users.set(user.id, user.accountId)
  }
})

t.test('users, all or those who match', async (t) => {
  const all = [operator.id, ...users.keys()].sort()
  await pages(t, database.users.list, all)
  const found = async (search: string) => (await database.users.list({ search })).map(({ name }) => name)
  t.same(await found('uSER3@'), ['N 3'])
  t.same(await found('n 4'), ['N 4'])
  t.same(await found([...users.keys()][2]!), ['N 2'])
  t.same(await found('%'), [])
})

t.test('members, with what their keys spent', async (t) => {
  const accounts = [...users.values()]
  for (const member of accounts) await database.organizations.putMember(accountId, member, 'member')
  const list = async (listing?: Listing) =>
    (await database.organizations.listMembers(accountId, listing)).map((member) => ({ id: member.accountId }))
  await pages(t, list, [operator.accountId, ...accounts].sort())
  const { key } = await database.keys.create({ accountId, name: 'k', kind: 'employee', spendCap: 10n })
  await sql`UPDATE grants SET member_id = ${accounts[0]!}, spent = 7 WHERE key_id = ${key.id}`
  const [first] = (await database.organizations.listMembers(accountId)).filter(
    (one) => one.accountId === accounts[0],
  )
  t.match(first, { email: 'User0@example.com', spent: 7n, role: 'member' })
  t.same(await database.organizations.readSpend(accountId, accounts[0]!), {
    email: 'User0@example.com',
    spent: 7n,
  })
  t.equal(await database.organizations.findRole(accountId, operator.accountId), 'owner')
  t.equal(await database.organizations.findRole(accountId, accountId), null)
})

t.test('requests for keys, the newest first, by member and state', async (t) => {
  const [one, other] = [...users.values()] as [string, string]
  const ask = (memberId: string) => (at: number) =>
    database.keyRequests.create({ organizationId: accountId, memberId, name: `r ${at}` })
  const asked = (await made(ask(one))).reverse()
  await pages(t, (listing) => database.keyRequests.list(accountId, listing), asked)
  const more = await made(ask(other))
  await pages(t, (listing) => database.keyRequests.list(accountId, { memberId: one, ...listing }), asked)
  await database.keyRequests.deny(more[0]!, { by: operator.accountId })
  const denied = await database.keyRequests.list(accountId, { state: 'denied' })
  t.match(denied, [{ id: more[0], memberId: other }])
})

t.test('invitations and management tokens, the newest first', async (t) => {
  for (const to of [accountId, null]) {
    const role = to === null ? null : 'member'
    const invited = await made((at) =>
      database.invitations.create({
        tokenHash: randomBytes(32),
        email: `${at}@example.com`,
        accountId: to,
        role,
        installationRole: null,
      }),
    )
    await pages(t, (listing) => database.invitations.list(to, listing), invited.reverse())
    const tokens = await made(() =>
      database.managementTokens.create({
        tokenHash: randomBytes(32),
        prefix: 'tgm_1',
        name: 'ci',
        accountId: to,
        scopes: ['read'],
        expiresAt: null,
      }),
    )
    await pages(t, (listing) => database.managementTokens.list(to, listing), tokens.reverse())
  }
})

t.test('webhook endpoints, the newest first', async (t) => {
  const url = 'https://receiver.example.com/'
  const endpoints = await made(async () => {
    const wanted = { kind: 'webhook' as const, accountId, url, description: '', events: null }
    return (await database.webhooks.create(wanted)).endpoint
  })
  await pages(t, (listing) => database.webhooks.list(accountId, listing), endpoints.reverse())
})

t.test('budgets: of a scope, of a key, and those that cover the keys of a member', async (t) => {
  const [member, other] = [...users.values()] as [string, string]
  const keys = await made(async (at) => (await database.keys.create({ accountId, name: `b ${at}` })).key)
  const [held] = await database.keys.list(accountId, { memberId: member })
  const put = (scope: 'account' | 'member' | 'key', subjectId: string) =>
    database.budgets.put({ accountId, scope, subjectId, amount: 5n, period: 'day', timezone: 'UTC' })
  const states = [
    await put('account', accountId),
    await put('member', member),
    await put('member', other),
    await put('key', held!.id),
    await put('key', keys[0]!),
  ]
  const list = async (listing?: Parameters<typeof database.budgets.list>[1]) =>
    (await database.budgets.list(accountId, listing)).map(({ budget }) => budget)
  await pages(t, list, states.map(({ budget }) => budget.id).sort())
  const subjects = async (listing: Parameters<typeof list>[0]) =>
    (await list(listing)).map(({ subjectId }) => subjectId)
  t.same(await subjects({ scope: 'member' }), [member, other])
  t.same(await subjects({ keyId: keys[0]! }), [keys[0]])
  t.same(await subjects({ memberId: member }), [accountId, member, held!.id])
  t.same(await subjects({ memberId: member, limit: 1 }), [accountId])
})
