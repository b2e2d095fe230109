/** "Knowledge-base search REST" and "MCP server": pages of a base, and six tools over all that a key may read. */
import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { Client as McpClient } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import t, { type Test } from 'tap'
import { importFolder } from '../../src/server/knowledge/import-folder.ts'
import { openStore } from '../../src/storage/open-store.ts'
import { section, statement, statements } from './statement.ts'
import type { Client, Json, World } from './world.ts'

const WIKI = '/api/v1/ext/wiki'
const LONG = 'A long page about tea. '.repeat(600)
const COUNT = 60
const missing = { status: 404, body: { error: { code: 'not_found' } } }
const invalid = { status: 400, body: { error: { code: 'invalid_request' } } }

const FILES: Readonly<Record<string, string>> = {
  'oolong.md': `---
title: Oolong
summary: A tea between green and black
tags: [tea, drinks]
aliases: [Wulong]
confidence: high
needs_review: true
source:
  filename: notes.html
  locator: "line 7"
---
Oolong is partly oxidised; see [[Water]] and [[Nowhere]].
`,
  'notes.html': '<h1>Field notes</h1>',
  'water.md': '---\ntags: [tea]\n---\n# Water\n\nJust below the boil.\n',
  'long.md': `# Long\n\n${LONG}\n`,
  ...Object.fromEntries(
    Array.from({ length: COUNT }, (_, index) => [`many-${index}.md`, `# Many ${index}\n\nA plum.\n`]),
  ),
}

/** An account whose own base has these pages; what costs most is made once. */
let made: Promise<{ client: Client; idOf: (title: string) => string }> | null = null
function library(t: Test, world: World) {
  made ??= fill(t, world)
  return made
}

async function fill(t: Test, world: World) {
  const { service } = world
  const { database } = service
  const client = await world.client('0')
  const folder = t.testdir()
  for (const [path, content] of Object.entries(FILES)) {
    await mkdir(dirname(join(folder, path)), { recursive: true })
    await writeFile(join(folder, path), content)
  }
  const store = await openStore({
    objectStore: null,
    dataDir: join(dirname(service.configPath), 'service'),
    publicUrl: service.baseUrl,
    fileLinkKey: database.masterKey.fileLinkKey,
  })
  const { id: baseId } = await database.knowledge.defaultBase(client.accountId)
  await importFolder(
    { wiki: database.knowledge, store, onProgress: () => undefined },
    { baseId, folder, prune: false },
  )
  const ids = new Map<string, string>()
  for (const offset of [0, 50])
    for (const q of ['plum', 'tea', 'Oolong', 'Water', 'Long']) {
      const { results } = (await client.get(`${WIKI}/search?q=${q}&limit=50&offset=${offset}`)).body
      for (const { id, title } of results) ids.set(title, id)
    }
  const idOf = (title: string) => {
    const id = ids.get(title)
    if (id === undefined) throw new Error(`no page ${title}`)
    return id
  }
  return { client, idOf }
}

/** A client of the MCP SDK, by this header. */
async function connect(t: Test, world: World, headers: Record<string, string>) {
  const client = new McpClient({ name: 'test', version: '1' })
  const url = new URL('/mcp', world.service.baseUrl)
  const transport = new StreamableHTTPClientTransport(url, { requestInit: { headers } })
  await client.connect(transport as Parameters<McpClient['connect']>[0])
  t.teardown(() => client.close())
  return client
}

async function callTool(t: Test, world: World, name: string, args: Record<string, unknown>): Promise<Json> {
  const { client } = await library(t, world)
  const mcp = await connect(t, world, { authorization: `Bearer ${client.key}` })
  return mcp.callTool({ name, arguments: args })
}

const PAGE = {
  id: /^page_/,
  kb_id: 'default',
  title: 'Oolong',
  summary: 'A tea between green and black',
  body: /partly oxidised/,
  tags: ['tea', 'drinks'],
  aliases: ['Wulong'],
  links: Array,
  confidence: String,
  needs_review: true,
  source: { r2_key: String, filename: 'notes.html', locator: 'line 7' },
}

await section(t, 'Knowledge and MCP', [
  statement('A search answers with its hits, their number and whether there are more', async (t, world) => {
    const { client, idOf } = await library(t, world)
    const { status, body } = await client.get(`${WIKI}/search?q=oolong`)
    t.equal(status, 200)
    t.strictSame(Object.keys(body).sort(), [
      'has_more',
      'offset',
      'query',
      'results',
      'returned',
      'total_hits',
    ])
    t.match(body, { query: 'oolong', total_hits: Number, offset: 0, returned: Number, has_more: false })
    t.match(body.results[0], {
      id: idOf('Oolong'),
      title: 'Oolong',
      summary: String,
      snippet: String,
      tags: ['tea', 'drinks'],
      confidence: String,
      needs_review: true,
      score: Number,
    })
  }),
  statement('A search has 20 hits by default, 50 at most, and goes on from an offset', async (t, world) => {
    const { client } = await library(t, world)
    const search = async (more: string) => (await client.get(`${WIKI}/search?q=plum${more}`)).body
    t.match(await search(''), { returned: 20, offset: 0, has_more: true, total_hits: COUNT })
    t.match(await search('&limit=50'), { returned: 50, has_more: true })
    t.match(await search('&limit=50&offset=50'), { returned: COUNT - 50, offset: 50, has_more: false })
    for (const query of ['limit=51', 'limit=0', 'offset=-1'])
      t.match(await client.get(`${WIKI}/search?q=plum&${query}`), invalid, query)
  }),
  statement('A search needs its words', async (t, world) => {
    const { client } = await library(t, world)
    for (const query of ['', '?q=']) t.match(await client.get(`${WIKI}/search${query}`), invalid, query)
  }),
  statement('Readable bases are listed with their number of pages', async (t, world) => {
    const { client } = await library(t, world)
    const { body } = await client.get(`${WIKI}/kbs`)
    t.match(body.data, [{ kb_id: 'default', page_count: COUNT + 3 }])
  }),
  statement('Tags are listed with their counts, and pages under a tag', async (t, world) => {
    const { client, idOf } = await library(t, world)
    const tags = (await client.get(`${WIKI}/tags`)).body.data
    t.match(tags, [
      { tag: 'tea', count: 2 },
      { tag: 'drinks', count: 1 },
    ])
    const pages = (await client.get(`${WIKI}/tags/tea`)).body.data
    t.same(pages.map(({ id }: { id: string }) => id).sort(), [idOf('Oolong'), idOf('Water')].sort())
  }),
  statement('Pages are read by their ids, 25 at most, bodies cut after 4000 characters', async (t, world) => {
    const { client, idOf } = await library(t, world)
    const ids = Array.from({ length: 26 }, (_, index) => idOf(`Many ${index}`))
    const read = async (some: readonly string[]) =>
      (await client.get(`${WIKI}/pages?ids=${some.join()}`)).body
    t.equal((await read(ids.slice(0, 25))).data.length, 25)
    const cut = (await read(ids)).data
    t.same(
      cut.map(({ id }: { id: string }) => id),
      ids.slice(0, 25),
      'the 26th is dropped without a word',
    )
    const [long, short] = (await read([idOf('Long'), idOf('Water')])).data
    t.same([long.body.length, long.body_truncated], [4000, true])
    t.equal(short.body_truncated, false)
    for (const query of ['', '?ids=', '?ids=,'])
      t.match(await client.get(`${WIKI}/pages${query}`), invalid, query)
  }),
  statement('One page is read in full, with its fields and its links', async (t, world) => {
    const { client, idOf } = await library(t, world)
    const { body } = await client.get(`${WIKI}/pages/${idOf('Oolong')}`)
    t.match(body, PAGE)
    for (const name of ['compiled_at', 'model']) t.ok(name in body.source, name)
    const links = body.outgoing_links
    t.match(links, [
      { id: idOf('Water'), resolved: true, title: 'Water' },
      { resolved: false, title: 'Nowhere' },
    ])
    t.ok((await client.get(`${WIKI}/pages/${idOf('Long')}`)).body.body.length >= LONG.trim().length)
  }),
  statement('Pages that link to a page are listed', async (t, world) => {
    const { client, idOf } = await library(t, world)
    const { body } = await client.get(`${WIKI}/pages/${idOf('Water')}/backlinks`)
    t.match(body.data, [{ id: idOf('Oolong'), title: 'Oolong' }])
    t.same((await client.get(`${WIKI}/pages/${idOf('Oolong')}/backlinks`)).body.data, [])
  }),
  statement('The source of a page has a link that opens for an hour', async (t, world) => {
    const { client, idOf } = await library(t, world)
    const { body } = await client.get(`${WIKI}/pages/${idOf('Oolong')}/source`)
    t.match(body, {
      r2_key: String,
      filename: 'notes.html',
      locator: 'line 7',
      url: /^http/,
      url_ttl_secs: 3600,
    })
    const file = await fetch(body.url)
    t.same([file.status, await file.text()], [200, FILES['notes.html']])
    const left = Number(new URL(body.url).searchParams.get('expires')) - Date.now() / 1000
    t.ok(left > 3500 && left <= 3601)
  }),
  statements(
    [
      '/search?q=tea',
      '/tags',
      '/tags/tea',
      '/pages?ids=page_1',
      '/pages/page_1',
      '/pages/page_1/backlinks',
      '/pages/page_1/source',
    ],
    (path) => `A base that is not there, or not readable, is 404 on ${path}`,
    async (t, world, path) => {
      const { client } = await library(t, world)
      const stranger = await world.client()
      const { id } = await world.service.database.knowledge.createBase(stranger.accountId, 'Theirs')
      for (const base of ['kb_00000000000000000000000000', id]) {
        const query = `${path.includes('?') ? '&' : '?'}kb_id=${base}`
        t.match(await client.get(WIKI + path + query), missing, base)
      }
      t.not((await client.get(`${WIKI}${path}${path.includes('?') ? '&' : '?'}kb_id=default`)).status, 400)
    },
  ),
  statement('A page of another account is 404', async (t, world) => {
    const { idOf } = await library(t, world)
    const stranger = await world.client()
    for (const rest of ['', '/backlinks', '/source'])
      t.match(await stranger.get(`${WIKI}/pages/${idOf('Oolong')}${rest}`), missing, rest)
    t.match(await stranger.get(`${WIKI}/pages/page_00000000000000000000000000`), missing)
  }),
  statement('Every path of it is read-only', async (t, world) => {
    const { client } = await library(t, world)
    for (const path of ['/search', '/kbs', '/tags', '/pages'])
      t.equal((await client.post(WIKI + path, {})).status, 405, path)
  }),
  statement('MCP has six tools, which only read', async (t, world) => {
    const { client } = await library(t, world)
    const places: readonly Record<string, string>[] = [
      { authorization: `Bearer ${client.key}` },
      { 'x-api-key': client.key },
    ]
    for (const headers of places) {
      const mcp = await connect(t, world, headers)
      const { tools } = await mcp.listTools()
      t.same(tools.map(({ name }) => name).sort(), [
        'backlinks',
        'get_source',
        'list_by_tag',
        'read_page',
        'read_pages',
        'search_wiki',
      ])
      for (const { annotations, inputSchema } of tools) {
        t.equal(annotations?.readOnlyHint, true)
        t.notOk('kb_id' in (inputSchema.properties ?? {}), 'no kb_id')
      }
    }
  }),
  statement('MCP is stateless and answers with JSON, without a session', async (t, world) => {
    const { client } = await library(t, world)
    const list = { jsonrpc: '2.0', id: 1, method: 'tools/list' }
    const answer = await client.send('POST', '/mcp', list, { accept: 'application/json, text/event-stream' })
    t.equal(answer.status, 200)
    t.match(answer.headers.get('content-type'), /^application\/json/)
    t.equal(answer.headers.get('mcp-session-id'), null)
    t.equal(answer.body.result.tools.length, 6)
  }),
  statement('search_wiki has 10 hits by default, 50 at most, without bodies', async (t, world) => {
    const search = async (args: object) => callTool(t, world, 'search_wiki', { q: 'plum', ...args })
    const found = (await search({})).structuredContent
    t.equal(found.results.length, 10)
    for (const hit of found.results) t.notOk('body' in hit)
    t.equal((await search({ limit: 50 })).structuredContent.results.length, 50)
    t.equal((await search({ limit: 50, offset: 50 })).structuredContent.results.length, COUNT - 50)
    t.equal((await search({ limit: 51 })).isError, true)
  }),
  statement('read_page has the page, its body cut after 8000 characters', async (t, world) => {
    const { idOf } = await library(t, world)
    const page = (await callTool(t, world, 'read_page', { id: idOf('Oolong') })).structuredContent
    t.match(page, { ...PAGE, kb_id: String })
    const long = (await callTool(t, world, 'read_page', { id: idOf('Long') })).structuredContent
    t.equal(long.body.length, 8000)
  }),
  statement('read_pages has up to 25 pages, bodies cut after 1200 characters', async (t, world) => {
    const { idOf } = await library(t, world)
    const ids = Array.from({ length: 26 }, (_, index) => idOf(`Many ${index}`))
    const read = (some: readonly string[]) => callTool(t, world, 'read_pages', { ids: some })
    t.equal((await read(ids.slice(0, 25))).structuredContent.pages.length, 25)
    const over = await read(ids)
    t.ok(over.isError === true || over.structuredContent.pages.length === 25)
    const [long] = (await read([idOf('Long')])).structuredContent.pages
    t.equal(long.body.length, 1200)
  }),
  statement('list_by_tag, backlinks and get_source answer as their REST siblings', async (t, world) => {
    const { idOf } = await library(t, world)
    const tagged = (await callTool(t, world, 'list_by_tag', { tag: 'tea' })).structuredContent
    t.match(JSON.stringify(tagged), idOf('Oolong'))
    const linking = (await callTool(t, world, 'backlinks', { id: idOf('Water') })).structuredContent
    t.match(JSON.stringify(linking), idOf('Oolong'))
    const { url } = (await callTool(t, world, 'get_source', { id: idOf('Oolong') })).structuredContent
    t.equal((await fetch(url)).status, 200)
  }),
  statement('MCP without a key is 401', async (t, world) => {
    const { client } = await library(t, world)
    const list = { jsonrpc: '2.0', id: 1, method: 'tools/list' }
    t.equal((await client.send('POST', '/mcp', list, { authorization: 'Bearer x' })).status, 401)
  }),
  statement('A foreign Origin is 403 at MCP, and the own one is not', async (t, world) => {
    const { client } = await library(t, world)
    const list = { jsonrpc: '2.0', id: 1, method: 'tools/list' }
    const accept = 'application/json, text/event-stream'
    const ask = async (origin: string) => (await client.send('POST', '/mcp', list, { accept, origin })).status
    t.equal(await ask('https://evil.example'), 403)
    t.equal(await ask(world.service.baseUrl), 200)
  }),
])
