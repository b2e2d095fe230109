/** What endpoints answer whatever their domain: as the reference says, refusals, metrics, and the console. */
import { firstValueFrom, type Observable } from 'rxjs'
import t from 'tap'
import type { z } from 'zod'
import { MAX_SHARED_CALLS, OWN_ROWS_PER_MINUTE, RefusalLog } from '../../pipelines/calls/refusals.ts'
import { consolePage } from '../../pipelines/console.ts'
import { referenceDocument, referencePage, toPage } from '../../pipelines/openapi.ts'
import { health, metrics, readiness } from '../../pipelines/operator-view.ts'
import {
  contentModelList,
  contentModel as contentModelSchema,
  keyBalance,
  modelList,
  publicCatalog,
  shownModel,
} from '../../schemas/accounts/models.ts'
import type { Settlement } from '../../schemas/call-log/columns.ts'
import type { Failure } from '../../schemas/failure.ts'
import { loadConfigFile } from '../../src/config/load.ts'
import { DEFAULTS } from '../../src/core/call-log/settlement.ts'
import type { OperatorAccess } from '../../src/core/keys/operator-access.ts'
import { createCatalog } from '../../src/core/routing/catalog.ts'
import type { GatewayRequest, Reply } from '../../src/http/handler.ts'
import { walletView } from '../support/known-key.ts'
import { fullReply, jsonOf } from '../support/reply-to.ts'
import { balance, contentModel, contentModels, model, models, publicModels } from './accounts/support.ts'

t.test('answers are as the reference says', async (t) => {
  // What the small endpoints answer is what their schemas in the reference say, to the last field.
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
      ['one model', model(deps)(caller, 'demo-chat'), shownModel],
      ['content models', contentModels(deps)(caller, 'pageSize=2'), contentModelList],
      ['one content model', contentModel(deps)(caller, 'demo-chat'), contentModelSchema],
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
})

t.test('refusals share rows', async (t) => {
  // Refusals are counted each, and have a row each; where rows are shared, those of one key beyond 600 a minute are bounded,
  // and list the ids of their calls.
  const MINUTE_MS = 60_000
  const REFUSED = {
    ...DEFAULTS,
    key_id: 'key_a',
    model: 'sonata',
    error_code: 'quota_exceeded',
    status: 'rejected',
  }

  /** A clock that the test moves, and what was written. */
  function openLog(areShared = true) {
    const rows: Settlement[] = []
    const timers: { at: number; work: () => void }[] = []
    let now = 1_000_000
    let number = 0
    const log = new RefusalLog({
      write: (row) => void rows.push(row),
      areShared: () => areShared,
      isModel: (name) => name === 'sonata' || name === 'etude',
      later: (work, ms) => void timers.push({ at: now + ms, work }),
      now: () => now,
    })
    return {
      rows,
      log,
      refuse(count: number, more: Partial<Settlement> = {}) {
        for (let i = 0; i < count; i++)
          log.record({
            ...REFUSED,
            request_id: `req_01J8Z3N4V9${String(number++).padStart(16, '0')}`,
            created_at: now,
            ...more,
          } as Settlement)
      },
      wait(ms: number) {
        now += ms
        for (const timer of timers.splice(0)) timer.at <= now ? timer.work() : timers.push(timer)
      },
      counted: () => rows.reduce((sum, { call_count }) => sum + call_count, 0),
    }
  }

  t.test('the first 600 of a minute have a row each, the others share one', async (t) => {
    const { rows, refuse, wait, counted } = openLog()
    refuse(OWN_ROWS_PER_MINUTE + 1)
    t.equal(rows.length, OWN_ROWS_PER_MINUTE)
    t.ok(rows.every((row) => row.call_count === 1))
    refuse(399)
    wait(1000)
    t.equal(rows.length, OWN_ROWS_PER_MINUTE + 1)
    t.match(rows.at(-1), { key_id: 'key_a', model: 'sonata', call_count: 400, created_at: 1_001_000 })
    t.match(rows.at(-1)?.request_id, /0600$/)
    t.equal(counted(), 1000)
  })

  t.test('unless the installation shares them, each has its own row', async (t) => {
    const { rows, refuse, wait } = openLog(false)
    refuse(3 * OWN_ROWS_PER_MINUTE)
    t.equal(rows.length, 3 * OWN_ROWS_PER_MINUTE)
    wait(MINUTE_MS)
    t.equal(rows.length, 3 * OWN_ROWS_PER_MINUTE)
    t.ok(rows.every((row) => row.call_count === 1))
  })

  t.test('a shared row lists each of its calls, and is written when the list is long', async (t) => {
    const { rows, refuse, log } = openLog()
    refuse(OWN_ROWS_PER_MINUTE + 2 * MAX_SHARED_CALLS, { detail: '{"endpoint":"/v1/x"}' })
    t.equal(rows.length, OWN_ROWS_PER_MINUTE + 2, 'at once')
    refuse(3)
    refuse(1, { model: 'etude', detail: '{"endpoint":"/v1/x"}' })
    log.flush()
    const shared = rows.slice(OWN_ROWS_PER_MINUTE).map(({ detail }) => JSON.parse(detail ?? '{}'))
    t.match(shared[0], { endpoint: '/v1/x' })
    const ids = shared.map(({ shared_ids = '' }) => shared_ids.split(' '))
    t.same(
      ids.map(({ length }) => length),
      [MAX_SHARED_CALLS, MAX_SHARED_CALLS, 3, 1],
    )
    t.equal(ids[0][0], String(OWN_ROWS_PER_MINUTE).padStart(16, '0'))
    t.equal(new Set(ids.flat()).size, 2 * MAX_SHARED_CALLS + 4)
    t.same(shared[3], { endpoint: '/v1/x' }, 'one call alone has its id in its row')
  })

  t.test('key, model and reason have separate rows, names that clients make up have none', async (t) => {
    const { rows, refuse, log } = openLog()
    refuse(OWN_ROWS_PER_MINUTE)
    refuse(2)
    refuse(3, { model: 'etude' })
    refuse(4, { error_code: 'rate_limit_exceeded' })
    for (let i = 0; i < 50; i++) refuse(1, { model: `made-up-${i}`, error_code: 'model_not_found' })
    refuse(5, { key_id: 'key_b' })
    log.flush()
    t.same(
      rows.slice(OWN_ROWS_PER_MINUTE + 5).map((row) => [row.model, row.error_code, row.call_count]),
      [
        ['sonata', 'quota_exceeded', 2],
        ['etude', 'quota_exceeded', 3],
        ['sonata', 'rate_limit_exceeded', 4],
        ['', 'model_not_found', 50],
      ],
    )
    log.flush()
    t.equal(rows.length, OWN_ROWS_PER_MINUTE + 9, 'each once')
  })

  t.test('refusals that go on for a minute leave few rows more, and none is lost', async (t) => {
    const { rows, refuse, wait, counted } = openLog()
    for (let second = 0; second < 60; second++) {
      refuse(1000)
      wait(1000)
    }
    const inFirst = rows.length
    t.ok(inFirst <= OWN_ROWS_PER_MINUTE + 60, `${inFirst} rows`)
    wait(MINUTE_MS)
    t.equal(counted(), 60_000)
    refuse(OWN_ROWS_PER_MINUTE)
    t.equal(counted(), 60_000 + OWN_ROWS_PER_MINUTE, 'the next minute begins with a row for each')
    t.equal(new Set(rows.map(({ request_id }) => request_id)).size, rows.length)
  })

  t.test('a clock that is set back by an hour begins another minute', async (t) => {
    const { rows, refuse, wait } = openLog()
    refuse(OWN_ROWS_PER_MINUTE)
    wait(-60 * MINUTE_MS)
    refuse(1)
    t.equal(rows.length, OWN_ROWS_PER_MINUTE + 1, 'its first refusal has a row')
  })
})

t.test('operators alone see metrics', async (t) => {
  // Metrics and the reason of a 503 are for operators: by their own listener, by a token, or on this machine alone.
  const TOKEN = 'a-token-for-the-metrics'
  const asked = (authorization = '', query = '') =>
    ({ header: () => authorization, query }) as unknown as GatewayRequest

  async function answersFor(access: OperatorAccess, authorization?: string) {
    const deps = {
      operatorAccess: () => access,
      unreadiness: () => 'no answer from postgres',
      callRefusal: () => null,
      metricsText: async () => 'measured\n',
    }
    const request = asked(authorization)
    const of = (reply: Reply) => (reply.type === 'full' ? `${reply.status} ${reply.body}` : '')
    return {
      health: of(await firstValueFrom(health(request))),
      readiness: of(await firstValueFrom(readiness(deps)(request))),
      forCalls: of(await firstValueFrom(readiness(deps)(asked(authorization, 'for=calls')))),
      metrics: await firstValueFrom(metrics(deps)(request)).then(of, (failure: Failure) => failure.code),
    }
  }

  t.test('readiness is asked of all or of calls', async (t) => {
    const deps = {
      operatorAccess: () => 'open' as const,
      unreadiness: () => null,
      callRefusal: () => null,
      metricsText: async () => '',
    }
    await t.rejects(firstValueFrom(readiness(deps)(asked('', 'for=call'))), {
      code: 'invalid_request',
      message: 'Parameter for: must be calls, or left out.',
    })
  })

  t.test('without a token', async (t) => {
    t.same(await answersFor('open'), {
      health: '200 ok\n',
      readiness: '503 not ready: no answer from postgres\n',
      forCalls: '200 ready\n',
      metrics: '200 measured\n',
    })
    t.same(await answersFor('closed', `Bearer ${TOKEN}`), {
      health: '200 ok\n',
      readiness: '503 not ready\n',
      forCalls: '200 ready\n',
      metrics: 'not_found',
    })
  })

  t.test('with a token', async (t) => {
    const known = {
      metrics: '200 measured\n',
      readiness: '503 not ready: no answer from postgres\n',
    }
    t.match(await answersFor({ token: TOKEN }, `Bearer ${TOKEN}`), known)
    t.match(await answersFor({ token: TOKEN }, `bearer  ${TOKEN} `), known)
    for (const wrong of ['', TOKEN, `Bearer ${TOKEN}x`, 'Bearer ', `Basic ${TOKEN}`])
      t.match(
        await answersFor({ token: TOKEN }, wrong),
        { metrics: 'invalid_api_key', readiness: /^503 not ready\n$/ },
        `"${wrong}"`,
      )
  })
})

t.test('console is sent as the browser accepts it', async (t) => {
  // What the build compressed is sent to browsers that accept brotli, and only to those.
  const PAGE = { type: 'text/html; charset=utf-8', bytes: Buffer.from('plain'), brotli: Buffer.from('br') }
  const handle = consolePage({ files: new Map([['index.html', PAGE]]), host: null })

  async function bodyFor(accepted: string): Promise<string> {
    const request = {
      path: '/console/keys',
      params: { page: 'keys' },
      header: () => accepted,
    } as unknown as GatewayRequest
    const reply = await firstValueFrom(handle(request))
    return reply.type === 'full' ? String(reply.body) : reply.type
  }

  for (const accepted of ['br', 'gzip, br', 'br;q=0.1', 'gzip;q=0, br; q=1'])
    t.test(`${accepted}: compressed`, async (t) => t.equal(await bodyFor(accepted), 'br'))

  for (const refused of ['', 'gzip', 'br;q=0', 'gzip, br; q=0.000', 'BR;Q=0'])
    t.test(`${refused || 'nothing'}: not compressed`, async (t) => t.equal(await bodyFor(refused), 'plain'))
})
