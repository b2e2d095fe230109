/** What each endpoint takes, gives, cuts and refuses. See docs/api-rules.md, "Knowledge search". */
import t, { type Test } from 'tap'
import { ENDPOINTS } from '../../../schemas/endpoints/index.ts'
import { searchPage, sourceLink } from '../../../schemas/knowledge/query.ts'
import { SOURCE_LINK_TTL_SECS } from '../../../schemas/knowledge/wiki.ts'
import { newId } from '../../../src/core/keys/ids.ts'
import { draft, type Got, startWiki, WIKI } from './support.ts'

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
    '/search?q=a&limit=51': /limit: must be 1 to 50/,
    '/search?q=a&limit=0': /limit: must be 1 to 50/,
    '/search?q=a&limit=-1': /limit: must be a whole number from 1 to 50/,
    '/search?q=a&limit=ten': /limit: must be a whole number/,
    '/search?q=a&offset=1000001': /offset: must be 0 to 1000000/,
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
      t.match(await wiki.get(key, WIKI + path), { status: 401, json: { error: { code: 'invalid_api_key' } } })
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
  t.match(await response.json(), { result: { isError: true, content: [{ text: /Try again in a minute/ }] } })
})
