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
const { account: organization } = await database.accounts.create({
  name: 'Org',
  kind: 'organization',
  credit: 0n,
})
const { account: other } = await database.accounts.create({ name: 'Other', kind: 'organization', credit: 0n })
const member = await newAccount(database)
const agent = await database.agents.create(organization.id, agentFile)

const namesOf = async (reader: { accountId: string; memberId?: string; agentId?: string }) =>
  (await database.knowledge.readableBases(reader)).map(
    ({ kbId, name, pages }) => `${kbId === 'default' ? 'default' : name}:${pages}`,
  )

t.test('the own base is there before anything was imported, and is made only then', async (t) => {
  const reader = { accountId: organization.id }
  t.same(await database.knowledge.readableBases(reader), [
    { id: '', kbId: 'default', name: 'default', pages: 0 },
  ])
  t.same(await database.knowledge.listBases(organization.id), [])
  const virtual = await database.knowledge.findBase(reader, 'default')
  t.equal(virtual?.pages, 0)
  t.same(await database.knowledge.readPages([virtual!], ['page_x']), [])
  t.same(await database.knowledge.listTags([virtual!], 5), [])
  t.same(await database.knowledge.pagesByTag([virtual!], 'x', 5), [])
  t.equal(await database.knowledge.backlinks([virtual!], 'page_x', 5), null)
  t.equal(await database.knowledge.findBase(reader, ''), null)
  const made = await database.knowledge.defaultBase(organization.id)
  t.same(await database.knowledge.defaultBase(organization.id), made, 'once')
  t.equal(made.isDefault, true)
  await importAll(database, made.id, [draft('a.md')])
  t.same(await namesOf(reader), ['default:1'])
  t.equal((await database.knowledge.findBase(reader, made.id))?.kbId, 'default')
  await t.rejects(database.knowledge.defaultBase('acc_x'), { code: 'account_not_found' })
  await t.rejects(database.knowledge.createBase('acc_x', 'n'), { code: 'account_not_found' })
})

t.test('who reads what: the account, the member, the agent, and nobody else', async (t) => {
  const base = async (name: string) => (await database.knowledge.createBase(other.id, name)).id
  const [toOrganization, toMember, toAgent, toNobody] = await Promise.all(
    ['to organization', 'to member', 'to agent', 'to nobody'].map(base),
  )
  await database.knowledge.grantBase(toOrganization!, organization.id)
  await database.knowledge.grantBase(toMember!, member)
  t.same((await database.knowledge.grantBase(toAgent!, agent.id)).readers, [agent.id])
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
  t.equal(await database.knowledge.findBase(all, toNobody!), null)
  t.equal(await database.knowledge.findBase(all, 'kb_x'), null)
  t.equal((await database.knowledge.findBase(all, toAgent!))?.kbId, toAgent)
  await database.knowledge.revokeBase(toAgent!, agent.id)
  t.equal(await database.knowledge.findBase(all, toAgent!), null)
})

t.test("another account's own base goes by its id", async (t) => {
  const own = await database.knowledge.defaultBase(other.id)
  await importAll(database, own.id, [draft('theirs.md')])
  await database.knowledge.grantBase(own.id, organization.id)
  const reader = { accountId: organization.id }
  const found = await database.knowledge.findBase(reader, own.id)
  t.match(found, { id: own.id, kbId: own.id, pages: 1 })
  t.not((await database.knowledge.findBase(reader, 'default'))?.id, own.id)
  await database.knowledge.revokeBase(own.id, organization.id)
})

t.test('only what there is is granted, and only what was granted is revoked', async (t) => {
  const { id } = await database.knowledge.createBase(other.id, 'Grants')
  await t.rejects(database.knowledge.grantBase(id, 'acc_x'), { code: 'reader_not_found' })
  await t.rejects(database.knowledge.grantBase('kb_x', organization.id), { code: 'kb_not_found' })
  await t.rejects(database.knowledge.revokeBase('kb_x', organization.id), { code: 'kb_not_found' })
  await t.rejects(database.knowledge.revokeBase(id, organization.id), { code: 'reader_not_found' })
  const gone = await database.agents.create(organization.id, agentFile)
  await database.agents.setState(gone.id, 'deleted')
  await t.rejects(database.knowledge.grantBase(id, gone.id), { code: 'reader_not_found' })
  await t.rejects(database.knowledge.showBase('kb_x'), { code: 'kb_not_found' })
  await t.rejects(database.knowledge.deleteBase('kb_x'), { code: 'kb_not_found' })
})

t.test('a page is found in the bases that were asked, and in no other', async (t) => {
  const { id: theirs } = await database.knowledge.createBase(other.id, 'Theirs')
  await importAll(database, theirs, [
    draft('secret.md', { tags: ['t'] }),
    draft('b.md', { links: ['secret'] }),
  ])
  const [base] = (await database.knowledge.readableBases({ accountId: other.id })).filter(
    ({ id }) => id === theirs,
  )
  const [page] = await database.knowledge.pagesByTag([base!], 't', 5)
  const mine = await database.knowledge.readableBases({ accountId: organization.id })
  t.same(await database.knowledge.readPages(mine, [page!.id]), [])
  t.same(await database.knowledge.pagesByTag(mine, 't', 5), [])
  t.equal(await database.knowledge.backlinks(mine, page!.id, 5), null)
  t.equal((await database.knowledge.backlinks([base!], page!.id, 5))?.length, 1)
  await database.knowledge.deleteBase(theirs)
  t.same(await database.knowledge.readPages([base!], [page!.id]), [])
})
