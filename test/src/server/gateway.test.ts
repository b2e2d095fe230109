/** What the gateway process wires: keys, links, files, counts, paths. */

import { once } from 'node:events'
import { createServer, type RequestListener, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { totalmem } from 'node:os'
import { Readable } from 'node:stream'
import { lastValueFrom } from 'rxjs'
import t, { type Test } from 'tap'
import { makeErrorReply } from '../../../pipelines/calls/errors.ts'
import { MediaCallFailure } from '../../../pipelines/tasks/ports.ts'
import type { ApiKey, KeyKind } from '../../../schemas/accounts/key.ts'
import type { Settlement } from '../../../schemas/call-log/columns.ts'
import { configFile } from '../../../schemas/config/file.ts'
import type { Endpoint } from '../../../schemas/endpoints/endpoint.ts'
import { ENDPOINTS } from '../../../schemas/endpoints/index.ts'
import { AUTH_MESSAGES, FAILURES, Failure } from '../../../schemas/failure.ts'
import { findChatAdapter } from '../../../src/channels/chat/registry.ts'
import type { FormPart, MediaRequest } from '../../../src/channels/media/adapter.ts'
import { jsonRequest } from '../../../src/channels/media/request.ts'
import { mask } from '../../../src/core/call-log/redact.ts'
import { DEFAULTS } from '../../../src/core/call-log/settlement.ts'
import { addressPrefix } from '../../../src/core/keys/address-prefix.ts'
import { generateApiKey } from '../../../src/core/keys/material.ts'
import { listUpstreamTexts } from '../../../src/core/routing/upstream-texts.ts'
import type { GatewayRequest } from '../../../src/http/handler.ts'
import { NO_PARAMS, type Router } from '../../../src/http/router.ts'
import { errorBody, findErrorShape } from '../../../src/protocols/error-shape.ts'
import { openMediaCalls } from '../../../src/server/channels/media-calls.ts'
import { openUpstreamCalls } from '../../../src/server/channels/upstream-calls.ts'
import { MAX_LINKED_HOSTS, makeLinkChecker } from '../../../src/server/gateway/check-links.ts'
import { openClientLimits } from '../../../src/server/gateway/client-limits.ts'
import { countSettled } from '../../../src/server/gateway/count-settled.ts'
import { MAX_FILES, makeFileFetcher } from '../../../src/server/gateway/fetch-files.ts'
import { failedAuthentications, LOG_INTERVAL_MS, pageOrigins } from '../../../src/server/gateway/gateway.ts'
import { createMetrics } from '../../../src/telemetry/metrics.ts'
import { UpstreamClient, type UpstreamFailure } from '../../../src/upstream/client.ts'
import { authorizerOf } from '../../support/channel-authorizer.ts'
import { emptyRouter } from '../../support/empty-routes.ts'
import { until } from '../../support/eventually.ts'
import { bytesOf, sendJson, serveHttp } from '../../support/http-server.ts'
import { apiKey, knownKey, walletView } from '../../support/known-key.ts'
import { type Asked, FIVE_MINUTES_MS, HOUR_MS, type Opened, open, serve } from '../auth/support.ts'

t.test('agent keys open one endpoint', async (t) => {
  // An agent key may call only POST /v1/chat/completions; everything else is rejected.
  const RAW = generateApiKey()
  const OPEN = 'POST /v1/chat/completions'

  const credential = (kind: KeyKind, more: Partial<ApiKey> = {}) =>
    knownKey({ key: apiKey({ kind, ...more }), view: walletView('0') })

  /** The service's whole table, with nothing behind it but one known key. */
  function table(known: object) {
    const refused: Settlement[] = []
    const access = {
      credentials: { peek: () => known },
      catalog: () => ({
        resolve: () => null,
        config: { limits: { requests_per_minute: null, concurrency: null } },
      }),
      onRefused: (settlement: Settlement) => void refused.push(settlement),
    }
    return { router: emptyRouter(access), refused }
  }

  const requestOf = (method: string, path: string): GatewayRequest => ({
    requestId: 'req_a',
    method,
    path,
    params: NO_PARAMS,
    query: '',
    header: (name) => (name === 'authorization' ? `Bearer ${RAW}` : ''),
    hasHeader: () => false,
    body: Buffer.from('{}'),
    submittedAt: 1,
    startedAt: 0,
  })

  const targetOf = ({ method, path }: Endpoint) => ({
    name: `${method} ${path}`,
    method,
    path: path.replaceAll(/\{\w+\}/g, 'x'),
  })
  const KEYED = ENDPOINTS.filter(({ key }) => key !== 'none' && key !== 'management').map(targetOf)
  const MANAGEMENT = ENDPOINTS.filter(({ key }) => key === 'management').map(targetOf)

  const failureOf = async (all: Router, method: string, path: string): Promise<unknown> => {
    const handler = all.match(path)?.methods[method]?.handler
    if (handler === undefined) throw new Error(`nothing answers ${method} ${path}`)
    return lastValueFrom(handler(requestOf(method, path))).then(
      (reply) => new Error(`answered: ${JSON.stringify(reply)}`),
      (error: unknown) => error,
    )
  }

  t.test('with an agent key every endpoint but one is denied, in the shape of its path', async (t) => {
    t.ok(KEYED.length > 40, 'there are endpoints')
    const { router: all } = table(credential('agent'))
    for (const { name, method, path } of KEYED) {
      const error = await failureOf(all, method, path)
      const { status, body } = makeErrorReply(path, 'req_a', {
        onUnforeseen: () => {},
        onInternal: () => {},
      })(error)
      if (name === OPEN) {
        t.equal(status, 402, 'the one checks the wallet next')
        continue
      }
      t.equal(status, 403, name)
      t.match((error as Failure).message, OPEN, name)
      t.same(body, errorBody(findErrorShape(path), error as Failure), name)
      t.match(String(body), /permission_error|PERMISSION_DENIED/, name)
    }
  })

  t.test('no API key opens the management API', async (t) => {
    t.ok(MANAGEMENT.length > 0)
    const { router: all } = table(credential('console'))
    for (const { name, method, path } of MANAGEMENT)
      t.match(await failureOf(all, method, path), { code: 'not_signed_in' }, name)
  })

  t.test('a call that is denied leaves a row where the endpoint is billed', async (t) => {
    const { router: all, refused } = table(credential('agent'))
    for (const path of ['/v1/messages', '/v1/responses', '/v1/images/generations', '/v1/audio/speech'])
      await failureOf(all, 'POST', path)
    await failureOf(all, 'GET', '/v1/models')
    t.same(
      refused.map(({ protocol, status, error_code, cost }) => [protocol, status, error_code, cost]),
      [
        ['messages', 'rejected', 'permission_denied', '0'],
        ['responses', 'rejected', 'permission_denied', '0'],
        ['images', 'rejected', 'permission_denied', '0'],
        ['speech', 'rejected', 'permission_denied', '0'],
      ],
    )
  })

  t.test('a bad key is refused first', async (t) => {
    for (const more of [{ enabled: false }, { revokedAt: new Date(0) }, { expiresAt: new Date(1) }]) {
      const { router: all } = table(credential('agent', more))
      for (const { name, method, path } of KEYED) {
        const error = (await failureOf(all, method, path)) as Failure
        t.equal(error.status, FAILURES.invalid_api_key.status, name)
      }
    }
  })

  t.test('keys of other kinds are not held up here', async (t) => {
    for (const kind of ['console', 'employee', 'compute'] as const) {
      const { router: all } = table(credential(kind))
      t.match(await failureOf(all, 'POST', '/v1/messages'), { code: 'quota_exceeded' }, kind)
    }
  })
})

t.test('refused keys are counted', async (t) => {
  const HOUR_MS = 3_600_000

  t.test('each is counted by its reason, and a line now and then says from where', async (t) => {
    const metrics = createMetrics('0')
    const lines: object[] = []
    let now = 0
    const refused = failedAuthentications({
      count: metrics.unauthenticated,
      log: { warn: (details) => void lines.push(details) },
      now: () => now,
    })
    for (let at = 0; at < 5; at++) refused(AUTH_MESSAGES.invalid, () => `203.0.113.${at}`)
    refused(AUTH_MESSAGES.revoked, () => '203.0.113.9')
    now += LOG_INTERVAL_MS
    refused('The metrics token is missing or wrong.', () => '2001:db8:1:2::3')
    const text = await metrics.text()
    for (const [reason, count] of Object.entries({ invalid: 5, revoked: 1, other: 1 }))
      t.ok(text.includes(`tollgate_authentication_failures_total{reason="${reason}"} ${count}\n`), reason)
    t.same(lines, [
      { reason: 'invalid', address_prefix: '203.0.113.0/24', refused: 1 },
      { reason: 'other', address_prefix: '2001:db8:1::/48', refused: 6 },
    ])
  })

  t.test('a clock that is set back by an hour does not silence the log', async (t) => {
    let lines = 0
    let now = 2 * HOUR_MS
    const refused = failedAuthentications({
      count: () => undefined,
      log: { warn: () => void lines++ },
      now: () => now,
    })
    refused(AUTH_MESSAGES.invalid, () => '203.0.113.1')
    now -= HOUR_MS
    refused(AUTH_MESSAGES.invalid, () => '203.0.113.1')
    t.equal(lines, 2)
  })

  t.test('calls that the reservations of all processes refuse are counted', async (t) => {
    const metrics = createMetrics('0')
    for (const reason of ['wallet', 'spend_cap', 'wallet'] as const) metrics.reservationRefused(reason)
    const text = await metrics.text()
    t.match(text, 'tollgate_reservation_refusals_total{reason="wallet"} 2\n')
    t.match(text, 'tollgate_reservation_refusals_total{reason="spend_cap"} 1\n')
  })

  t.test('networks', (t) => {
    const NETWORKS = {
      '10.1.2.3': '10.1.2.0/24',
      '::ffff:10.1.2.3': '10.1.2.0/24',
      '0000:0000:0000:0000:0000:ffff:7f00:0001': '127.0.0.0/24',
      '2001:0db8:0001:0002:0003:0004:0005:0006': '2001:db8:1::/48',
      '::1': '0:0:0::/48',
      '': '',
      unknown: '',
      '1:2:3': '',
    }
    for (const [address, network] of Object.entries(NETWORKS))
      t.equal(addressPrefix(address), network, address)
    t.end()
  })
})

const noHeader = () => ''

t.test('unknown paths name the nearest', async (t) => {
  // A 404 of a path that is nearly one names it; any other says where the endpoints are listed.
  const table = emptyRouter()

  function messageAt(path: string): string {
    const found = table.find({ method: 'POST', path, header: noHeader })
    return found instanceof Failure ? found.message : ''
  }

  const MEANT: readonly (readonly [sent: string, meant: string])[] = [
    ['/chat/completions', '/v1/chat/completions'],
    ['/v1/v1/chat/completions', '/v1/chat/completions'],
    ['/v1/chat/completions/', '/v1/chat/completions'],
    ['//v1/messages', '/v1/messages'],
    ['/V1/models', '/v1/models'],
    ['/v1/response', '/v1/responses'],
    ['/v1/images/generation', '/v1/images/generations'],
    ['/v1/video/generations', '/v1/videos/generations'],
    ['/v1/videos', '/v1/videos/generations'],
    ['/v1/video', '/v1/videos/generations'],
    ['/v1/chat', '/v1/chat/completions'],
    ['/v1/audio', '/v1/audio/transcriptions'],
    ['/mcp/', '/mcp'],
    ['/api/manage/v1/account', '/api/manage/v1/accounts'],
  ]

  t.test('a path that is nearly one', async (t) => {
    for (const [sent, meant] of MEANT)
      t.equal(messageAt(sent), `There is no endpoint at ${sent}. Did you mean "${meant}"?`)
  })

  t.test('any other path', async (t) => {
    for (const path of ['/nowhere', '/v1', '/v1/files', `/${'x'.repeat(10_000)}`])
      t.equal(
        messageAt(path),
        `There is no endpoint at ${path.slice(0, 200)}. GET /openapi.json lists every endpoint.`,
      )
  })
})

t.test('ids are not names of the interface', async (t) => {
  // What the public interface calls at `/v1/responses/…` is no id.
  const table = emptyRouter()

  for (const name of ['compact', 'input_tokens'])
    t.test(`${name} is no id`, async (t) => {
      for (const method of ['GET', 'DELETE'])
        t.match(table.find({ method, path: `/v1/responses/${name}`, header: noHeader }), {
          code: 'method_not_allowed',
        })
    })

  t.test('any other name is an id', async (t) => {
    for (const id of ['resp_1', 'input_tokens_1'])
      t.notOk(table.find({ method: 'GET', path: `/v1/responses/${id}`, header: noHeader }) instanceof Failure)
  })
})

t.test('pages that may call mcp', async (t) => {
  // The service's own pages may call `/mcp`, by each name of this machine, and those that the configuration names.
  const config = (allowed_origins: readonly string[] = []) => configFile.parse({ mcp: { allowed_origins } })

  t.test('origins', async (t) => {
    t.same(pageOrigins('https://gateway.example.com/', config)(), ['https://gateway.example.com'])
    t.same(pageOrigins('http://127.0.0.1:8080', config)(), [
      'http://localhost:8080',
      'http://127.0.0.1:8080',
      'http://[::1]:8080',
    ])
    const named = ['https://app.example.com']
    t.same(pageOrigins('https://gateway.example.com', () => config(named))(), [
      'https://gateway.example.com',
      ...named,
    ])
    for (const origin of [
      'app.example.com',
      'https://app.example.com/',
      'https://app.example.com/a',
      'null',
      '*',
    ])
      t.throws(() => config([origin]), origin)
  })
})

t.test('links are checked before they are forwarded', async (t) => {
  // The links of one request: each is checked, and each host is resolved once.
  const OWN = 'http://127.0.0.1:8080/files/'
  const store = {
    makePermanentLink: (key: string) => `${OWN}${key}`,
    makeLink: async (key: string) => `${OWN}${key}?expires=1`,
  }
  const resolved: string[] = []
  const check = makeLinkChecker({
    store,
    resolve: async (host) => {
      resolved.push(host)
      return [{ address: host.startsWith('inner') ? '10.0.0.1' : '93.184.216.34' }]
    },
  })

  t.beforeEach(() => void resolved.splice(0))

  t.test('one link that is not public refuses the request', async (t) => {
    await t.resolves(check([]))
    await t.resolves(check(['https://a.example/1', 'https://b.example/2']))
    for (const url of [
      'http://inner.example/',
      'http://127.0.0.1/a',
      'http://u:p@a.example/',
      'gs://bucket/a',
      'a',
    ])
      await t.rejects(check(['https://a.example/1', url]), {
        code: 'invalid_request',
        message: /cannot be fetched/,
      })
  })

  t.test('each host is resolved once, and only so many', async (t) => {
    await check(Array.from({ length: 1000 }, (_, index) => `https://a.example/${index}`))
    t.same(resolved, ['a.example'])
    const hosts = Array.from({ length: MAX_LINKED_HOSTS + 1 }, (_, index) => `https://a${index}.example/`)
    await t.rejects(check(hosts), { code: 'invalid_request', message: /33 hosts; at most 32/ })
    t.equal(resolved.length, 1)
  })

  t.test('a link of the store itself may be given back, wherever the store is', async (t) => {
    await check([store.makePermanentLink('images/a.png'), await store.makeLink('images/a.png')])
    for (const url of ['http://127.0.0.1:8080/metrics', `${OWN}../metrics`])
      await t.rejects(check([url]), { message: /public address/ })
  })
})

t.test('files of a request are bounded', async (t) => {
  // Files that the gateway fetches for a chat request: how many, how large, how many at once, and how they end together.
  const NEVER = new AbortController().signal
  const WAIT_MS = 20_000
  const fetchHere = makeFileFetcher({ isAllowed: (address) => address === '127.0.0.1', maxTotalBytes: 1000 })

  const linksTo = (base: string, count: number) => Array.from({ length: count }, (_, at) => `${base}/${at}`)

  /** Answers nothing until the test does; knows who is waiting. */
  function held() {
    const open = new Map<string, ServerResponse>()
    let most = 0
    const listener: RequestListener = ({ url }, response) => {
      open.set(url!, response)
      most = Math.max(most, open.size)
      response.once('close', () => open.delete(url!))
    }
    return { open, listener, most: () => most }
  }

  t.test('more than sixteen files are refused before the first is asked for', async (t) => {
    let asked = 0
    const base = await serveHttp(t, (_, response) => {
      asked++
      response.end('x')
    })
    await t.rejects(fetchHere(linksTo(base, MAX_FILES + 1), WAIT_MS, NEVER), {
      code: 'invalid_request',
      message: /names 17 files by URL; at most 16/,
    })
    t.equal(asked, 0)
    const one = `${base}/one`
    const files = await fetchHere([...linksTo(base, MAX_FILES - 1), one, one], WAIT_MS, NEVER)
    t.equal(files.size, MAX_FILES, 'one that is named twice counts once')
    t.equal(asked, MAX_FILES, 'and is fetched once')
    t.equal(files.get(one)!.base64, Buffer.from('x').toString('base64'))
  })

  t.test('all of them together have a limit', async (t) => {
    const base = await serveHttp(t, (_, response) => void response.end(Buffer.alloc(300)))
    t.equal((await fetchHere(linksTo(base, 3), WAIT_MS, NEVER)).size, 3)
    await t.rejects(fetchHere(linksTo(base, 4), WAIT_MS, NEVER), {
      code: 'invalid_request',
      message: /MiB together/,
    })
  })

  t.test('four at a time, and the first failure ends the others', async (t) => {
    const { open, listener, most } = held()
    const fetched = fetchHere(linksTo(await serveHttp(t, listener), 9), WAIT_MS, NEVER)
    const failed = t.rejects(fetched, { message: /status 404/ })
    await until('four downloads', async () => open.size === 4)
    open.get('/0')!.end('x')
    await until('the fifth in its place', async () => open.has('/4'))
    open.get('/2')!.writeHead(404).end()
    await failed
    await until('no download', async () => open.size === 0)
    t.equal(most(), 4)
    t.notOk(open.has('/5'))
  })

  t.test('a client that leaves ends all of them', async (t) => {
    const { open, listener } = held()
    const client = new AbortController()
    const fetched = fetchHere(linksTo(await serveHttp(t, listener), 9), WAIT_MS, client.signal)
    const failed = t.rejects(fetched)
    await until('four downloads', async () => open.size === 4)
    client.abort()
    await failed
    await until('no download', async () => open.size === 0)
  })

  t.test('what cannot be reached and what is not public read the same', async (t) => {
    const gone = createServer().listen(0, '127.0.0.1')
    await once(gone, 'listening')
    const { port } = gone.address() as AddressInfo
    gone.close()
    const why = async (url: string, fetchFiles = makeFileFetcher()) => {
      const error = await fetchFiles([url], WAIT_MS, NEVER).catch((error: Error) => error)
      return (error as Error).message.replace(/^The file at \S+ /, '')
    }
    const unreachable = await why(`http://127.0.0.1:${port}/`, fetchHere)
    t.match(unreachable, /cannot be fetched: its server cannot be reached at a public address/)
    t.equal(await why('http://127.0.0.1:1/'), unreachable, 'an address')
    t.equal(await why('http://localhost:1/'), unreachable, 'a name of an inner host')
    t.equal(await why('http://no-such-host.invalid/'), unreachable, 'a name that nobody has')
  })
})

t.test('bodies share a quarter of the memory', async (t) => {
  // The default of `server.max_buffered_mib`: the gateway processes share a quarter of the memory.
  const MIB = 1024 * 1024
  const HOUR_MS = 3_600_000

  /** Returns whether so many bytes of bodies are the most that one gateway process holds. */
  function holdsAtMost(bytes: number, gatewayCount: number, maxBufferedMib: number | null = null): boolean {
    const config = configFile.parse({ server: { max_buffered_mib: maxBufferedMib } })
    const refused: string[] = []
    const limits = openClientLimits({
      config: () => config,
      gatewayCount,
      count: (reason) => refused.push(reason),
      log: { warn: () => undefined },
    })
    return (
      limits.take(bytes, null) === null &&
      limits.take(1, null)?.code === 'service_unavailable' &&
      refused.join() === 'buffer_full'
    )
  }

  t.test('a gateway process holds its share of a quarter of the memory', async (t) => {
    const memory = process.constrainedMemory
    let containerBytes = 0
    process.constrainedMemory = () => containerBytes
    t.teardown(() => {
      process.constrainedMemory = memory
    })
    const ofMachine = Math.floor(totalmem() / 4)
    t.ok(holdsAtMost(ofMachine, 1), 'no container')
    containerBytes = 2 ** 64
    t.ok(holdsAtMost(ofMachine, 1), 'a container without a limit')
    containerBytes = 400 * MIB
    t.ok(holdsAtMost(100 * MIB, 1), 'a container')
    t.ok(holdsAtMost(25 * MIB, 4), 'four gateway processes')
    t.ok(holdsAtMost(64 * MIB, 4, 64), 'the configured limit is that of one process')
  })

  t.test('refusals are logged now and then, also after the clock was set back by an hour', async (t) => {
    let lines = 0
    const config = configFile.parse({ server: { max_buffered_mib: 32 } })
    const limits = openClientLimits({
      config: () => config,
      gatewayCount: 1,
      count: () => undefined,
      log: { warn: () => void lines++ },
    })
    const refuse = () => limits.take(64 * MIB, null)
    refuse()
    refuse()
    t.equal(lines, 1)
    const back = Date.now() - HOUR_MS
    t.intercept(Date, 'now', { value: () => back })
    refuse()
    t.equal(lines, 2)
  })
})

t.test('forwarded calls are counted', async (t) => {
  // What metrics and log say of calls by the way they were metered.
  const SETTLED = {
    ...DEFAULTS,
    model: 'fast',
    status: 'success',
    channel_id: 'primary',
    request_id: 'req_1',
    latency_ms: 5,
    ttfb_ms: 1,
  } as unknown as Settlement
  const USUAL = { suspect: '', reported: undefined, otherModel: '' }

  t.test('calls are counted by the source of their usage, and odd answers apart', async (t) => {
    const warnings: unknown[][] = []
    const metrics = createMetrics('1')
    const count = countSettled(metrics, { warn: (...line: unknown[]) => void warnings.push(line) })
    for (const [usage_source, times] of [
      ['upstream', 3],
      ['estimate', 2],
      ['none', 1],
    ] as const)
      for (let i = 0; i < times; i++) count({ ...SETTLED, usage_source }, USUAL, 'fast-1')
    t.same(warnings, [])

    const odd = { suspect: 'output 9 > 8', reported: undefined, otherModel: 'slow-1' }
    for (let i = 0; i < 2; i++) count({ ...SETTLED, usage_source: 'upstream' }, odd, 'fast-1')
    const cached = { input_tokens: 1000, cached_tokens: 600 }
    count({ ...SETTLED, ...cached, usage_source: 'upstream', channel_id: 'caching' }, USUAL, 'fast-1')
    metrics.metering.unbooked('malformed')
    const text = await metrics.text()
    const labels = 'channel="primary",model="fast"'
    for (const line of [
      `tollgate_metered_calls_total{${labels},source="upstream"} 5`,
      `tollgate_metered_calls_total{${labels},source="estimate"} 2`,
      `tollgate_usage_suspect_total{${labels}} 2`,
      'tollgate_channel_input_tokens_total{channel="caching",model="fast",cache="hit"} 600',
      'tollgate_channel_input_tokens_total{channel="caching",model="fast",cache="miss"} 400',
      `tollgate_answered_by_other_model_total{${labels}} 2`,
      'tollgate_settlements_unbooked_total{reason="malformed"} 1',
      'tollgate_settlements_unbooked_total{reason="refused"} 0',
      'tollgate_calls_total{model="fast",status="success"} 9',
    ])
      t.ok(text.includes(`${line}\n`), line)
    t.match(warnings, [
      [{ request_id: 'req_1', counts: 'output 9 > 8' }, /beyond|no call can have/],
      [{ channel: 'primary', asked: 'fast-1', answered: 'slow-1' }, /another model/],
      [{ counts: 'output 9 > 8' }, String],
    ])
    t.equal(warnings.length, 3, 'each other model is logged once')
  })

  t.test('labels are bounded', async (t) => {
    const metrics = createMetrics('1')
    const call = {
      source: 'upstream',
      isSuspect: false,
      isOtherModel: false,
      inputTokens: 0,
      cachedTokens: 0,
    } as const
    for (let i = 0; i < 6_000; i++) metrics.metering.metered({ ...call, channel: 'c', model: `m${i}` })
    const samples = (await metrics.text()).split('\n').filter((line) => line.startsWith('tollgate_metered_'))
    t.equal(samples.length, 5_001)
    t.ok(samples.some((line) => line.includes('channel="",model=""') && line.endsWith(' 1000')))
  })
})

t.test('calls carry tokens in place of keys', async (t) => {
  // Calls of channels with `auth`, over real connections: the upstream sees the token, and refuses it.
  const client = new UpstreamClient()
  t.teardown(() => client.close())

  interface Answered {
    readonly status?: number
    readonly body?: string
    readonly failure?: UpstreamFailure
  }

  function call({ channel, access }: Opened, deadlineMs = 10_000) {
    const send = openUpstreamCalls(client, () => access)
    const answered = Promise.withResolvers<Answered>()
    let status = 0
    let body = ''
    const request = {
      channel,
      protocol: 'chat-completions' as const,
      upstreamModel: 'up',
      stream: false,
      query: '',
      header: () => '',
      body: Buffer.from('{"model":"up"}'),
      requestId: 'req_1',
      deadlineMs,
      onFreshConnection: false,
      traceparent: null,
    }
    const sent = send(request, {
      onHead: (code) => {
        status = code
      },
      onData: (bytes) => {
        body += Buffer.from(bytes)
      },
      onEnd: () => answered.resolve({ status, body }),
      onError: (failure) => answered.resolve({ failure }),
    })
    return { sent, answered: answered.promise }
  }

  interface Servers {
    readonly tokens: { readonly asked: Asked[] }
    readonly upstream: { readonly asked: Asked[] }
    readonly opened: Opened
  }

  /** Starts a token server and an upstream, and opens the access of a channel to them. */
  async function start(
    t: Test,
    answer: (authorization: string, response: ServerResponse) => void,
    answerToken = (response: ServerResponse, number: number) =>
      sendJson(response, 200, { access_token: `token-number-${number}`, expires_in: HOUR_MS / 1000 }),
  ): Promise<Servers> {
    const tokens = await serve(t, (_, response, number) => answerToken(response, number))
    const upstream = await serve(t, ({ headers }, response) => answer(headers.authorization ?? '', response))
    const opened = open(
      `type: azure-entra, tenant_id: t, client_id: c, client_secret: client-secret-1, authority: "${tokens.url}" }, base_url: "${upstream.url}/v1", headers: { x-extra: "1"`,
    )
    return { tokens, upstream, opened }
  }

  t.test('a call carries the token, and none where it has a key', async (t) => {
    const { opened, upstream } = await start(t, (_, response) => sendJson(response, 200, { ok: true }))
    t.match(await call(opened).answered, { status: 200, body: '{"ok":true}' })
    t.match(upstream.asked[0], {
      path: '/v1/chat/completions',
      body: '{"model":"up"}',
      headers: { authorization: 'Bearer token-number-1', 'x-extra': '1', 'x-request-id': 'req_1' },
    })
    const { headers } = findChatAdapter(opened.channel, 'chat-completions').request(opened.channel, {
      upstreamModel: 'up',
      stream: false,
      query: '',
    })
    t.notOk(headers.some(([name]) => name === 'authorization'))
  })

  t.test('calls whose token is refused are sent once more with one other token', async (t) => {
    const { opened, tokens, upstream } = await start(t, (authorization, response) =>
      authorization === 'Bearer token-number-1'
        ? sendJson(response, 401, {})
        : sendJson(response, 200, { ok: true }),
    )
    const answers = await Promise.all(Array.from({ length: 50 }, () => call(opened).answered))
    t.same(
      answers.map(({ status }) => status),
      Array.from({ length: 50 }, () => 200),
    )
    t.equal(tokens.asked.length, 2)
    t.equal(upstream.asked.length, 100)
  })

  t.test('a second refusal is passed on', async (t) => {
    const { opened, tokens, upstream } = await start(t, (_, response) =>
      sendJson(response, 401, { error: { message: 'no' } }),
    )
    t.match(await call(opened).answered, { status: 401, body: '{"error":{"message":"no"}}' })
    t.equal(upstream.asked.length, 2)
    t.equal(tokens.asked.length, 2)
    t.match(await call(opened).answered, { status: 401 })
    t.equal(upstream.asked.length, 3, 'a token that was just replaced is not replaced again')
  })

  t.test('without a token nothing is sent', async (t) => {
    const { opened, upstream } = await start(
      t,
      (_, response) => sendJson(response, 200, {}),
      (response) => sendJson(response, 401, { error: 'invalid_client' }),
    )
    const { failure } = await call(opened).answered
    t.match(failure, {
      kind: 'authorization',
      sent: false,
      message: /azure-entra: .* status 401: invalid_client$/,
    })
    t.same(upstream.asked, [])
  })

  t.test('a token that no header can carry fails its calls and nothing else', async (t) => {
    const { opened, upstream } = await start(
      t,
      (_, response) => sendJson(response, 200, {}),
      (response) => sendJson(response, 200, { access_token: 'token\nnumber-1', expires_in: 3600 }),
    )
    for (const call1 of [call(opened), call(opened)])
      t.match((await call1.answered).failure, {
        kind: 'authorization',
        sent: false,
        message: /visible ASCII/,
      })
    t.match((await call(opened).answered).failure, { kind: 'authorization' }, 'it is not kept')
    t.same(upstream.asked, [])
    t.notMatch(opened.problems.join(), /number-1/)
  })

  t.test('a signature that no header can carry fails its call and nothing else', async (t) => {
    const { opened, upstream } = await start(t, (_, response) => sendJson(response, 200, {}))
    const headers = [['authorization', 'two\nlines']] as const
    const access = { ...opened.access, authorize: async () => ({ headers, source: null, secret: '' }) }
    t.match((await call({ ...opened, access }).answered).failure, { kind: 'authorization', sent: false })
    t.same(upstream.asked, [])
  })

  t.test('a refusal by a server whose clock differs by five minutes names the clock', async (t) => {
    const { opened } = await start(t, (_, response) => {
      response.setHeader('date', new Date(Date.now() - FIVE_MINUTES_MS).toUTCString())
      sendJson(response, 403, { message: 'Signature expired' })
    })
    const { failure } = await call(opened).answered
    t.match(failure, {
      kind: 'authorization',
      message: /clock of this machine is wrong: it is \d+ seconds ahead of/,
    })
  })

  t.test('a call that is given up while it waits for its token sends nothing', async (t) => {
    const asked = Promise.withResolvers<ServerResponse>()
    const { opened, upstream } = await start(
      t,
      (_, response) => sendJson(response, 200, {}),
      (response) => asked.resolve(response),
    )
    const { sent } = call(opened)
    const response = await asked.promise
    sent.abort()
    sendJson(response, 200, { access_token: 'token-number-1', expires_in: 3600 })
    const other = await call(opened).answered
    t.equal(other.status, 200)
    t.equal(upstream.asked.length, 1)
    t.equal(sent.sent, false)
  })

  t.test('the deadline holds for the wait too', async (t) => {
    const { opened } = await start(
      t,
      (_, response) => sendJson(response, 200, {}),
      () => {},
    )
    t.match((await call(opened, 20).answered).failure, { kind: 'deadline', sent: false })
  })

  t.test('an upstream that quotes the token does not show it', async (t) => {
    const { opened } = await start(t, (authorization, response) => sendJson(response, 400, { authorization }))
    const { body = '' } = await call(opened).answered
    t.match(body, /token-number-1/)
    const { secrets } = listUpstreamTexts([{ channel: opened.channel, upstreamModel: 'up' }], 'm')
    t.notMatch(mask(body.replace('Bearer ', 'token-'), [], secrets), /token-number-1/)
    t.same(opened.tokens, ['token-number-1'])
  })

  t.test('jobs of media carry it too, once more after a refusal', async (t) => {
    const { opened, tokens, upstream } = await start(t, (authorization, response) =>
      sendJson(response, authorization === 'Bearer token-number-1' ? 401 : 200, {}),
    )
    const storage = { open: () => Promise.reject(new Error('nothing is sent along')) }
    const calls = openMediaCalls(client, storage, () => opened.access)
    const request: MediaRequest = jsonRequest(opened.channel, '/jobs', { prompt: 'p' })
    t.match(await calls.send(request, { timeoutMs: 5_000, maxAnswerBytes: 1_000 }), { status: 200 })
    t.same(
      upstream.asked.map(({ headers, body }) => [headers.authorization, body]),
      [
        ['Bearer token-number-1', '{"prompt":"p"}'],
        ['Bearer token-number-2', '{"prompt":"p"}'],
      ],
    )
    t.equal(tokens.asked.length, 2)
  })
})

t.test('media calls report what was sent', async (t) => {
  const client = new UpstreamClient()
  t.teardown(() => client.close())
  const LARGE = Buffer.alloc(3_000_000, 'film')
  const options = { timeoutMs: 5_000, maxAnswerBytes: 1_000_000 }
  const calls = openMediaCalls(
    client,
    {
      open: async (key) =>
        Readable.from([
          LARGE.subarray(0, 1_000_000),
          LARGE.subarray(key === 'short' ? 1_000_001 : 1_000_000),
        ]),
    },
    authorizerOf,
  )

  const request = (
    url: string,
    body: MediaRequest['body'],
    method: MediaRequest['method'] = 'POST',
  ): MediaRequest => ({
    method,
    url: `${url}/v1/things?id=7`,
    headers: [['authorization', 'Bearer k']],
    body,
  })
  const json = { type: 'json', value: { prompt: 'ä' } } as const
  const form = (key: string): MediaRequest['body'] => {
    const file = { key, mediaType: 'video/mp4', bytes: LARGE.length, name: 'a "film".mp4' }
    const parts: FormPart[] = [
      { name: 'model', value: 'm1' },
      { name: 'video', file },
    ]
    return { type: 'form', parts }
  }

  t.test('JSON, an empty post and a question arrive as they are described', async (t) => {
    const seen: unknown[] = []
    const url = await serveHttp(t, async (incoming, response) => {
      const { method, url: path, headers } = incoming
      seen.push([
        method,
        path,
        headers.authorization,
        headers['content-type'],
        String(await bytesOf(incoming)),
      ])
      response.writeHead(201, { 'x-limit': 'many' }).end('made')
    })
    const answer = await calls.send(request(url, json), options)
    await calls.send(request(url, null), options)
    await calls.send(request(url, null, 'GET'), options)
    t.match(answer, { status: 201, body: Buffer.from('made') })
    t.same([answer.header('x-limit'), answer.header('x-other')], ['many', null])
    t.same(seen, [
      ['POST', '/v1/things?id=7', 'Bearer k', 'application/json', '{"prompt":"ä"}'],
      ['POST', '/v1/things?id=7', 'Bearer k', undefined, ''],
      ['GET', '/v1/things?id=7', 'Bearer k', undefined, ''],
    ])
  })

  t.test('a form goes out with its files, its length told', async (t) => {
    let received: Buffer = Buffer.alloc(0)
    let length = 0
    let type = ''
    const url = await serveHttp(t, async (incoming, response) => {
      length = Number(incoming.headers['content-length'])
      type = incoming.headers['content-type'] ?? ''
      received = await bytesOf(incoming)
      response.end('{}')
    })
    t.equal((await calls.send(request(url, form('whole')), options)).status, 200)
    t.equal(received.length, length)
    const boundary = /boundary=(.+)$/.exec(type)![1]!
    const text = received.toString('latin1')
    t.match(
      text,
      new RegExp(`^--${boundary}\r\ncontent-disposition: form-data; name="model"\r\n\r\nm1\r\n--${boundary}`),
    )
    t.ok(
      text.includes('name="video"; filename="a %22film%22.mp4"\r\ncontent-type: video/mp4\r\n\r\nfilmfilm'),
    )
    t.ok(text.endsWith(`film\r\n--${boundary}--\r\n`))
    t.ok(received.includes(LARGE))
  })

  const failureOf = async (sent: Promise<unknown>): Promise<unknown> => sent.catch((error: unknown) => error)
  const KINDS: readonly (readonly [string, MediaRequest['body']])[] = [
    ['JSON', json],
    ['a form', form('whole')],
  ]

  for (const [what, body] of KINDS)
    t.test(`${what}: what failed, and whether any of it was sent`, async (t) => {
      let hear = () => {}
      const url = await serveHttp(t, (incoming, response) => {
        if (incoming.url?.startsWith('/silent')) hear()
        if (incoming.url?.startsWith('/cut')) incoming.socket.destroy()
        if (incoming.url?.startsWith('/large')) response.end(Buffer.alloc(2_000_000))
        incoming.resume()
      })
      const to = (path: string): MediaRequest => ({ ...request(url, body), url: `${url}${path}` })
      const closed = await serveHttp(t, () => undefined).then((address) => address.replace(/:\d+$/, ':1'))
      const unreachable = await failureOf(calls.send({ ...request(closed, body) }, options))
      t.ok(unreachable instanceof MediaCallFailure)
      t.match(unreachable, { isSent: false, isTimeout: false })
      t.match(await failureOf(calls.send(to('/cut'), options)), { isSent: true, isTimeout: false })
      // However long this machine takes to send it.
      for (let [timeoutMs, isSent] = [300, false]; !isSent; timeoutMs *= 2) {
        const late = await failureOf(calls.send(to('/silent'), { ...options, timeoutMs }))
        t.match(late, { isTimeout: true })
        isSent = (late as MediaCallFailure).isSent
      }
      t.match(await failureOf(calls.send(to('/large'), options)), { isSent: true, isTimeout: false })
      const aborting = new AbortController()
      const aborted = failureOf(calls.send(to('/silent'), { ...options, signal: aborting.signal }))
      hear = () => aborting.abort()
      t.match(await aborted, { isSent: true, isTimeout: false })
      const before = AbortSignal.abort()
      t.match(await failureOf(calls.send(to('/silent'), { ...options, signal: before })), { isSent: false })
    })

  t.test('an upstream that refuses before it has read all is heard', async (t) => {
    const url = await serveHttp(t, (incoming, response) => {
      response.writeHead(413, { connection: 'close' }).end('too large')
      incoming.destroy()
    })
    const answer = await failureOf(calls.send(request(url, form('whole')), options))
    // The connection may be gone before the answer is read: then it counts as cut.
    t.ok(answer instanceof MediaCallFailure || (answer as { status: number }).status === 413)
  })

  t.test('a file without its announced length ends the request', async (t) => {
    let isWhole = false
    const url = await serveHttp(t, async (incoming, response) => {
      await bytesOf(incoming).then(
        () => {
          isWhole = true
        },
        () => undefined,
      )
      response.end('{}')
    })
    t.match(await failureOf(calls.send(request(url, form('short')), options)), {
      isSent: true,
      isTimeout: false,
    })
    t.equal(isWhole, false)
  })

  t.test(
    'what is posted goes out on a connection of its own: a kept one may have ended unseen',
    async (t) => {
      const seen = new Set<object>()
      const url = await serveHttp(t, (incoming, response) => {
        const isKept = seen.has(incoming.socket)
        seen.add(incoming.socket)
        if (isKept && incoming.method === 'POST') incoming.socket.destroy()
        else response.end('{}')
      })
      for (let time = 0; time < 3; time++)
        t.match(await calls.send(request(url, json), options), { status: 200 })
      t.equal(seen.size, 3)
      t.match(await calls.send(request(url, null, 'GET'), options), { status: 200 })
      t.equal(seen.size, 3, 'a question takes a kept one')
    },
  )
})
