import t from 'tap'
import { newAccount, startDatabase } from '../support.ts'
import { draft, importAll } from './wiki-support.ts'

const { database } = await startDatabase(t)
const agentFile = {
  name: 'Support',
  model: 'sonata-large',
  persona: 'Polite.',
  temperature: null,
  knowledge: [],
  web_search: false,
  image_generation: false,
}
const { account: organization } = await database.createAccount({
  name: 'Org',
  kind: 'organization',
  credit: 0n,
})
const { account: other } = await database.createAccount({ name: 'Other', kind: 'organization', credit: 0n })
const member = await newAccount(database)
const agent = await database.createAgent(organization.id, agentFile)

const namesOf = async (reader: { accountId: string; memberId?: string; agentId?: string }) =>
  (await database.readableBases(reader)).map(
    ({ kbId, name, pages }) => `${kbId === 'default' ? 'default' : name}:${pages}`,
  )

t.test('the own base is there before anything was imported, and is made only then', async (t) => {
  const reader = { accountId: organization.id }
  t.same(await database.readableBases(reader), [{ id: '', kbId: 'default', name: 'default', pages: 0 }])
  t.same(await database.listBases(organization.id), [])
  const virtual = await database.findBase(reader, 'default')
  t.equal(virtual?.pages, 0)
  t.same(await database.readPages([virtual!], ['page_x']), [])
  t.same(await database.listTags([virtual!], 5), [])
  t.same(await database.pagesByTag([virtual!], 'x', 5), [])
  t.equal(await database.backlinks([virtual!], 'page_x', 5), null)
  t.equal(await database.findBase(reader, ''), null)
  const made = await database.defaultBase(organization.id)
  t.same(await database.defaultBase(organization.id), made, 'once')
  t.equal(made.isDefault, true)
  await importAll(database, made.id, [draft('a.md')])
  t.same(await namesOf(reader), ['default:1'])
  t.equal((await database.findBase(reader, made.id))?.kbId, 'default')
  await t.rejects(database.defaultBase('acc_x'), { code: 'account_not_found' })
  await t.rejects(database.createBase('acc_x', 'n'), { code: 'account_not_found' })
})

t.test('who reads what: the account, the member, the agent, and nobody else', async (t) => {
  const base = async (name: string) => (await database.createBase(other.id, name)).id
  const [toOrganization, toMember, toAgent, toNobody] = await Promise.all(
    ['to organization', 'to member', 'to agent', 'to nobody'].map(base),
  )
  await database.grantBase(toOrganization!, organization.id)
  await database.grantBase(toMember!, member)
  t.same((await database.grantBase(toAgent!, agent.id)).readers, [agent.id])
  const all = { accountId: organization.id, memberId: member, agentId: agent.id }
  t.same(await namesOf(all), ['default:1', 'to agent:0', 'to member:0', 'to organization:0'])
  t.same(await namesOf({ accountId: organization.id }), ['default:1', 'to organization:0'])
  t.same(await namesOf({ accountId: organization.id, agentId: agent.id }), [
    'default:1',
    'to agent:0',
    'to organization:0',
  ])
  t.same(await namesOf({ accountId: member }), ['default:0', 'to member:0'])
  t.same(await namesOf({ accountId: other.id }), [
    'default:0',
    'to agent:0',
    'to member:0',
    'to nobody:0',
    'to organization:0',
  ])
  t.equal(await database.findBase(all, toNobody!), null)
  t.equal(await database.findBase(all, 'kb_x'), null)
  t.equal((await database.findBase(all, toAgent!))?.kbId, toAgent)
  await database.revokeBase(toAgent!, agent.id)
  t.equal(await database.findBase(all, toAgent!), null)
})

t.test("another account's own base goes by its id", async (t) => {
  const own = await database.defaultBase(other.id)
  await importAll(database, own.id, [draft('theirs.md')])
  await database.grantBase(own.id, organization.id)
  const reader = { accountId: organization.id }
  const found = await database.findBase(reader, own.id)
  t.match(found, { id: own.id, kbId: own.id, pages: 1 })
  t.not((await database.findBase(reader, 'default'))?.id, own.id)
  await database.revokeBase(own.id, organization.id)
})

t.test('only what there is is granted, and only what was granted is revoked', async (t) => {
  const { id } = await database.createBase(other.id, 'Grants')
  await t.rejects(database.grantBase(id, 'acc_x'), { code: 'reader_not_found' })
  await t.rejects(database.grantBase('kb_x', organization.id), { code: 'kb_not_found' })
  await t.rejects(database.revokeBase('kb_x', organization.id), { code: 'kb_not_found' })
  await t.rejects(database.revokeBase(id, organization.id), { code: 'reader_not_found' })
  const gone = await database.createAgent(organization.id, agentFile)
  await database.setAgentState(gone.id, 'deleted')
  await t.rejects(database.grantBase(id, gone.id), { code: 'reader_not_found' })
  await t.rejects(database.showBase('kb_x'), { code: 'kb_not_found' })
  await t.rejects(database.deleteBase('kb_x'), { code: 'kb_not_found' })
})

t.test('a page is found in the bases that were asked, and in no other', async (t) => {
  const { id: theirs } = await database.createBase(other.id, 'Theirs')
  await importAll(database, theirs, [
    draft('secret.md', { tags: ['t'] }),
    draft('b.md', { links: ['secret'] }),
  ])
  const [base] = (await database.readableBases({ accountId: other.id })).filter(({ id }) => id === theirs)
  const [page] = await database.pagesByTag([base!], 't', 5)
  const mine = await database.readableBases({ accountId: organization.id })
  t.same(await database.readPages(mine, [page!.id]), [])
  t.same(await database.pagesByTag(mine, 't', 5), [])
  t.equal(await database.backlinks(mine, page!.id, 5), null)
  t.equal((await database.backlinks([base!], page!.id, 5))?.length, 1)
  await database.deleteBase(theirs)
  t.same(await database.readPages([base!], [page!.id]), [])
})
