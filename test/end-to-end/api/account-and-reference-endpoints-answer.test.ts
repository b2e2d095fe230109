/** Usage, the billing-compatible family, embeddings and the reference, as a client has them. */
import { readdirSync, readFileSync } from 'node:fs'
import { get, request } from 'node:http'
import t from 'tap'
import { ENDPOINTS } from '../../../schemas/endpoints/index.ts'
import { borrowService } from '../../support/lend-services.ts'
import { testConfig, until } from '../../support/service.ts'
import { post, say, traceOf } from '../support.ts'

const BILLING = '/v1/dashboard/billing'
const WITH_KEY = ['/api/v1/usage', `${BILLING}/subscription`, `${BILLING}/usage`, `${BILLING}/credit_grants`]

t.test('account and reference', async (t) => {
  const service = await borrowService(t, testConfig({ talks: { simulate: 'tokens=10' } }))
  const { key } = await service.newKey('1000')
  const read = async (path: string, as = key) => {
    const response = await service.get(as, path)
    t.equal(response.status, 200, path)
    return (await response.json()) as Record<string, unknown>
  }

  await t.test('a request that needs no key brings no more than 64 KiB', async (t) => {
    const status = (bytes: number) =>
      new Promise((resolve, reject) => {
        const sent = request(
          `${service.baseUrl}/healthz`,
          { headers: { 'content-length': bytes } },
          (answer) => {
            answer.resume()
            resolve(answer.statusCode)
          },
        )
        sent.on('error', reject)
        sent.end(Buffer.alloc(bytes))
      })
    t.same([await status(64 * 1024), await status(64 * 1024 + 1)], [200, 413])
  })

  await t.test('a call shows in the usage, the limit stays what was granted', async (t) => {
    const response = await service.chat(key, { model: 'talks', messages: say('hello'), max_tokens: 20 })
    t.equal(response.status, 200)
    await response.text()
    const [row] = await service.logs(key, (rows) => rows.length === 1)
    const cost = Number(row!.cost)
    t.ok(cost > 0)
    t.match(await read('/api/v1/usage?period=today'), {
      object: 'usage',
      total_requests: 1,
      total_cost: row!.cost,
      total_input_tokens: row!.input_tokens,
      total_output_tokens: 10,
    })
    t.match(await read(`${BILLING}/usage`), {
      total_usage: cost * 100,
      daily_costs: [{ line_items: [{ name: 'talks', cost: cost * 100 }] }],
    })
    t.match(await read(`${BILLING}/subscription`), { hard_limit_usd: 1000 })
    t.match(await read(`${BILLING}/credit_grants`), {
      total_granted: 1000,
      total_used: cost,
      total_available: 1000 - cost,
    })
  })

  await t.test('an empty wallet still reads; nobody reads without a key', async (t) => {
    const { key: empty } = await service.newKey('0')
    for (const path of WITH_KEY) {
      await read(path, empty)
      const refused = await fetch(service.baseUrl + path)
      t.match(await refused.json(), { error: { code: 'invalid_api_key' } })
      t.equal(refused.status, 401)
    }
    t.match(await read(`${BILLING}/credit_grants`, empty), { total_granted: 0, total_available: 0 })
  })

  await t.test('embeddings: 404, and a row that says so', async (t) => {
    const { key } = await service.newKey('5')
    const response = await post(service, key, '/v1/embeddings', { model: 'embed-small', input: 'hello' })
    t.equal(response.status, 404)
    t.match(await response.json(), { error: { code: 'model_not_found', type: 'invalid_request_error' } })
    const rows = await service.logs(key, (rows) => rows.length === 1)
    t.match(rows, [{ request_id: traceOf(response), model: 'embed-small', status: 'rejected', cost: '0' }])
    await until(
      'the refused call counts',
      async () => (await read('/api/v1/usage', key)).total_requests === 1,
    )
  })

  await t.test('the reference needs no key, and the root leads to the console', async (t) => {
    const document = await fetch(`${service.baseUrl}/openapi.json`)
    t.match(document.headers.get('content-type'), 'application/json')
    const { openapi, paths } = (await document.json()) as { openapi: string; paths: object }
    t.equal(openapi, '3.1.0')
    t.same(Object.keys(paths), [...new Set(ENDPOINTS.map(({ path }) => path))])
    const root = await fetch(service.baseUrl, { redirect: 'manual' })
    t.equal(root.status, 302)
    t.equal(root.headers.get('location'), '/console')
    const page = await fetch(`${service.baseUrl}/docs`)
    t.match(page.headers.get('content-type'), 'text/html')
    t.match(await page.text(), 'Tollgate reference')
    for (const path of [
      '/healthz',
      '/readyz',
      '/metrics',
      '/docs',
      '/docs/reference.js',
      '/openapi.json',
      '/llms.txt',
      '/docs/clients.md',
      '/api/v1/models/public',
      '/v1/status',
    ]) {
      const head = await fetch(service.baseUrl + path, { method: 'HEAD' })
      t.equal(head.status, 200, path)
      t.match(
        head.headers.get('content-type'),
        (await fetch(service.baseUrl + path)).headers.get('content-type'),
      )
      t.equal(await head.text(), '')
    }
  })

  await t.test('the docs are Markdown for programs', async (t) => {
    const index = await (await fetch(`${service.baseUrl}/llms.txt`)).text()
    t.match(index, /^# Tollgate\n\n> .+\n/)
    const pages = [...index.matchAll(/\]\((\/docs\/[^)]+)\)/g)].map(([, path]) => path!)
    t.same(
      pages,
      readdirSync('docs')
        .filter((name) => name.endsWith('.md'))
        .map((name) => `/docs/${name}`)
        .sort(),
    )
    for (const path of pages) {
      const page = await fetch(service.baseUrl + path)
      t.match(page.headers.get('content-type'), 'text/markdown')
      t.equal(await page.text(), readFileSync(path.slice(1), 'utf8'), path)
    }
    for (const path of ['/docs/none', '/docs/..%2Fpackage.json', '/docs/architecture.svg'])
      t.equal((await fetch(service.baseUrl + path)).status, 404, path)
  })

  await t.test(
    'what Claude Code asks of its vendor costs nothing, needs no key and is no call',
    async (t) => {
      const ask = async (method: string, path: string, body?: string) =>
        (await fetch(service.baseUrl + path, { method, ...(body !== undefined && { body }) })).status
      t.equal(await ask('HEAD', '/api/hello'), 204)
      t.equal(await ask('GET', '/api/claude_code/settings'), 204)
      for (const path of ['/api/event_logging/batch', '/api/claude_code/metrics']) {
        t.equal(await ask('POST', path, '{"events":[]}'), 204, path)
        t.equal(await ask('POST', path, 'x'.repeat(64 * 1024)), 204, path)
        t.equal(await ask('POST', path, 'x'.repeat(64 * 1024 + 1)), 413, path)
      }
      t.equal(await ask('PUT', '/api/claude_code/user_settings', '{}'), 204)
      const { data } = (await (await service.get(key, '/v1/logs')).json()) as {
        data: { error_code: string }[]
      }
      t.same(
        data.filter(({ error_code }) => error_code === 'request_too_large'),
        [],
      )
    },
  )

  await t.test('an upgrade where there is no WebSocket is 426', async (t) => {
    const { hostname, port } = new URL(service.baseUrl)
    const headers = {
      connection: 'upgrade',
      upgrade: 'websocket',
      'sec-websocket-key': 'AAAAAAAAAAAAAAAAAAAAAA==',
      'sec-websocket-version': '13',
    }
    const status = await new Promise((resolve, reject) => {
      const request = get({ hostname, port, path: '/v1/messages', headers }, (response) => {
        response.resume()
        resolve(response.statusCode)
      })
      request.on('error', reject)
    })
    t.equal(status, 426)
    t.equal((await fetch(`${service.baseUrl}/v1/responses`)).status, 405)
  })

  await t.test('HEAD is answered as GET is, with a key and without', async (t) => {
    const authorization = `Bearer ${key}`
    for (const path of [
      '/v1/models',
      '/v1/key/balance',
      '/v1/logs',
      '/v1/logs?format=csv',
      '/v1/videos/generations',
    ])
      for (const headers of [{ authorization }, new Headers()]) {
        const [asked, head] = await Promise.all(
          ['GET', 'HEAD'].map((method) => fetch(service.baseUrl + path, { method, headers })),
        )
        t.equal(head?.status, asked?.status, path)
        t.equal(head?.status, 'authorization' in headers ? 200 : 401)
        const length = head?.headers.get('content-length') ?? null
        if (length !== null) t.equal(Number(length), (await asked!.arrayBuffer()).byteLength)
        t.equal(await head?.text(), '')
      }
  })
})
