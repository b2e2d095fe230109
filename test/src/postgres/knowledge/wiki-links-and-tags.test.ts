import t from 'tap'
import { TAG_MAX_CHARS } from '../../../../schemas/knowledge/wiki.ts'
import { TITLE_MAX_CHARS } from '../../../../src/markdown/fields.ts'
import { newAccount, startDatabase } from '../support.ts'
import { draft, importAll } from './wiki-support.ts'

const { database, sql } = await startDatabase(t)
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
  t.same(await database.knowledge.backlinks([base], idOf('b.md'), 9), [], 'its alias leads to another page')
  t.same(titles(await database.knowledge.backlinks([base], idOf('c.md'), 9)), ['Alpha'])
  t.same(titles(await database.knowledge.backlinks([base], idOf('a.md'), 9)), ['Alpha'], 'the page itself')
  t.same(
    titles(await database.knowledge.backlinks([base], idOf('e.md'), 9)),
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
    const entries = await database.knowledge.backlinks([base], id, 99)
    t.same(entries?.map(({ id }) => id).sort(), linking.map(({ id }) => id).sort())
  }
})

t.test('a link finds a page that came later, and loses one that went', async (t) => {
  const a = draft('a.md', { links: ['Later'] })
  const { baseId, base, idOf } = await baseOf(a)
  const link = async () => (await database.knowledge.readPages([base], [idOf('a.md')]))[0]?.outgoing_links[0]
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
  t.same(await database.knowledge.backlinks([base], idOf('c.md'), 9), [])
  t.same(titles(await database.knowledge.backlinks([base], idOf('b.md'), 9)), ['a'])
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
    t.equal((await database.knowledge.pagesByTag([base], tag, 9)).length, 1)
    t.equal((await database.knowledge.backlinks([base], idOf('a.md'), 9))?.length, 1)
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
  t.same(titles(await database.knowledge.pagesByTag([base], 'Hr ', 9)), ['a', 'b', 'c'])
  t.same(titles(await database.knowledge.pagesByTag([base], 'hr', 2)), ['a', 'b'])
  t.same(titles(await database.knowledge.pagesByTag([base], '休假', 9)), ['c'])
  t.same(await database.knowledge.pagesByTag([base], 'nothing', 9), [])
})

t.test('several bases at once: each page says whose it is', async (t) => {
  const one = await baseOf(draft('a.md', { tags: ['t'] }))
  const two = await baseOf(draft('b.md', { tags: ['T'] }))
  const entries = await database.knowledge.pagesByTag([one.base, two.base], 't', 9)
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
