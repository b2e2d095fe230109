import t from 'tap'
import { newId } from '../../../../src/core/keys/ids.ts'
import type { Database } from '../../../../src/postgres/database.ts'
import { startDatabase } from '../support.ts'

const { database, openAnother } = await startDatabase(t)
const CAP = 5_000_000_000n

const account = async (name: string, kind: 'personal' | 'organization' = 'personal') =>
  (await database.accounts.create({ name, kind, credit: 0n })).account.id

/** An organization with an admin and a member. */
async function newOrganization() {
  const [organization, admin, member] = [
    await account('Acme', 'organization'),
    await account('Ann'),
    await account('Bob'),
  ]
  await database.organizations.putMember(organization, admin, 'admin')
  await database.organizations.putMember(organization, member, 'member')
  return { organization, admin, member }
}

const newAgent = (organization: string) =>
  database.agents.create(organization, {
    name: 'Support',
    model: 'sonata-large',
    persona: 'You are polite.',
    temperature: null,
    knowledge: [],
    web_search: false,
    image_generation: false,
  })

t.test('members are personal accounts of an organization, each with one role', async (t) => {
  const { organization, admin, member } = await newOrganization()
  // In the order of their ids, which is by chance within a millisecond.
  const members = (await database.organizations.listMembers(organization)).toSorted((a, b) =>
    a.name < b.name ? -1 : 1,
  )
  t.match(members, [
    { accountId: admin, name: 'Ann', role: 'admin' },
    { accountId: member, name: 'Bob', role: 'member' },
  ])
  t.match(await database.organizations.putMember(organization, member, 'admin'), {
    role: 'admin',
    name: 'Bob',
  })
  t.equal((await database.organizations.listMembers(organization)).length, 2)
  await t.rejects(database.organizations.putMember(admin, member, 'member'), { code: 'not_an_organization' })
  await t.rejects(database.organizations.putMember(organization, organization, 'member'), {
    code: 'not_a_personal_account',
  })
  await t.rejects(database.organizations.putMember(organization, newId('acc'), 'member'), {
    code: 'account_not_found',
  })
  await t.rejects(database.organizations.listMembers(newId('acc')), { code: 'account_not_found' })
  await t.rejects(database.organizations.listMembers(admin), { code: 'not_an_organization' })
})

t.test('the last admin stays while there is somebody to decide for', async (t) => {
  const { organization, admin, member } = await newOrganization()
  const refused = { code: 'last_admin' }
  await t.rejects(database.organizations.removeMember(organization, admin), refused)
  await t.rejects(database.organizations.putMember(organization, admin, 'member'), refused)
  await database.organizations.removeMember(organization, member)
  await t.rejects(database.organizations.removeMember(organization, member), { code: 'member_not_found' })
  t.match(await database.organizations.removeMember(organization, admin), { accountId: admin, role: 'admin' })
  t.same(await database.organizations.listMembers(organization), [])
})

t.test('two admins that are removed at once: one of them stays', async (t) => {
  const { organization, admin, member } = await newOrganization()
  await database.organizations.putMember(organization, member, 'admin')
  await database.organizations.putMember(organization, await account('Cleo'), 'member')
  const other = await openAnother()
  const removals = [
    database.organizations.removeMember(organization, admin),
    other.organizations.removeMember(organization, member),
  ]
  const states = (await Promise.allSettled(removals)).map(({ status }) => status)
  t.same(states.sort(), ['fulfilled', 'rejected'])
})

t.test('the last owner stays, whether or not there are other members', async (t) => {
  const organization = await account('Acme', 'organization')
  const owner = await account('Ann')
  const { id: user, accountId: second } = await database.users.create({
    email: 'bob@example.com',
    name: 'Bob',
    credit: 0n,
  })
  await database.organizations.putMember(organization, owner, 'owner')
  const refused = { code: 'last_owner', message: new RegExp(`${owner} is the last owner of ${organization}`) }
  await t.rejects(database.organizations.removeMember(organization, owner), refused)
  for (const role of ['admin', 'billing', 'member'] as const)
    await t.rejects(database.organizations.putMember(organization, owner, role), refused)
  await database.organizations.putMember(organization, second, 'owner')
  await database.accounts.setEnabled(second, false)
  await t.rejects(
    database.organizations.removeMember(organization, owner),
    refused,
    'a disabled account decides nothing',
  )
  await database.accounts.setEnabled(second, true)
  await database.users.update(user, { enabled: false })
  await t.rejects(
    database.organizations.removeMember(organization, owner),
    refused,
    'nor does a disabled user',
  )
  await database.users.update(user, { enabled: true })
  t.match(await database.organizations.removeMember(organization, owner), { accountId: owner, role: 'owner' })
})

t.test('two owners who leave at once: one of them stays', async (t) => {
  const other = await openAnother()
  for (let round = 0; round < 8; round++) {
    const organization = await account('Acme', 'organization')
    const [one, two] = [await account('Ann'), await account('Bob')]
    for (const owner of [one, two]) await database.organizations.putMember(organization, owner, 'owner')
    const outcomes = await Promise.allSettled([
      database.organizations.removeMember(organization, one),
      round % 2 === 0
        ? other.organizations.removeMember(organization, two)
        : other.organizations.putMember(organization, two, 'member'),
    ])
    t.same(outcomes.map(({ status }) => status).sort(), ['fulfilled', 'rejected'])
    const owners = (await database.organizations.listMembers(organization)).filter(
      ({ role }) => role === 'owner',
    )
    t.equal(owners.length, 1)
  }
})

t.test('a request becomes an employee key with a spend cap, of the organization', async (t) => {
  const { organization, admin, member } = await newOrganization()
  const asked = await database.keyRequests.create({
    organizationId: organization,
    memberId: member,
    name: 'desk',
  })
  t.match(asked, {
    organizationId: organization,
    memberId: member,
    state: 'pending',
    agentId: null,
    keyId: null,
  })
  const refused = (by: string, code: string) =>
    t.rejects(database.keyRequests.approve({ requestId: asked.id, by, spendCap: CAP }), { code })
  await refused(member, 'not_an_admin')
  await refused(newId('acc'), 'not_an_admin')
  await database.accounts.setEnabled(admin, false)
  await refused(admin, 'not_an_admin')
  await database.accounts.setEnabled(admin, true)
  await t.rejects(database.keyRequests.deny(newId('kreq'), { by: admin }), { code: 'request_not_found' })

  const expiresAt = new Date('2040-01-01T00:00:00Z')
  const wanted = { requestId: asked.id, by: admin, spendCap: CAP, allowedModels: ['a'], expiresAt }
  const { request, key, raw } = await database.keyRequests.approve(wanted)
  t.match(request, { state: 'approved', decidedBy: admin, keyId: key.id })
  t.match(key, { accountId: organization, kind: 'employee', name: 'desk', allowedModels: ['a'], expiresAt })
  t.match(key.grant, { memberId: member, approvedBy: admin, spendCap: CAP, spent: 0n })
  t.match(await database.keys.findCredential(database.keys.lookupHash(raw)), { key: { id: key.id } })
  await refused(admin, 'request_decided')
  await t.rejects(database.keys.update(key.id, { spendCap: null }), { code: 'spend_cap_required' })
  t.match(await database.keyRequests.list(organization), [{ id: asked.id, state: 'approved' }])
  await t.rejects(
    database.keyRequests.create({ organizationId: organization, memberId: newId('acc'), name: 'x' }),
    {
      code: 'member_not_found',
    },
  )
})

t.test('a request that two admins decide on is decided once', async (t) => {
  const { organization, admin, member } = await newOrganization()
  const { id } = await database.keyRequests.create({
    organizationId: organization,
    memberId: member,
    name: 'desk',
  })
  const approve = (by: Database) => by.keyRequests.approve({ requestId: id, by: admin, spendCap: CAP })
  const outcomes = await Promise.allSettled([approve(database), approve(await openAnother())])
  t.same(outcomes.map(({ status }) => status).sort(), ['fulfilled', 'rejected'])
  t.equal((await database.keys.list(organization)).length, 1)
  const second = await database.keyRequests.create({
    organizationId: organization,
    memberId: member,
    name: 'lap',
  })
  t.match(await database.keyRequests.deny(second.id, { by: admin }), {
    state: 'denied',
    decidedBy: admin,
    keyId: null,
  })
})

t.test('an agent’s key is asked for and approved the same way', async (t) => {
  const { organization, admin, member } = await newOrganization()
  const agent = await newAgent(organization)
  const asked = { organizationId: organization, memberId: member, name: 'bot', agentId: agent.id }
  const foreign = await newAgent((await newOrganization()).organization)
  await t.rejects(database.keyRequests.create({ ...asked, agentId: foreign.id }), { code: 'agent_not_found' })
  const { id: requestId } = await database.keyRequests.create(asked)
  const { key } = await database.keyRequests.approve({ requestId, by: admin, spendCap: CAP })
  t.match(key, { kind: 'agent', agentId: agent.id, grant: { memberId: member, spendCap: CAP } })

  const late = await database.keyRequests.create(asked)
  await database.agents.setState(agent.id, 'deleted')
  await t.rejects(database.keyRequests.approve({ requestId: late.id, by: admin, spendCap: CAP }), {
    code: 'agent_deleted',
  })
  t.match(
    (await database.keyRequests.list(organization))[0],
    { id: late.id, state: 'pending' },
    'nothing is done',
  )
})

t.test('a member who leaves takes along keys and requests, and those of nobody else', async (t) => {
  const { organization, admin, member } = await newOrganization()
  const issue = async (memberId: string) => {
    const { id } = await database.keyRequests.create({
      organizationId: organization,
      memberId,
      name: memberId,
    })
    return (await database.keyRequests.approve({ requestId: id, by: admin, spendCap: CAP })).key.id
  }
  const [own, foreign] = [await issue(member), await issue(admin)]
  const operators = await database.keys.create({ accountId: organization, name: 'op', kind: 'employee' })
  const open = await database.keyRequests.create({
    organizationId: organization,
    memberId: member,
    name: 'more',
  })
  await database.organizations.removeMember(organization, member)
  t.ok((await database.keys.show(own)).revokedAt)
  for (const id of [foreign, operators.key.id]) t.equal((await database.keys.show(id)).revokedAt, null)
  await t.rejects(database.keyRequests.approve({ requestId: open.id, by: admin, spendCap: CAP }), {
    code: 'request_decided',
  })
  t.match((await database.keyRequests.list(organization))[0], { id: open.id, state: 'withdrawn' })
})

t.test('who is removed while a key is being approved has no key in the end', async (t) => {
  const other = await openAnother()
  for (let round = 0; round < 8; round++) {
    const { organization, admin, member } = await newOrganization()
    const { id } = await database.keyRequests.create({
      organizationId: organization,
      memberId: member,
      name: 'desk',
    })
    await Promise.allSettled([
      database.keyRequests.approve({ requestId: id, by: admin, spendCap: CAP }),
      other.organizations.removeMember(organization, member),
      other.keyRequests.create({ organizationId: organization, memberId: member, name: 'late' }),
    ])
    const keys = await database.keys.list(organization)
    t.same(
      keys.filter(({ revokedAt }) => revokedAt === null),
      [],
    )
    const states = (await database.keyRequests.list(organization)).map(({ state }) => state)
    t.notOk(states.includes('pending'))
  }
})
