/** What the small endpoints answer is what their schemas in the reference say, to the last field. */
import type { Observable } from 'rxjs'
import t from 'tap'
import type { z } from 'zod'
import { referenceDocument, referencePage, toPage } from '../../pipelines/openapi.ts'
import {
  contentModelList,
  contentModel as contentModelSchema,
  keyBalance,
  listedModel,
  modelList,
  publicCatalog,
} from '../../schemas/accounts/models.ts'
import { loadConfigFile } from '../../src/config/load.ts'
import { createCatalog } from '../../src/core/routing/catalog.ts'
import type { Reply } from '../../src/http/handler.ts'
import { walletView } from '../support/known-key.ts'
import { fullReply, jsonOf } from '../support/reply-to.ts'
import { balance, contentModel, contentModels, model, models, publicModels } from './accounts/support.ts'

t.test('model discovery and the balance', async (t) => {
  const loaded = loadConfigFile('src/config/demonstration.yaml', {
    TOLLGATE_SIMULATOR_URL: 'http://127.0.0.1:1',
  })
  if (!loaded.ok) throw new Error('the demonstration configuration is not sound')
  const catalog = createCatalog(loaded.config)
  const deps = { catalog: () => catalog, installedAt: new Date() }
  const account = { allowedModels: null }
  const caller = { key: { allowedModels: null }, account }
  const view = walletView('5', '1', '2')
  const answers: readonly (readonly [string, Observable<Reply>, z.ZodType])[] = [
    ['models', models(deps)({ key: { allowedModels: null }, account }), modelList],
    ['no models', models(deps)({ key: { allowedModels: [] }, account }), modelList],
    ['one model', model(deps)(caller, '/v1/models/demo-chat'), listedModel],
    ['content models', contentModels(deps)(caller, 'pageSize=2'), contentModelList],
    ['one content model', contentModel(deps)(caller, '/v1beta/models/demo-chat'), contentModelSchema],
    ['catalog', publicModels(deps)(), publicCatalog],
    ['balance', balance({ view, cap: null }), keyBalance],
    ['capped', balance({ view, cap: view }), keyBalance],
  ]
  for (const [name, reply$, schema] of answers) {
    const body = await jsonOf(reply$)
    // Fields that the schema does not know are left out of what it gives back.
    t.strictSame(schema.parse(body), body, name)
  }
})

t.test('the reference is served, and the root leads to a page', async (t) => {
  const document = Buffer.from('{"openapi":"3.1.0"}')
  const reference = {
    document: async () => document,
    page: Buffer.from('<p>hello'),
    script: async () => Buffer.alloc(0),
  }
  t.match(await fullReply(referenceDocument(reference)), { status: 200, body: String(document) })
  const page = await fullReply(referencePage(reference))
  t.match(page, { status: 200, body: '<p>hello' })
  t.match(page.headers.get('content-type'), 'text/html')
  t.match(page.headers.get('content-security-policy'), "default-src 'none'")
  const root = await fullReply(toPage('/docs'))
  t.match(root, { status: 302, body: '' })
  t.equal(root.headers.get('location'), '/docs')
})
