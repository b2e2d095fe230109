/** Whatever is asked, the answer is a page of knowledge or a refusal: nothing fails, and nothing of another is revealed. */
import fc from 'fast-check'
import t from 'tap'
import { ANY_CHARACTER } from '../../support/any-character.ts'
import { draft, startWiki, WIKI } from './support.ts'

const RUNS = 250
const SEED = 20_251_121
const SECRET = 'kaleidoscope'

const wiki = await startWiki(t)
const reader = await wiki.newReader()
const other = await wiki.newReader()
const own = await wiki.write(reader.accountId, [
  draft('a.md', { title: 'Harbour', tags: ['sea'], links: ['Harbour'] }),
])
const secrets = await wiki.write(other.accountId, [
  draft('s.md', { title: SECRET, body: SECRET, text: SECRET, tags: [SECRET], aliases: [SECRET] }),
])
const base = await wiki.database.knowledge.createBase(other.accountId, SECRET)
const ids = [...own.values(), ...secrets.values(), base.id, 'default', '', 'page_1', '..', '%00', '%']

const wild = fc.oneof(
  fc.string({ unit: ANY_CHARACTER, maxLength: 60 }).map((text) => encodeURIComponent(text.toWellFormed())),
  fc.string({ maxLength: 30 }),
  fc.constantFrom(
    ...ids,
    SECRET,
    '"',
    "'",
    '%E0%A4',
    '%25',
    'a OR b',
    "' OR 1=1 --",
    '%F0%9F%92%A7',
    '&&|!():*<->',
    '\\',
  ),
)
const number = fc.oneof(
  fc.integer().map(String),
  fc.constantFrom('0', '50', '1e3', '999999999', '٣', ' 7'),
  wild,
)
/** What stands in a path may hold anything but what ends it. */
const step = wild.map((text) => text.replace(/[#?\s/]/g, '') || 'x')

const parameter = fc.oneof(
  fc.tuple(fc.constantFrom('q', 'kb_id', 'ids'), wild),
  fc.tuple(fc.constantFrom('limit', 'offset'), number),
  fc.tuple(wild, wild),
)
const query = fc.array(parameter, { maxLength: 5 }).map((pairs) =>
  pairs
    .map(([name, value]) => `${name}=${value}`)
    .join('&')
    .replace(/[#\s]/g, '+'),
)
const path = fc.oneof(
  fc.constantFrom('/search', '/kbs', '/tags', '/pages'),
  step.map((tag) => `/tags/${tag}`),
  fc.tuple(step, fc.constantFrom('', '/backlinks', '/source')).map(([id, what]) => `/pages/${id}${what}`),
)

t.test('over REST', async (t) => {
  await fc.assert(
    fc.asyncProperty(path, query, async (path, query) => {
      const { status, text } = await wiki.get(reader.key, `${WIKI}${path}?${query}`)
      const asked = decodeURIComponent(query.replaceAll('%', '%25'))
      return [200, 400, 404].includes(status) && (asked.includes(SECRET) || !text.includes(SECRET))
    }),
    { numRuns: RUNS, seed: SEED },
  )
  t.same(wiki.unforeseen, [])
})

const anything = fc.oneof(
  fc.string({ unit: ANY_CHARACTER, maxLength: 60 }),
  fc.constantFrom(...ids, SECRET),
  fc.integer(),
  fc.array(fc.oneof(fc.string({ unit: ANY_CHARACTER, maxLength: 30 }), fc.constantFrom(...ids)), {
    maxLength: 30,
  }),
  fc.jsonValue({ maxDepth: 2 }),
)
const argumentsOf = fc.oneof(
  fc.record(
    { q: anything, id: anything, ids: anything, tag: anything, limit: anything, offset: anything },
    { requiredKeys: [] },
  ),
  fc.jsonValue({ maxDepth: 2 }),
)

t.test('over MCP', async (t) => {
  const names = ['search_wiki', 'read_page', 'read_pages', 'list_by_tag', 'backlinks', 'get_source', 'x']
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...names), argumentsOf, async (name, args) => {
      const message = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } }
      const response = await fetch(`${wiki.baseUrl}/mcp`, {
        method: 'POST',
        headers: { 'x-api-key': reader.key, 'content-type': 'application/json' },
        body: JSON.stringify(message),
      })
      const text = await response.text()
      const asked = JSON.stringify(args)
      return [200, 400].includes(response.status) && (asked.includes(SECRET) || !text.includes(SECRET))
    }),
    { numRuns: RUNS, seed: SEED },
  )
  t.same(wiki.unforeseen, [])
})
