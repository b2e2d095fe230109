/** From a folder of Markdown to what programs and models read of it, with a key whose wallet is empty. */
import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import t from 'tap'
import { searchPage, sourceLink } from '../../../schemas/knowledge/query.ts'
import { wikiPage } from '../../../schemas/knowledge/wiki.ts'
import { importFolder } from '../../../src/server/knowledge/import-folder.ts'
import { openStore } from '../../../src/storage/open-store.ts'
import { borrowService } from '../../support/lend-services.ts'
import { testConfig } from '../../support/service.ts'

const WIKI = '/api/v1/ext/wiki'
const SOURCE = '<h1>Field notes</h1>'

const FILES = {
  'tea/oolong.md': `---
title: Oolong
summary: A tea between green and black
tags: [tea, 茶]
aliases: [乌龙茶]
source:
  filename: notes.html
  locator: "line 7"
---
Oolong is partly oxidised; see [[Water]].
`,
  'tea/notes.html': SOURCE,
  'water.md': '---\ntags: tea\n---\n# Water\n\n水的温度很重要。 Just below the boil.\n',
}

t.test('a folder becomes knowledge', async (t) => {
  const service = await borrowService(t, testConfig({ fast: {} }))
  const { database, baseUrl } = service
  const { accountId, key } = await service.newKey('0')
  const folder = t.testdir()
  for (const [path, content] of Object.entries(FILES)) {
    await mkdir(dirname(join(folder, path)), { recursive: true })
    await writeFile(join(folder, path), content)
  }
  const store = await openStore({
    objectStore: null,
    dataDir: join(dirname(service.configPath), 'service'),
    publicUrl: baseUrl,
    fileLinkKey: database.masterKey.fileLinkKey,
  })
  const { id: baseId } = await database.knowledge.defaultBase(accountId)
  const outcome = await importFolder(
    { wiki: database.knowledge, store, onProgress: () => undefined },
    { baseId, folder, prune: false },
  )
  t.match(outcome, { added: 2, pages: 2 })

  const get = async (path: string) => (await service.get(key, WIKI + path)).json()
  const found = searchPage.parse(await get('/search?q=oxidized%20oolong'))
  t.match(found, { total_hits: 1, results: [{ title: 'Oolong', snippet: /<mark>/ }] })
  const oolong = found.results[0]!.id
  t.match(await get(`/search?q=${encodeURIComponent('乌龙')}`), { results: [{ id: oolong }] })
  t.match(await get(`/search?q=${encodeURIComponent('温度')}`), { results: [{ title: 'Water' }] })
  const page = wikiPage.parse(await get(`/pages/${oolong}`))
  t.match(page, { outgoing_links: [{ title: 'Water', resolved: true }], source: { filename: 'notes.html' } })
  t.match(await get(`/pages/${page.outgoing_links[0]?.id}/backlinks`), { data: [{ id: oolong }] })
  t.match(await get(`/tags/${encodeURIComponent('茶')}`), { data: [{ id: oolong }] })

  const source = sourceLink.parse(await get(`/pages/${oolong}/source`))
  t.match(source, { filename: 'notes.html', locator: 'line 7', url_ttl_secs: 3600 })
  const file = await fetch(source.url)
  t.equal(file.status, 200)
  t.equal(await file.text(), SOURCE)
  t.match(file.headers.get('content-disposition'), /^attachment/, 'a page of others is never shown as ours')
  const forged = source.url.replace(/signature=./, (begin) =>
    begin.endsWith('_') ? 'signature=-' : 'signature=_',
  )
  t.equal((await fetch(forged)).status, 403)

  const transport = new StreamableHTTPClientTransport(new URL('/mcp', baseUrl), {
    requestInit: { headers: { authorization: `Bearer ${key}` } },
  })
  const client = new Client({ name: 'test', version: '1' })
  await client.connect(transport as Parameters<Client['connect']>[0])
  t.teardown(() => client.close())
  t.equal((await client.listTools()).tools.length, 6)
  const call = (name: string, args: Record<string, unknown>) => client.callTool({ name, arguments: args })
  t.match(await call('search_wiki', { q: 'oolong' }), { structuredContent: { results: [{ id: oolong }] } })
  t.match(await call('read_page', { id: oolong }), { structuredContent: { title: 'Oolong' } })
  t.match(await call('read_pages', { ids: [oolong] }), { structuredContent: { missing: { length: 0 } } })
  t.match(await call('list_by_tag', { tag: 'TEA' }), { structuredContent: { returned: 2 } })
  t.match(await call('backlinks', { id: oolong }), { structuredContent: { returned: 0 } })
  const { structuredContent } = await call('get_source', { id: oolong })
  t.equal((await fetch(sourceLink.parse(structuredContent).url)).status, 200)

  t.match(
    await (await service.get(key, '/v1/logs')).json(),
    { data: { length: 0 } },
    'nothing of it is logged',
  )
  t.match(await (await service.get(key, '/v1/key/balance')).json(), { remaining: '0', used: '0' })
})
