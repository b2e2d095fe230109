import t from 'tap'
import { SOURCE_LINK_TTL_SECS } from '../../../../schemas/knowledge/wiki.ts'
import { connect } from '../../../../src/postgres/connection.ts'
import { importPages } from '../../../../src/postgres/knowledge/import.ts'
import type { PageDraft } from '../../../../src/postgres/knowledge/types.ts'
import { newAccount, startDatabase } from '../support.ts'
import { draft, importAll } from './wiki-support.ts'

const { database, sql, url, openAnother } = await startDatabase(t)
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
  await t.rejects(database.knowledge.importPages({ baseId: base, drafts: drafts(), present, prune: true }), {
    message: 'a bad file',
  })
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

t.test('an import that another one overtook: refused where they differ, done where they agree', async (t) => {
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
})

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
      ).map(({ key, expires_at }) => [key.slice(`sources/${base}/`.length), Number(expires_at) - Date.now()]),
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
