/** Knowledge over HTTP and MCP. */
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import {
  Client as NewestClient,
  StreamableHTTPClientTransport as NewestTransport,
} from '@modelcontextprotocol/client'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { findPackage } from '../../../bench/harness/optional.ts'
import { ENDPOINTS } from '../../../schemas/endpoints/index.ts'
import { MCP_TOOLS, type ToolName, type ToolOutput } from '../../../schemas/knowledge/mcp.ts'
import { searchPage, sourceLink } from '../../../schemas/knowledge/query.ts'
import { SOURCE_LINK_TTL_SECS } from '../../../schemas/knowledge/wiki.ts'
import { newId } from '../../../src/core/keys/ids.ts'
import { ANY_CHARACTER } from '../../support/any-character.ts'
import { draft, type Got, startWiki, WIKI } from './support.ts'

t.test('wiki', async (t) => {
  // What each endpoint takes, gives, cuts and refuses. See docs/api-rules.md, "Knowledge search".
  /** How far the clock that links are made by is behind. */
  let behindMs = 0
  const wiki = await startWiki(t, () => Date.now() - behindMs)
  const reader = await wiki.newReader()
  const source = await wiki.putSource('tides.html', '<script>alert(1)</script>', 'text/html')
  const LONG = `${'知'.repeat(3_999)}😀 and more`
  const ids = await wiki.write(reader.accountId, [
    draft('tides.md', {
      title: 'Tides',
      summary: 'Why the sea rises and falls',
      body: 'The [[Moon]] pulls at the sea.',
      text: 'The Moon pulls at the sea.',
      tags: ['sea', '潮汐 & Mond'],
      aliases: ['Ebb and flow'],
      links: ['Moon', 'Nowhere'],
      confidence: 'high',
      source,
    }),
    draft('moon.md', { title: 'Moon', body: LONG, text: LONG, tags: ['sky', 'sea'], needsReview: true }),
  ])
  const [tides, moon] = [ids.get('Tides')!, ids.get('Moon')!]
  const NONE = { status: 200, json: { data: { length: 0 }, has_more: false } }
  const get = (path: string) => wiki.get(reader.key, WIKI + path)

  /** What came is what the reference says, to the last field. */
  function asDescribed(t: Test, path: string, { status, json }: Got) {
    t.equal(status, 200, JSON.stringify(json))
    const answer = ENDPOINTS.find((endpoint) => endpoint.path === WIKI + path)?.answers[0]
    if (answer === undefined || !('body' in answer)) throw new Error(`${path} is not described`)
    t.same(answer.body.schema.parse(json), json, path)
  }

  t.test('kbs: the own base is there from the beginning', async (t) => {
    const got = await get('/kbs')
    asDescribed(t, '/kbs', got)
    t.match(got.json, { data: [{ kb_id: 'default', name: 'default', page_count: 2 }] })
    const other = await wiki.newReader()
    const { json } = await wiki.get(other.key, `${WIKI}/kbs`)
    t.match(json, { data: [{ kb_id: 'default', page_count: 0 }] })
    t.match(await wiki.get(other.key, `${WIKI}/tags`), NONE)
  })

  t.test('tags with counts, and the pages under one', async (t) => {
    const tags = await get('/tags')
    asDescribed(t, '/tags', tags)
    t.same(tags.json, {
      object: 'list',
      data: [
        { tag: 'sea', count: 2 },
        { tag: 'sky', count: 1 },
        { tag: '潮汐 & Mond', count: 1 },
      ],
      has_more: false,
    })
    const under = await get('/tags/sea')
    asDescribed(t, '/tags/{tag}', under)
    t.match(under.json, {
      data: [
        { title: 'Moon', needs_review: true, body: undefined },
        { title: 'Tides', confidence: 'high' },
      ],
    })
    t.match(await get(`/tags/${encodeURIComponent('潮汐 & Mond')}`), { json: { data: [{ id: tides }] } })
    for (const nobodys of ['nothing', '%00', '%2F', '💧', "a'b"])
      t.match(await get(`/tags/${nobodys}`), NONE, nobodys)
    t.match(await get('/tags/%E0%A4'), { status: 400, json: { error: { code: 'invalid_request' } } })
  })

  t.test('a page in full, with what it links to', async (t) => {
    const got = await get(`/pages/${tides}`)
    asDescribed(t, '/pages/{id}', got)
    t.match(got.json, {
      id: tides,
      kb_id: 'default',
      title: 'Tides',
      aliases: ['Ebb and flow'],
      source: { r2_key: source.r2_key, filename: 'tides.html' },
      outgoing_links: [
        { id: moon, resolved: true, title: 'Moon' },
        { id: null, resolved: false, title: 'Nowhere' },
      ],
    })
    t.match(await get(`/pages/${moon}`), { json: { body: LONG } })
  })

  t.test('pages: in the order of the ids, cut behind 4,000 characters', async (t) => {
    const got = await get(`/pages?ids=${moon},${newId('page')},,nonsense,${tides},%20${moon}`)
    asDescribed(t, '/pages', got)
    t.match(got.json, {
      data: [
        { id: moon, body: `${'知'.repeat(3_999)}😀`, body_truncated: true },
        { id: tides, body_truncated: false },
      ],
    })
    const unknown = Array.from({ length: 25 }, () => newId('page')).join(',')
    t.match(await get(`/pages?ids=${unknown},${tides}`), NONE, 'what is behind the 25th is dropped')
    for (const empty of ['/pages', '/pages?ids=', '/pages?ids=,%20,'])
      t.match(await get(empty), { status: 400, json: { error: { code: 'invalid_request', message: /ids/ } } })
  })

  t.test('backlinks', async (t) => {
    const got = await get(`/pages/${moon}/backlinks`)
    asDescribed(t, '/pages/{id}/backlinks', got)
    t.match(got.json, { data: [{ id: tides, title: 'Tides' }], has_more: false })
    t.match(await get(`/pages/${tides}/backlinks`), NONE)
  })

  t.test('a source opens for an hour, as a download', async (t) => {
    const got = await get(`/pages/${tides}/source`)
    const link = sourceLink.parse(got.json)
    t.same(link, got.json)
    t.match(link, { filename: 'tides.html', locator: 'page 3', url_ttl_secs: 3600 })
    const ahead = Number(new URL(link.url).searchParams.get('expires')) - Date.now() / 1000
    t.ok(ahead > 3500 && ahead <= 3601, `${ahead} s`)
    const file = await wiki.open(link.url)
    t.equal(file.status, 200)
    t.equal(await file.text(), '<script>alert(1)</script>')
    t.match(file.headers.get('content-disposition'), /^attachment/)
    t.equal(file.headers.get('x-content-type-options'), 'nosniff')
    behindMs = SOURCE_LINK_TTL_SECS * 1000 + 1_000
    const past = await get(`/pages/${tides}/source`)
    behindMs = 0
    const expired = await wiki.open(sourceLink.parse(past.json).url)
    t.equal(expired.status, 403, 'an hour later it opens no more')
    t.match(await expired.json(), { error: { code: 'permission_denied', message: /expired/ } })
    t.match(await get(`/pages/${moon}/source`), {
      status: 404,
      json: { error: { code: 'not_found', message: 'The page has no source file.' } },
    })
  })

  t.test('search: bounds, paging, the words as they were asked', async (t) => {
    const got = await get('/search?q=%20sea%00&limit=1')
    const first = searchPage.parse(got.json)
    t.same(first, got.json)
    t.match(first, { query: 'sea', total_hits: 2, offset: 0, returned: 1, has_more: true })
    const next = searchPage.parse((await get('/search?q=sea&limit=1&offset=1')).json)
    t.match(next, { total_hits: 2, offset: 1, returned: 1, has_more: false })
    t.not(next.results[0]?.id, first.results[0]?.id)
    t.match((await get('/search?q=sea&offset=2')).json, { total_hits: 2, returned: 0, has_more: false })
    t.match(await get('/search?q=pulls'), {
      json: {
        results: [{ id: tides, kb_id: 'default', snippet: /<mark>pulls<\/mark>/, score: Number }],
      },
    })
    t.match((await get('/search?q=zzzzqqqq')).json, { total_hits: 0, results: { length: 0 } })
  })

  t.test('parameters that do not fit are refused by name', async (t) => {
    const cases = {
      '/search': /q: is required/,
      '/search?q=': /q: is required/,
      '/search?q=%20%00': /q: is required/,
      [`/search?q=${'a'.repeat(1_001)}`]: /q: must have at most 1000 characters/,
      '/search?q=a&limit=51': /limit: must be a whole number from 1 to 50/,
      '/search?q=a&limit=0': /limit: must be a whole number from 1 to 50/,
      '/search?q=a&limit=': /limit: must be a whole number from 1 to 50/,
      '/search?q=a&limit=-1': /limit: must be a whole number from 1 to 50/,
      '/search?q=a&limit=ten': /limit: must be a whole number/,
      '/search?q=a&offset=1000001': /offset: must be a whole number from 0 to 1000000/,
      '/search?q=a&offset=1.5': /offset: must be a whole number/,
    }
    for (const [path, message] of Object.entries(cases))
      t.match(await get(path), {
        status: 400,
        json: { error: { code: 'invalid_request', type: 'invalid_request_error', message } },
      })
  })

  t.test('all four places of a key, and none', async (t) => {
    const forms: Record<string, string>[] = [
      { authorization: `Bearer ${reader.key}` },
      { 'x-api-key': reader.key },
      { 'x-partner-api-key': reader.key },
    ]
    for (const headers of forms)
      t.equal((await fetch(`${wiki.baseUrl}${WIKI}/kbs`, { headers })).status, 200, Object.keys(headers)[0]!)
    t.equal((await wiki.get(null, `${WIKI}/kbs?key=${reader.key}`)).status, 200)
    for (const key of [null, `sk-tollgate-${'0'.repeat(64)}`])
      for (const path of ['/kbs', '/search?q=a', `/pages/${tides}`])
        t.match(await wiki.get(key, WIKI + path), {
          status: 401,
          json: { error: { code: 'invalid_api_key' } },
        })
  })

  t.test('a granted base by its id until it is revoked; a member reads what was granted to it', async (t) => {
    const { database } = wiki
    const lent = await database.knowledge.createBase((await wiki.newReader()).accountId, 'Lent')
    await wiki.write(lent.accountId, [draft('reef.md', { title: 'Reef', tags: ['coral'] })], lent.id)
    const tags = (key: string) => wiki.get(key, `${WIKI}/tags?kb_id=${lent.id}`)
    const none = await tags(reader.key)
    t.match(none, {
      status: 404,
      json: { error: { code: 'not_found', message: 'There is no such knowledge base or page.' } },
    })
    await database.knowledge.grantBase(lent.id, reader.accountId)
    t.match(await tags(reader.key), { status: 200, json: { data: [{ tag: 'coral' }] } })
    t.match(await get('/kbs'), { json: { data: [{}, { kb_id: lent.id, name: 'Lent', page_count: 1 }] } })
    await database.knowledge.revokeBase(lent.id, reader.accountId)
    t.same(await tags(reader.key), none)

    const { account } = await database.accounts.create({ name: 'org', kind: 'organization', credit: 0n })
    for (const [id, role] of [
      [reader.accountId, 'member'],
      [(await wiki.newReader()).accountId, 'admin'],
    ] as const)
      await database.organizations.putMember(account.id, id, role)
    const admin = (await database.organizations.listMembers(account.id)).find(({ role }) => role === 'admin')!
    const request = await database.keyRequests.create({
      organizationId: account.id,
      memberId: reader.accountId,
      name: 'mine',
    })
    const { raw } = await database.keyRequests.approve({
      requestId: request.id,
      by: admin.accountId,
      spendCap: 100n,
    })
    t.match(await tags(raw), { status: 404 })
    await database.knowledge.grantBase(lent.id, reader.accountId)
    t.match(await tags(raw), { status: 200 })
    t.match(await wiki.get(raw, `${WIKI}/pages/${tides}`), { status: 404 }, "not the member's own base")
  })

  t.test('nothing went wrong unforeseen', async (t) => t.same(wiki.unforeseen, []))

  t.test('with PostgreSQL away, known keys get a retry-after', async (t) => {
    await wiki.database.close()
    for (const path of ['/kbs', '/search?q=a', '/tags', '/tags/a', `/pages?ids=${tides}`, `/pages/${tides}`])
      t.match(await get(path), { status: 503, json: { error: { code: 'service_unavailable' } } }, path)
    const response = await fetch(`${wiki.baseUrl}/mcp`, {
      method: 'POST',
      headers: { 'x-api-key': reader.key, 'content-type': 'application/json' },
      body: JSON.stringify({
        jsonrpc: '2.0',
        id: 1,
        method: 'tools/call',
        params: { name: 'read_page', arguments: { id: tides } },
      }),
    })
    t.match(await response.json(), {
      result: { isError: true, content: [{ text: /Try again in a minute/ }] },
    })
  })
})

t.test('wiki takes any request', async (t) => {
  // Whatever is asked, the answer is a page of knowledge or a refusal: nothing fails, and nothing of another is revealed.
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
})

t.test('mcp', async (t) => {
  // The official client over HTTP: it lists the six tools and calls each, and checks what comes by the schemas it got.
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
  const secret = (
    await wiki.write(lender.accountId, [draft('safe.md', { title: 'Safe', tags: ['sea'] })])
  ).get('Safe')!

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

  t.test('the client of the revision without a handshake', async (t) => {
    const options = { requestInit: { headers: { authorization: `Bearer ${reader.key}` } } }
    for (const mode of [{ pin: '2026-07-28' }, 'auto', 'legacy'] as const) {
      const newest = new NewestClient({ name: 'test', version: '1' }, { versionNegotiation: { mode } })
      await newest.connect(new NewestTransport(new URL('/mcp', wiki.baseUrl), options))
      t.teardown(() => newest.close())
      const spoken = newest.getNegotiatedProtocolVersion()
      t.equal(spoken, mode === 'legacy' ? '2025-11-25' : '2026-07-28', `by mode ${JSON.stringify(mode)}`)
      t.match(newest.getServerVersion(), { name: 'tollgate', version: '1.2.3' })
      t.match(newest.getInstructions(), /search_wiki/)
      const listed = await newest.listTools()
      t.same(
        listed.tools.map(({ name }) => name),
        Object.keys(MCP_TOOLS),
      )
      const asked: { readonly [Name in ToolName]: Record<string, unknown> } = {
        search_wiki: { q: 'sea' },
        read_page: { id: tides },
        read_pages: { ids: [tides, secret] },
        list_by_tag: { tag: 'sea' },
        backlinks: { id: moon },
        get_source: { id: tides },
      }
      for (const name of Object.keys(asked) as ToolName[]) {
        const { isError, structuredContent } = await newest.callTool({ name, arguments: asked[name] })
        t.not(isError, true, name)
        t.ok(MCP_TOOLS[name].output.safeParse(structuredContent).success, name)
      }
      t.match(await newest.callTool({ name: 'read_page', arguments: { id: secret } }), { isError: true })
      await t.rejects(newest.callTool({ name: 'write_page', arguments: {} }), { code: -32602 })
    }
    const stranger = new NewestClient(
      { name: 'test', version: '1' },
      { versionNegotiation: { mode: 'auto' } },
    )
    await t.rejects(stranger.connect(new NewestTransport(new URL('/mcp', wiki.baseUrl))))
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
})

t.test('mcp inspector', async (t) => {
  // The MCP inspector's command line, as its users have it: it lists the tools, finds no fault in their schemas, and calls
  // each. It is fetched when first wanted, for its hundred packages are of no use to anything else here.
  const CACHE = fileURLToPath(new URL('../../../node_modules/.cache/tollgate-test', import.meta.url))
  const VERSION = '2.12.0'
  /** Its exit codes: a tool that answers with an error; a server that wants to be logged in to. */
  const TOOL_IS_ERROR = 5
  const AUTH_REQUIRED = 3

  const { folder } = findPackage(CACHE, '@modelcontextprotocol/inspector', VERSION, {})
  const program = join(folder, 'clients/cli/build/index.js')
  const { PATH, NODE_COMPILE_CACHE } = process.env
  const env = { HOME: t.testdir(), PATH, NODE_COMPILE_CACHE }

  const wiki = await startWiki(t)
  const reader = await wiki.newReader()
  const source = await wiki.putSource('tides.pdf', 'a file', 'application/pdf')
  const ids = await wiki.write(reader.accountId, [
    draft('tides.md', { title: 'Tides', tags: ['sea'], links: ['Moon'], source }),
    draft('moon.md', { title: 'Moon', summary: 'It pulls at the sea', tags: ['sky'] }),
  ])
  const [tides, moon] = [ids.get('Tides')!, ids.get('Moon')!]

  interface Inspected {
    readonly code: number
    readonly out: string
    /** What it has to complain of. */
    readonly said: string
  }

  /** No catalog or login of the user who runs the tests takes part, and nothing of theirs is written to. */
  const inspect = (method: string, ...more: string[]): Promise<Inspected> =>
    inspectAs(`Authorization: Bearer ${reader.key}`, method, ...more)
  const inspectAs = (header: string, method: string, ...more: string[]): Promise<Inspected> =>
    new Promise((resolve) => {
      const args = [program, `${wiki.baseUrl}/mcp`, '--transport', 'http', '--header', header]
      execFile(
        process.execPath,
        [...args, '--method', method, '--format', 'json', ...more],
        { env },
        (error, out, said) => resolve({ code: error === null ? 0 : Number(error.code), out, said }),
      )
    })

  const callTool = (name: ToolName, args: Record<string, unknown>): Promise<Inspected> =>
    inspect('tools/call', '--tool-name', name, '--tool-args-json', JSON.stringify(args))

  t.test('it lists the tools, and finds none of their schemas hard to carry over', async (t) => {
    const { code, out, said } = await inspect('tools/list', '--strict')
    t.equal(code, 0)
    t.notMatch(said, /warning|error/i)
    const { result } = JSON.parse(out) as { result: { tools: { name: string }[] } }
    t.same(
      result.tools.map(({ name }) => name),
      Object.keys(MCP_TOOLS),
    )
  })

  t.test('it calls each tool', async (t) => {
    const calls: { readonly [Name in ToolName]: readonly [given: object, answered: object] } = {
      search_wiki: [{ q: 'tides' }, { results: [{ id: tides }] }],
      read_page: [
        { id: tides },
        { id: tides, outgoing_links: [{ id: moon }], source: { locator: 'page 3' } },
      ],
      read_pages: [{ ids: [moon, 'page_none'] }, { pages: [{ id: moon }], missing: ['page_none'] }],
      list_by_tag: [{ tag: 'sky' }, { pages: [{ id: moon }] }],
      backlinks: [{ id: moon }, { pages: [{ id: tides }] }],
      get_source: [{ id: tides }, { filename: 'tides.pdf', url: /^http/ }],
    }
    for (const name of Object.keys(calls) as ToolName[]) {
      const [given, answered] = calls[name]
      const { code, out, said } = await callTool(name, given as Record<string, unknown>)
      t.same([code, said], [0, ''], name)
      t.match(JSON.parse(out), { result: { structuredContent: answered } }, name)
    }
  })

  t.test('it tells refusals for what they are', async (t) => {
    t.match(await callTool('read_page', { id: 'page_none' }), {
      code: TOOL_IS_ERROR,
      out: /There is no page/,
    })
    t.match(await inspectAs('Authorization: Bearer x', 'tools/list'), { code: AUTH_REQUIRED })
  })
})
