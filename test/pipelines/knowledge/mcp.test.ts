/** The official client over HTTP: it lists the six tools and calls each, and checks what comes by the schemas it got. */
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import t, { type Test } from 'tap'
import { MCP_TOOLS, type ToolName, type ToolOutput } from '../../../schemas/knowledge/mcp.ts'
import { newId } from '../../../src/core/keys/ids.ts'
import { draft, startWiki } from './support.ts'

const wiki = await startWiki(t)
const reader = await wiki.newReader()
const source = await wiki.putSource('tides.pdf', 'a file', 'application/pdf')
const LONG = '知😀'.repeat(5_000)
const ids = await wiki.write(reader.accountId, [
  draft('tides.md', { title: 'Tides', body: LONG, text: LONG, tags: ['sea'], links: ['Moon'], source }),
  draft('moon.md', { title: 'Moon', summary: 'It pulls at the sea', tags: ['sky'] }),
])
const [tides, moon] = [ids.get('Tides')!, ids.get('Moon')!]

/** A base of somebody else, granted to the reader: MCP knows no bases, and reads them all. */
const lender = await wiki.newReader()
const lent = await wiki.database.knowledge.createBase(lender.accountId, 'Lent')
const lentIds = await wiki.write(
  lender.accountId,
  [draft('reef.md', { title: 'Reef', tags: ['sea'] })],
  lent.id,
)
const reef = lentIds.get('Reef')!
await wiki.database.knowledge.grantBase(lent.id, reader.accountId)
const secret = (await wiki.write(lender.accountId, [draft('safe.md', { title: 'Safe', tags: ['sea'] })])).get(
  'Safe',
)!

async function connected(t: Test, headers: Record<string, string>) {
  const transport = new StreamableHTTPClientTransport(new URL('/mcp', wiki.baseUrl), {
    requestInit: { headers },
  })
  const client = new Client({ name: 'test', version: '1' })
  // Its types forget that an optional session id may be absent.
  await client.connect(transport as Parameters<Client['connect']>[0])
  t.teardown(() => client.close())
  return client
}

interface Called {
  readonly isError?: boolean
  readonly content: { readonly type: string; readonly text: string }[]
  readonly structuredContent?: unknown
}

const client = await connected(t, { authorization: `Bearer ${reader.key}` })
// What a tool answers is checked by the client only after it listed the tools.
const { tools } = await client.listTools()
const call = async (name: string, args: Record<string, unknown>) =>
  (await client.callTool({ name, arguments: args })) as unknown as Called
const found = async <Name extends ToolName>(name: Name, args: Record<string, unknown>) => {
  const { isError, content, structuredContent } = await call(name, args)
  if (isError) throw new Error(content[0]?.text)
  t.same(JSON.parse(content[0]!.text), structuredContent, `${name}: as text it is the same`)
  return MCP_TOOLS[name].output.parse(structuredContent) as ToolOutput<Name>
}

t.test('who it speaks to, and what it can do', async (t) => {
  t.match(client.getServerVersion(), { name: 'tollgate', version: '1.2.3' })
  t.match(client.getInstructions(), /search_wiki/)
  t.same(
    tools.map(({ name }) => name),
    ['search_wiki', 'read_page', 'read_pages', 'list_by_tag', 'backlinks', 'get_source'],
  )
  const other = await connected(t, { 'x-api-key': reader.key })
  t.equal((await other.listTools()).tools.length, 6, 'with the other header too')
  await other.ping()
})

t.test('search_wiki: all readable bases at once', async (t) => {
  const all = await found('search_wiki', { q: 'sea' })
  t.same(all.results.map(({ title }) => title).sort(), ['Moon', 'Reef', 'Tides'])
  t.match(all, { query: 'sea', total_hits: 3, returned: 3, offset: 0, has_more: false })
  t.same(all.results.find(({ id }) => id === reef)?.kb_id, lent.id, 'each result names its base')
  t.match(await found('search_wiki', { q: 'sea', limit: 1, offset: 1 }), { returned: 1, has_more: true })
})

t.test('read_page: up to 8,000 characters', async (t) => {
  const page = await found('read_page', { id: tides })
  t.match(page, { id: tides, kb_id: 'default', body_truncated: true, outgoing_links: [{ id: moon }] })
  t.equal(page.body, '知😀'.repeat(4_000))
  t.match(await found('read_page', { id: reef }), { kb_id: lent.id, body_truncated: false })
})

t.test('read_pages: excerpts of 1,200 characters, and what is missing', async (t) => {
  const nobody = newId('page')
  const { pages, missing } = await found('read_pages', { ids: [reef, secret, tides, 'x\0', nobody, tides] })
  t.match(pages, [{ id: reef }, { id: tides, body: '知😀'.repeat(600), body_truncated: true }])
  t.same(missing, [secret, 'x\0', nobody])
})

t.test('list_by_tag and backlinks', async (t) => {
  t.match(await found('list_by_tag', { tag: 'sea' }), {
    tag: 'sea',
    returned: 2,
    has_more: false,
    pages: [{ title: 'Reef' }, { title: 'Tides' }],
  })
  t.match(await found('list_by_tag', { tag: 'nothing\0' }), { returned: 0, pages: { length: 0 } })
  t.match(await found('backlinks', { id: moon }), { id: moon, returned: 1, pages: [{ id: tides }] })
  t.match(await found('backlinks', { id: tides }), { returned: 0, has_more: false })
})

t.test('get_source: a link for an hour', async (t) => {
  const { url, ...rest } = await found('get_source', { id: tides })
  t.same(rest, { r2_key: source.r2_key, filename: 'tides.pdf', locator: 'page 3', url_ttl_secs: 3600 })
  t.equal(await (await wiki.open(url)).text(), 'a file')
  t.match(await call('get_source', { id: moon }), {
    isError: true,
    content: [{ text: 'The page has no source file.' }],
  })
})

t.test('a page that cannot be read is as one that is not there', async (t) => {
  for (const name of ['read_page', 'backlinks', 'get_source'])
    for (const id of [secret, newId('page'), 'page_1', "x' OR 1=1", '\ud800'])
      t.match(await call(name, { id }), {
        isError: true,
        content: [{ text: /^There is no page ".*" that this key can read\. Take ids from search_wiki/ }],
      })
})

t.test('the protocol without the client', async (t) => {
  const post = (body: string, headers: Record<string, string> = {}) =>
    fetch(new URL('/mcp', wiki.baseUrl), {
      method: 'POST',
      body,
      headers: { authorization: `Bearer ${reader.key}`, 'content-type': 'application/json', ...headers },
    })
  const ping = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' })
  const answered = await post(ping, { origin: 'https://app.example.com' })
  t.equal(answered.status, 200)
  t.equal(answered.headers.get('content-type'), 'application/json')
  t.equal(answered.headers.get('access-control-allow-origin'), '*')
  t.equal(answered.headers.get('mcp-session-id'), null)
  t.same(await answered.json(), { jsonrpc: '2.0', id: 1, result: {} })
  for (const origin of [
    'https://elsewhere.test',
    'http://app.example.com',
    'https://app.example.com:8443',
    'null',
  ]) {
    const refused = await post(ping, { origin })
    t.equal(refused.status, 403, origin)
    t.match(await refused.json(), { error: { code: 'permission_denied', message: /mcp\.allowed_origins/ } })
  }
  for (const headers of [{ authorization: '' }, { authorization: 'Bearer x' }]) {
    const refused = await post(ping, headers)
    t.equal(refused.status, 401)
    t.match(await refused.json(), { error: { code: 'invalid_api_key' } })
  }
  t.equal((await post('{', { 'mcp-protocol-version': '2019-01-01' })).status, 400)
  t.equal((await post(ping, { 'mcp-protocol-version': '2019-01-01' })).status, 400, 'the header arrives')
  const notification = await post(JSON.stringify({ jsonrpc: '2.0', method: 'notifications/initialized' }))
  t.match([notification.status, await notification.text()], [202, ''])
  t.equal((await post(`"${'x'.repeat(1024 * 1024)}"`)).status, 413)
  for (const method of ['GET', 'DELETE', 'PUT']) {
    const refused = await fetch(new URL('/mcp', wiki.baseUrl), { method })
    t.match([refused.status, refused.headers.get('allow')], [405, 'POST'], method)
  }
})

t.test('nothing went wrong unforeseen', async (t) => t.same(wiki.unforeseen, []))
