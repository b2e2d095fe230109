/** Knowledge bases: their pages, links, readers, import and search. */
import fc from 'fast-check'
import t from 'tap'
import { SOURCE_LINK_TTL_SECS, TAG_MAX_CHARS } from '../../../../schemas/knowledge/wiki.ts'
import { TITLE_MAX_CHARS } from '../../../../src/markdown/fields.ts'
import { connect, type Sql } from '../../../../src/postgres/connection.ts'
import { importPages } from '../../../../src/postgres/knowledge/import.ts'
import { searchPages } from '../../../../src/postgres/knowledge/search.ts'
import type { PageDraft } from '../../../../src/postgres/knowledge/types.ts'
import { newAccount, openFresh, sharePostgres } from '../support.ts'
import { addBase, addPages, indexing, openPages, readable, titlesOf } from './search-support.ts'
import { draft, importAll } from './wiki-support.ts'

const engines = await sharePostgres()

t.test('wiki links and tags', async (t) => {
  const { database, sql } = await openFresh(t, engines)
  const accountId = await newAccount(database)

  async function baseOf(...pages: ReturnType<typeof draft>[]) {
    const { id } = await database.knowledge.createBase(accountId, 'Base')
    await importAll(database, id, pages)
    const base = await database.knowledge.findBase({ accountId }, id)
    const rows = await sql<
      { id: string; path: string }[]
    >`SELECT id, path FROM wiki_pages WHERE base_id = ${id}`
    const ids = new Map(rows.map(({ id, path }) => [path, id]))
    return { baseId: id, base: base!, idOf: (path: string) => ids.get(path) ?? '' }
  }

  const titles = (entries: readonly { title: string }[] | null) => entries?.map(({ title }) => title)

  t.test('a link finds a title before an alias, however it is written', async (t) => {
    const { base, idOf } = await baseOf(
      draft('a.md', {
        title: 'Alpha',
        links: ['BETA', ' straße  weg', 'ＧＡＭＭＡ', 'Nobody', 'alpha', '休假'],
      }),
      draft('b.md', { title: 'Other', aliases: ['Beta'] }),
      draft('c.md', { title: 'Beta' }),
      draft('d.md', { title: 'STRASSE WEG' }),
      draft('e.md', { title: 'x', aliases: ['gamma', '休假'] }),
    )
    const [page] = await database.knowledge.readPages([base], [idOf('a.md')])
    t.same(page?.outgoing_links, [
      { id: idOf('c.md'), resolved: true, title: 'Beta' },
      { id: idOf('d.md'), resolved: true, title: 'STRASSE WEG' },
      { id: idOf('e.md'), resolved: true, title: 'x' },
      { id: null, resolved: false, title: 'Nobody' },
      { id: idOf('a.md'), resolved: true, title: 'Alpha' },
      { id: idOf('e.md'), resolved: true, title: 'x' },
    ])
    t.same(page?.links, ['BETA', ' straße  weg', 'ＧＡＭＭＡ', 'Nobody', 'alpha', '休假'])
    t.same(
      await database.knowledge.listBacklinks([base], idOf('b.md'), 9),
      [],
      'its alias leads to another page',
    )
    t.same(titles(await database.knowledge.listBacklinks([base], idOf('c.md'), 9)), ['Alpha'])
    t.same(
      titles(await database.knowledge.listBacklinks([base], idOf('a.md'), 9)),
      ['Alpha'],
      'the page itself',
    )
    t.same(
      titles(await database.knowledge.listBacklinks([base], idOf('e.md'), 9)),
      ['Alpha'],
      'once, by whatever names',
    )
  })

  t.test('links and backlinks say the same', async (t) => {
    const names = ['A', 'B', 'C', 'D', 'E', 'F']
    const pages = names.map((name, i) =>
      draft(`${name}.md`, {
        title: names[i % 4]!,
        aliases: [names[(i * 3 + 1) % 6]!],
        links: names.filter((_, j) => (i * j) % 4 === 1 || j === (i + 1) % 6),
      }),
    )
    const { base, idOf } = await baseOf(...pages)
    const ids = names.map((name) => idOf(`${name}.md`))
    const read = await database.knowledge.readPages([base], ids)
    for (const id of ids) {
      const linking = read.filter(({ outgoing_links }) => outgoing_links.some((link) => link.id === id))
      const entries = await database.knowledge.listBacklinks([base], id, 99)
      t.same(entries?.map(({ id }) => id).sort(), linking.map(({ id }) => id).sort())
    }
  })

  t.test('a link finds a page that came later, and loses one that went', async (t) => {
    const a = draft('a.md', { links: ['Later'] })
    const { baseId, base, idOf } = await baseOf(a)
    const link = async () =>
      (await database.knowledge.readPages([base], [idOf('a.md')]))[0]?.outgoing_links[0]
    t.match(await link(), { resolved: false, title: 'Later' })
    await importAll(database, baseId, [a, draft('b.md', { title: 'later' })])
    t.match(await link(), { resolved: true, title: 'later' })
    await importAll(database, baseId, [a, draft('b.md', { title: 'renamed' })])
    t.match(await link(), { resolved: false, title: 'Later' })
    await importAll(database, baseId, [a, draft('b.md', { title: 'renamed', aliases: ['LATER'] })])
    t.match(await link(), { resolved: true, title: 'renamed' })
    await importAll(database, baseId, [a], true)
    t.match(await link(), { resolved: false })
  })

  t.test('of several with one title the first by path', async (t) => {
    const { base, idOf } = await baseOf(
      ...['d.md', 'b.md', 'c.md'].map((path) => draft(path, { title: 'Same' })),
      draft('a.md', { links: ['same'] }),
    )
    const [page] = await database.knowledge.readPages([base], [idOf('a.md')])
    t.equal(page?.outgoing_links[0]?.id, idOf('b.md'))
    t.same(await database.knowledge.listBacklinks([base], idOf('c.md'), 9), [])
    t.same(titles(await database.knowledge.listBacklinks([base], idOf('b.md'), 9)), ['a'])
  })

  t.test('names as long as they may be, in characters that fold to many', async (t) => {
    for (const long of ['\ufdfa', '😀', 'ß', '中']) {
      const title = long.repeat(TITLE_MAX_CHARS / long.length)
      const tag = long.repeat(TAG_MAX_CHARS / long.length)
      const { base, idOf } = await baseOf(
        draft('a.md', { title, aliases: [title], links: [title], tags: [tag], body: long.repeat(100_000) }),
        draft(`${'é'.repeat(498)}.md`),
      )
      const [page] = await database.knowledge.readPages([base], [idOf('a.md')])
      t.equal(page?.outgoing_links[0]?.id, idOf('a.md'))
      t.equal((await database.knowledge.listPagesByTag([base], tag, 9)).length, 1)
      t.equal((await database.knowledge.listBacklinks([base], idOf('a.md'), 9))?.length, 1)
    }
  })

  t.test('links stay within their base', async (t) => {
    const { base, idOf } = await baseOf(draft('a.md', { links: ['Here'] }))
    await baseOf(draft('b.md', { title: 'Here' }))
    t.match((await database.knowledge.readPages([base], [idOf('a.md')]))[0]?.outgoing_links, [
      { resolved: false },
    ])
  })

  t.test('pages come in the order of the ids, each once, unknown ones left out', async (t) => {
    const { base, idOf } = await baseOf(draft('a.md'), draft('b.md'))
    const ids = [idOf('b.md'), 'page_x', idOf('a.md')]
    t.same(
      (await database.knowledge.readPages([base], ids)).map(({ title }) => title),
      ['b', 'a'],
    )
    t.same(await database.knowledge.readPages([base], []), [])
  })

  t.test('tags compare as links do; the most used way to write one is shown', async (t) => {
    const { base } = await baseOf(
      draft('a.md', { tags: ['HR', 'x'] }),
      draft('b.md', { tags: ['hr'] }),
      draft('c.md', { tags: ['hr', '休假'] }),
    )
    t.same(await database.knowledge.listTags([base], 9), [
      { tag: 'hr', count: 3 },
      { tag: 'x', count: 1 },
      { tag: '休假', count: 1 },
    ])
    t.equal((await database.knowledge.listTags([base], 1)).length, 1)
    t.same(titles(await database.knowledge.listPagesByTag([base], 'Hr ', 9)), ['a', 'b', 'c'])
    t.same(titles(await database.knowledge.listPagesByTag([base], 'hr', 2)), ['a', 'b'])
    t.same(titles(await database.knowledge.listPagesByTag([base], '休假', 9)), ['c'])
    t.same(await database.knowledge.listPagesByTag([base], 'nothing', 9), [])
  })

  t.test('several bases at once: each page says whose it is', async (t) => {
    const one = await baseOf(draft('a.md', { tags: ['t'] }))
    const two = await baseOf(draft('b.md', { tags: ['T'] }))
    const entries = await database.knowledge.listPagesByTag([one.base, two.base], 't', 9)
    t.same(
      entries.map(({ kb_id }) => kb_id),
      [one.baseId, two.baseId],
    )
    t.same(await database.knowledge.listTags([one.base, two.base], 9), [{ tag: 'T', count: 2 }])
  })

  t.test('what an author would want to know', async (t) => {
    const { baseId } = await baseOf(
      draft('b.md', { title: 'Same', links: ['Nowhere', 'Same'] }),
      draft('a.md', { title: 'same', links: ['x'] }),
    )
    t.same(await database.knowledge.reportLinks(baseId, 1), {
      unresolved: { count: 2, first: [{ path: 'a.md', link: 'x' }] },
      sameTitle: { count: 1, first: [{ title: 'same', paths: ['a.md', 'b.md'] }] },
    })
  })
})

t.test('wiki read by whom', async (t) => {
  const { database } = await openFresh(t, engines)
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
  const { account: other } = await database.accounts.create({
    name: 'Other',
    kind: 'organization',
    credit: 0n,
  })
  const member = await newAccount(database)
  const agent = await database.agents.create(organization.id, agentFile)

  const namesOf = async (reader: { accountId: string; memberId?: string; agentId?: string }) =>
    (await database.knowledge.listReadableBases(reader)).map(
      ({ kbId, name, pages }) => `${kbId === 'default' ? 'default' : name}:${pages}`,
    )

  t.test('the own base is there before anything was imported, and is made only then', async (t) => {
    const reader = { accountId: organization.id }
    t.same(await database.knowledge.listReadableBases(reader), [
      { id: '', kbId: 'default', name: 'default', pages: 0 },
    ])
    t.same(await database.knowledge.listBases(organization.id), [])
    const virtual = await database.knowledge.findBase(reader, 'default')
    t.equal(virtual?.pages, 0)
    t.same(await database.knowledge.readPages([virtual!], ['page_x']), [])
    t.same(await database.knowledge.listTags([virtual!], 5), [])
    t.same(await database.knowledge.listPagesByTag([virtual!], 'x', 5), [])
    t.equal(await database.knowledge.listBacklinks([virtual!], 'page_x', 5), null)
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
    const [base] = (await database.knowledge.listReadableBases({ accountId: other.id })).filter(
      ({ id }) => id === theirs,
    )
    const [page] = await database.knowledge.listPagesByTag([base!], 't', 5)
    const mine = await database.knowledge.listReadableBases({ accountId: organization.id })
    t.same(await database.knowledge.readPages(mine, [page!.id]), [])
    t.same(await database.knowledge.listPagesByTag(mine, 't', 5), [])
    t.equal(await database.knowledge.listBacklinks(mine, page!.id, 5), null)
    t.equal((await database.knowledge.listBacklinks([base!], page!.id, 5))?.length, 1)
    await database.knowledge.deleteBase(theirs)
    t.same(await database.knowledge.readPages([base!], [page!.id]), [])
  })
})

t.test('wiki import all or nothing', async (t) => {
  const { database, sql, url, openAnother } = await openFresh(t, engines)
  const accountId = await newAccount(database)

  const newBase = async () => (await database.knowledge.createBase(accountId, 'Notes')).id
  const pagesOf = (baseId: string) =>
    sql<{ id: string; path: string; body: string }[]>`
    SELECT id, path, body FROM wiki_pages WHERE base_id = ${baseId} ORDER BY path`
  const staged = async () => (await sql`SELECT FROM wiki_staging`).length

  t.test('added, changed, unchanged, gone; ids stay with their paths', async (t) => {
    const base = await newBase()
    const [a, b, c] = [draft('a.md'), draft('b/b.md'), draft('c.md')]
    t.same(await importAll(database, base, [a, b, c]), {
      added: 3,
      changed: 0,
      unchanged: 0,
      gone: [],
      pages: 3,
    })
    const before = await pagesOf(base)
    for (const { id } of before) t.match(id, /^page_[0-9A-Z]{26}$/)
    const changed = draft('b/b.md', { body: 'Other', tags: ['x'] })
    t.same(await importAll(database, base, [a, changed]), {
      added: 0,
      changed: 1,
      unchanged: 1,
      gone: ['c.md'],
      pages: 3,
    })
    const after = await pagesOf(base)
    t.same(
      after.map(({ id }) => id),
      before.map(({ id }) => id),
    )
    t.equal(after[1]?.body, 'Other')
    t.match(await importAll(database, base, [a, changed], true), { unchanged: 2, gone: ['c.md'], pages: 2 })
    t.same(
      (await pagesOf(base)).map(({ path }) => path),
      ['a.md', 'b/b.md'],
    )
    t.match(await importAll(database, base, [a, changed], true), { unchanged: 2, gone: { length: 0 } })
    t.equal((await database.knowledge.showBase(base)).pages, 2)
    t.equal(await staged(), 0)
  })

  t.test('many batches become one state', async (t) => {
    const base = await newBase()
    const all = Array.from({ length: 1_203 }, (_, i) => draft(`${i}.md`, { aliases: [`Alias ${i}`] }))
    t.match(await importAll(database, base, all), { added: 1_203, pages: 1_203 })
    const [names] = await sql`SELECT count(*)::int AS count FROM wiki_names WHERE base_id = ${base}`
    t.equal(names?.count, 2 * 1_203)
  })

  t.test('what the drafts throw ends the import, and nothing has changed', async (t) => {
    const base = await newBase()
    await importAll(database, base, [draft('a.md')])
    async function* drafts(): AsyncGenerator<PageDraft[]> {
      yield [draft('a.md', { body: 'changed' }), draft('b.md')]
      throw new Error('a bad file')
    }
    const present = new Map<string, Buffer>()
    await t.rejects(
      database.knowledge.importPages({ baseId: base, drafts: drafts(), present, prune: true }),
      {
        message: 'a bad file',
      },
    )
    t.match(await pagesOf(base), [{ path: 'a.md', body: 'Body of a.md' }])
    t.equal((await pagesOf(base)).length, 1)
    t.equal(await staged(), 0)
  })

  t.test('a session that is lost halfway leaves the base as it was', async (t) => {
    const base = await newBase()
    await importAll(database, base, [draft('a.md')])
    const pages = Array.from({ length: 1_100 }, (_, i) => draft(`${i}.md`))
    async function* drafts() {
      yield pages
    }
    let killed: Promise<unknown> | null = null
    const own = connect(url, { max: 2, name: 'importing' })
    // The client waits for the lost connection's transaction until it is cancelled.
    t.teardown(() => own.end({ timeout: 0 }))
    const outcome = importPages(own, {
      baseId: base,
      drafts: drafts(),
      present: new Map(pages.map(({ path, hash }) => [path, hash])),
      prune: true,
      onStored: () => {
        killed ??= sql`
        SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE application_name = 'importing' AND xact_start IS NOT NULL`.execute()
      },
    })
    await t.rejects(outcome)
    t.not(killed, null)
    await killed
    t.match(await pagesOf(base), [{ path: 'a.md', body: 'Body of a.md' }])
    t.equal((await database.knowledge.showBase(base)).pages, 1)
    t.match(await importAll(database, base, pages, true), { added: 1_100, gone: ['a.md'], pages: 1_100 })
  })

  t.test(
    'an import that another one overtook: refused where they differ, done where they agree',
    async (t) => {
      const base = await newBase()
      const other = await openAnother()
      const [old, mine, theirs] = ['old', 'mine', 'theirs'].map((body) => draft('a.md', { body })) as [
        PageDraft,
        PageDraft,
        PageDraft,
      ]
      await importAll(database, base, [old])
      /** The other one is done while this one still reads its files. */
      const overtaken = (drafted: PageDraft[], present: PageDraft, between: () => Promise<unknown>) => {
        async function* drafts() {
          yield drafted
          await between()
        }
        return database.knowledge.importPages({
          baseId: base,
          drafts: drafts(),
          present: new Map([[present.path, present.hash]]),
          prune: false,
        })
      }
      await t.rejects(
        overtaken([], old, () => importAll(other, base, [theirs])),
        { code: 'import_conflict' },
      )
      t.match(await pagesOf(base), [{ body: 'theirs' }])
      t.match(await overtaken([mine], mine, () => importAll(other, base, [mine])), {
        added: 0,
        changed: 0,
        unchanged: 1,
      })
    },
  )

  t.test('two imports at once into one base: one after the other', async (t) => {
    const base = await newBase()
    const other = await openAnother()
    const pages = Array.from({ length: 600 }, (_, i) => draft(`${i}.md`))
    const outcomes = await Promise.all([importAll(database, base, pages), importAll(other, base, pages)])
    t.same(outcomes.map(({ added }) => added).sort(), [0, 600])
    t.same(
      outcomes.map(({ pages }) => pages),
      [600, 600],
    )
  })

  t.test('a base that is gone, or never was', async (t) => {
    await t.rejects(importAll(database, 'kb_x', [draft('a.md')]), { code: 'kb_not_found' })
    t.equal(await staged(), 0)
  })

  t.test('what a killed import left is cleared away by a later one', async (t) => {
    const base = await newBase()
    await sql`
    INSERT INTO wiki_staging SELECT gen_random_uuid(), 1, now() - interval '25 hours', 'page_x', 'a.md', ''::bytea, '',
      '', '', '', '{}', '{}', '{}', '', false, null, '{}', '{}', '{}'`
    t.equal(await staged(), 1)
    await importAll(database, base, [])
    t.equal(await staged(), 0)
  })

  t.test('source files end when no page names them any more, and not before', async (t) => {
    const base = await newBase()
    const key = (name: string) => `sources/${base}/${name}`
    const from = (path: string, name: string) =>
      draft(path, {
        source: { r2_key: key(name), filename: name, locator: null, compiled_at: null, model: null },
      })
    const ends = async () =>
      new Map(
        (
          await sql<{ key: string; expires_at: bigint }[]>`
          SELECT * FROM stored_objects WHERE key LIKE ${`sources/${base}/%`}`
        ).map(({ key, expires_at }) => [
          key.slice(`sources/${base}/`.length),
          Number(expires_at) - Date.now(),
        ]),
      )
    await database.knowledge.announceSources([key('one'), key('two'), key('left')])
    t.same([...(await ends()).keys()].sort(), ['left', 'one', 'two'])
    await importAll(database, base, [from('a.md', 'one'), from('b.md', 'one'), from('c.md', 'two')])
    t.same([...(await ends()).keys()], ['left'], 'a file that no page came to name keeps its end')

    await database.knowledge.announceSources([key('one')])
    t.notOk((await ends()).has('one'), 'a file that a page names has none')

    await importAll(database, base, [draft('a.md'), from('b.md', 'one'), draft('c.md')])
    const afterwards = await ends()
    t.notOk(afterwards.has('one'))
    t.ok((afterwards.get('two') ?? 0) > SOURCE_LINK_TTL_SECS * 1000, 'links that were handed out still open')
    await importAll(database, base, [], true)
    t.ok((await ends()).has('one'))

    await importAll(database, base, [from('a.md', 'one')])
    t.notOk((await ends()).has('one'), 'named again')
    await database.knowledge.deleteBase(base)
    t.ok((await ends()).has('one'))
  })

  t.test('imports into several bases at once leave the account within its limit of pages', async (t) => {
    const owner = await newAccount(database)
    const bases = await Promise.all(
      ['a', 'b', 'c'].map(async (name) => (await database.knowledge.createBase(owner, name)).id),
    )
    const importTwo = (by: typeof database, baseId: string) => {
      const pages = [draft('a.md'), draft('b.md')]
      async function* drafts() {
        yield pages
      }
      const present = new Map(pages.map(({ path, hash }) => [path, hash]))
      return by.knowledge.importPages({ baseId, drafts: drafts(), present, prune: false, maxAccountPages: 3 })
    }
    const other = await openAnother()
    const outcomes = await Promise.allSettled(
      bases.map((baseId, at) => importTwo(at === 1 ? other : database, baseId)),
    )
    const refusals = outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason] : []))
    t.equal(refusals.length, 2)
    for (const { code, message } of refusals) {
      t.equal(code, 'kb_full')
      t.match(message, /would have 4 pages\. The limit pages_per_account is 3: import fewer/)
    }
  })
})

t.test('search finds the page that is meant', async (t) => {
  let sql: Sql
  let base: string

  t.before(async () => {
    sql = await openPages(t, engines)
    base = await addBase(sql)
    await addPages(sql, base, [
      {
        title: 'France',
        aliases: ['法国', 'République française'],
        tags: ['country', 'Europe'],
        summary: 'A state in Western Europe.',
        text: 'The capital of France is Paris & it has <b>old</b> towns.',
      },
      { title: 'Paris', tags: ['city'], summary: 'Capital of France.', text: 'Paris lies on the Seine.' },
      { title: 'Travel notes', text: 'Somebody went through France once, and liked the bread.' },
      { title: 'Zürich', tags: ['city'], text: 'Zürich lies at the end of a lake.' },
      { title: 'Kubernetes', tags: ['software'], text: 'Kubernetes schedules containers on a cluster.' },
      { title: 'Container ship', tags: ['transport'], text: 'A ship that carries containers.' },
      { title: '北京', tags: ['城市'], summary: '中国的首都。', text: '北京位于华北平原，有三千年历史。' },
      { title: '上海', tags: ['城市'], summary: '中国最大的城市。', text: '上海位于长江入海口。' },
      { title: '光合作用', tags: ['生物'], text: '植物利用阳光把二氧化碳变成糖。' },
      { title: 'กรุงเทพมหานคร', text: 'กรุงเทพมหานครเป็นเมืองหลวงของประเทศไทย' },
      { title: '서울', text: '서울은 대한민국의 수도이다.' },
      { title: '東京タワー', text: '東京タワーは日本の電波塔です。' },
    ])
  })

  const first = async (query: string): Promise<string | undefined> => (await titlesOf(sql, [base], query))[0]

  t.test('a title goes before a text that has its word', async (t) => {
    t.same(await titlesOf(sql, [base], 'France'), ['France', 'Paris', 'Travel notes'])
  })

  t.test('aliases, accents, widths and endings', async (t) => {
    t.equal(await first('republique FRANCAISE'), 'France')
    t.equal(await first('法国'), 'France')
    t.equal(await first('zurich'), 'Zürich')
    t.equal(await first('ＺＵＲＩＣＨ lakes'), 'Zürich')
    t.equal(await first('carrying container'), 'Container ship')
  })

  t.test('typing errors and words that are not finished', async (t) => {
    t.equal(await first('kuberentes'), 'Kubernetes')
    t.equal(await first('Kubernets clustr'), 'Kubernetes')
    t.equal(await first('kube'), 'Kubernetes')
    t.same(await titlesOf(sql, [base], 'zzzzzz'), [])
  })

  t.test('questions in languages without spaces', async (t) => {
    t.equal(await first('请问中国的首都是哪座城市？'), '北京')
    t.equal(await first('中国最大的城市'), '上海')
    t.equal(await first('光合'), '光合作用', 'the beginning of a title')
    t.equal(await first('植物怎么利用阳光'), '光合作用')
    t.equal(await first('เมืองหลวงของประเทศไทย'), 'กรุงเทพมหานคร')
    t.equal(await first('대한민국 수도'), '서울')
    t.equal(await first('日本の電波塔'), '東京タワー')
  })

  t.test('a word that is cut ends with a whole character', async (t) => {
    const long = `a${'𐌰'.repeat(30)}`
    const other = await addBase(sql)
    await addPages(sql, other, [{ title: 'Gothic', text: long }])
    t.same(await titlesOf(sql, [other], long), ['Gothic'])
  })

  t.test('a query without a word finds nothing', async (t) => {
    for (const query of ['', '  ', '!?…', '。。'])
      t.same(await searchPages(sql, await readable(sql, [base]), query, { limit: 10, offset: 0 }), {
        totalHits: 0,
        results: [],
      })
  })

  t.test('a message as long as one may be is a query', async (t) => {
    const message = `${'They told me many things about ships and bread and I forgot them all again. '.repeat(12)}What is Kubernetes?`
    const [result] = (await searchPages(sql, await readable(sql, [base]), message, { limit: 5, offset: 0 }))
      .results
    t.ok(result)
  })

  t.test('a result says where it was found', async (t) => {
    const { totalHits, results } = await searchPages(sql, await readable(sql, [base]), 'capital France', {
      limit: 1,
      offset: 0,
    })
    t.equal(totalHits, 3)
    t.match(results, [
      {
        kb_id: base,
        title: 'France',
        tags: ['country', 'Europe'],
        confidence: 'high',
        needs_review: false,
        snippet:
          'The <mark>capital</mark> of <mark>France</mark> is Paris &amp; it has &lt;b&gt;old&lt;/b&gt; towns.',
      },
    ])
  })

  t.test('what only the summary has is marked there', async (t) => {
    const own = await addBase(sql)
    await addPages(sql, own, [{ title: 'Animals', summary: 'Of the <quokka>.', text: 'They are small.' }])
    const { results } = await searchPages(sql, await readable(sql, [own]), 'quokka', { limit: 1, offset: 0 })
    t.equal(results[0]?.snippet, 'Of the &lt;<mark>quokka</mark>&gt;.')
  })

  t.test('several bases are one list, and each result names its own', async (t) => {
    const other = await addBase(sql)
    await addPages(sql, other, [{ title: 'France at work', text: 'About France.' }])
    const bases = await readable(sql, [base, other])
    const { results } = await searchPages(sql, bases, 'France', { limit: 10, offset: 0 })
    t.same(new Set(results.map(({ kb_id }) => kb_id)), new Set([base, other]))
    t.equal(results[0]?.title, 'France')
    t.notOk((await titlesOf(sql, [base], 'France')).includes('France at work'))
  })

  t.test('walking through the pages of a result shows each hit once', async (t) => {
    const many = await addBase(sql)
    const count = 700
    await addPages(
      sql,
      many,
      Array.from({ length: count }, (_, index) => ({
        title: `Note ${index}`,
        text: `A common word, and ${index % 3 === 0 ? 'a copper kettle' : 'an iron pot'}, ${'again '.repeat(index % 7)}.`,
      })),
    )
    const bases = await readable(sql, [many])
    for (const query of ['common word', 'copper kettle common']) {
      const seen = new Set<string>()
      const limit = 50
      let total = Number.POSITIVE_INFINITY
      for (let offset = 0; offset < total; offset += limit) {
        const { totalHits, results } = await searchPages(sql, bases, query, { limit, offset })
        total = totalHits
        t.equal(results.length, Math.min(limit, total - offset))
        for (const { id } of results) seen.add(id)
      }
      t.equal(seen.size, total)
      t.equal((await searchPages(sql, bases, query, { limit, offset: total })).totalHits, total)
    }
  })
})

t.test('search index equals a rebuilt one', async (t) => {
  const RUNS = 12
  const WORDS = ['copper', 'iron', 'river', 'city', '首都', '长江', 'zürich', 'a']

  const page = fc.record({
    title: fc.constantFrom(...WORDS),
    aliases: fc.array(fc.constantFrom(...WORDS), { maxLength: 2 }),
    tags: fc.array(fc.constantFrom(...WORDS), { maxLength: 2 }),
    summary: fc.constantFrom(...WORDS),
    text: fc.array(fc.constantFrom(...WORDS), { maxLength: 12 }).map((words) => words.join(' ')),
  })
  /** Of few pages, so that they are changed and removed again. */
  const row = fc.integer({ min: 1, max: 6 })
  const step = fc.oneof(
    { weight: 3, arbitrary: fc.record({ act: fc.constant('put' as const), row, page }) },
    { weight: 1, arbitrary: fc.record({ act: fc.constant('remove' as const), row }) },
  )
  /** Each list is one import. */
  const imports = fc.array(fc.array(step, { maxLength: 5 }), { maxLength: 4 })

  async function indexOf(sql: Sql, baseId: string) {
    const terms =
      await sql`SELECT term, pages, letters, reversed FROM wiki_terms WHERE base_id = ${baseId} ORDER BY term`
    const postings = await sql`
    SELECT term, part, entries::text FROM wiki_postings WHERE base_id = ${baseId} ORDER BY term, part`
    const pages = await sql`
    SELECT row_id::text, (SELECT array_agg(term || ' ' || impact ORDER BY term)
      FROM unnest(terms, impacts) AS has (term, impact)) AS has
    FROM wiki_page_terms WHERE base_id = ${baseId} ORDER BY row_id`
    return { terms: [...terms], postings: [...postings], pages: [...pages] }
  }

  t.test('an index that grew by imports is the same as one built from scratch', async (t) => {
    const sql = await openPages(t, engines)
    let [compared, lasting] = [0, 0]
    await fc.assert(
      fc.asyncProperty(imports, async (all) => {
        const [grown, rebuilt] = [await addBase(sql), await addBase(sql)]
        const pages = new Map<
          number,
          (typeof page extends fc.Arbitrary<infer Page> ? Page : never) & { rowId: bigint }
        >()
        // Rows are unique over all bases.
        const first = 10 * ++compared
        for (const steps of all)
          await indexing(sql, grown, async (indexer) => {
            for (const one of steps) {
              const rowId = BigInt(first + one.row)
              if (one.act === 'put') {
                pages.set(one.row, { ...one.page, rowId })
                await indexer.put([{ ...one.page, rowId }])
              } else {
                pages.delete(one.row)
                await indexer.remove([rowId])
              }
            }
          })
        const after = await indexOf(sql, grown)
        await sql`DELETE FROM wiki_page_terms WHERE base_id = ${grown}`
        await indexing(sql, rebuilt, (indexer) => indexer.put([...pages.values()]))
        t.same(after, await indexOf(sql, rebuilt))
        lasting += pages.size
      }),
      { numRuns: RUNS },
    )
    t.ok(lasting > 0, 'pages were there to compare')
  })

  t.test('a base that is deleted leaves no index', async (t) => {
    const sql = await openPages(t, engines)
    const base = await addBase(sql)
    const text = { title: 'Copper', aliases: [], tags: [], summary: '', text: 'metal' }
    await indexing(sql, base, (indexer) => indexer.put([{ ...text, rowId: 1n }]))
    t.ok((await indexOf(sql, base)).terms.length > 0)
    await sql`DELETE FROM knowledge_bases WHERE id = ${base}`
    t.same(await indexOf(sql, base), { terms: [], postings: [], pages: [] })
  })

  t.test('an import that fails leaves the index as it was', async (t) => {
    const sql = await openPages(t, engines)
    const base = await addBase(sql)
    const text = { title: 'Copper', aliases: [], tags: [], summary: '', text: 'metal' }
    await indexing(sql, base, (indexer) => indexer.put([{ ...text, rowId: 1n }]))
    const before = await indexOf(sql, base)
    await t.rejects(
      indexing(sql, base, async (indexer) => {
        await indexer.put([{ ...text, title: 'Iron', rowId: 1n }])
        await indexer.finish()
        throw new Error('the file was bad')
      }),
      { message: 'the file was bad' },
    )
    t.same(await indexOf(sql, base), before)
  })
})
