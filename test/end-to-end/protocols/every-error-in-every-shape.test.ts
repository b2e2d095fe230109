/** Each row that a protocol can give, over the wire, in each protocol's shape. */
import { request } from 'node:http'
import t, { type Test } from 'tap'
import { closedPort } from '../../support/http-server.ts'
import { borrowService } from '../../support/lend-services.ts'
import type { LentService } from '../../support/service.ts'
import { post, rowsOf, traceOf } from '../support.ts'
import {
  type AskOptions,
  ask,
  baseUrlAt,
  CHAT_PROTOCOLS,
  type ChannelPlan,
  type ChatProtocol,
  checkRefused,
  configOf,
  ERRORS,
  type Named,
  PLAIN,
  passedThrough,
  simulated,
  WAYS,
} from './support.ts'

const BODY_LIMIT_BYTES = 32 * 1024 * 1024
/** Its answer, of so many words, is above what is kept for a replay. */
const TOO_MANY_WORDS = 200_000
const TIMEOUT_SECONDS = 0.3
/** Without a limit, an upstream of the messages protocol is asked for less. */
const TAKES_MAX_TOKENS: ReadonlySet<ChatProtocol> = new Set(['chat-completions', 'messages'])
const NO_LIMIT = { max_tokens: 1_000_000 }

/** How each is named in the chat-completions shape. */
const PASSED_THROUGH: readonly (readonly [status: number, code: string, type: string])[] = [
  [400, 'invalid_request', 'invalid_request_error'],
  [401, 'invalid_api_key', 'authentication_error'],
  [402, 'upstream_error', 'api_error'],
  [403, 'permission_denied', 'permission_error'],
  [404, 'not_found', 'invalid_request_error'],
  [418, 'upstream_error', 'api_error'],
  [422, 'invalid_request', 'invalid_request_error'],
  [429, 'rate_limit_exceeded', 'rate_limit_error'],
  [500, 'upstream_error', 'api_error'],
  [503, 'upstream_error', 'api_error'],
  [504, 'upstream_error', 'api_error'],
  [529, 'upstream_error', 'api_error'],
]

const BUILT_IN_SEARCH: Readonly<Record<ChatProtocol, object>> = {
  'chat-completions': { tools: [{ type: 'web_search' }] },
  messages: { tools: [{ type: 'web_search_20250305', name: 'web_search' }] },
  'generate-content': { tools: [{ googleSearch: {} }] },
  responses: { tools: [{ type: 'web_search' }] },
}

/** Models of each upstream, such as `messages.plain`. */
function config(port: number): string {
  const kinds = ['plain', 'large', 'slow', 'silent', 'unreachable']
  const ids = CHAT_PROTOCOLS.flatMap((protocol) => kinds.map((kind) => `${protocol}.${kind}`))
  const statuses = CHAT_PROTOCOLS.flatMap((protocol) =>
    PASSED_THROUGH.map(([status]) => `${protocol}.status-${status}`),
  )
  const channels = CHAT_PROTOCOLS.flatMap((protocol): ChannelPlan[] => [
    simulated(protocol, {
      [`${protocol}.plain`]: 'sim-plain@tokens=2',
      [`${protocol}.large`]: `sim-large@tokens=${TOO_MANY_WORDS}`,
      [`${protocol}.slow`]: 'sim-slow@tokens=1000,tps=20',
      ...Object.fromEntries(
        PASSED_THROUGH.map(([status]) => [
          `${protocol}.status-${status}`,
          `sim-status@fault=status:${status},retry_after=17`,
        ]),
      ),
    }),
    simulated(
      protocol,
      { [`${protocol}.silent`]: 'sim-silent@fault=hang' },
      { id: `impatient-${protocol}`, timeout_seconds: TIMEOUT_SECONDS },
    ),
    simulated(
      protocol,
      { [`${protocol}.unreachable`]: 'sim-any' },
      { id: `dead-${protocol}`, base_url: baseUrlAt(`http://127.0.0.1:${port}`, protocol) },
    ),
  ])
  const models = Object.fromEntries([...ids, ...statuses].map((id) => [id, {}]))
  return configOf({ ...models, unserved: {}, placeholder: { callable: false } }, channels)
}

/** The answer to a head that announces a body too large, of which nothing is sent. */
function announce(service: LentService, key: string, path: string): Promise<Response> {
  return new Promise((resolve, reject) => {
    const sent = request(service.baseUrl + path, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-length': String(BODY_LIMIT_BYTES + 1) },
    })
    sent.on('error', reject)
    sent.on('response', (response) => {
      const pieces: Buffer[] = []
      response.on('data', (bytes: Buffer) => pieces.push(bytes))
      response.on('end', () => {
        const headers = Object.entries(response.headers).map(([name, value]): [string, string] => [
          name,
          String(value),
        ])
        resolve(new Response(Buffer.concat(pieces), { status: response.statusCode!, headers }))
        sent.destroy()
      })
    })
    sent.flushHeaders()
  })
}

t.test('every error', async (t) => {
  const service = await borrowService(t, config(await closedPort()))
  const { key } = await service.newKey('10000000')
  const expected = new Map<string, object>()
  /** The refusal leaves this row. */
  const noted = (response: Response, code: string, status = 'rejected', more: object = {}) =>
    expected.set(traceOf(response), {
      status,
      error_code: code,
      cost: '0',
      output_tokens: 0,
      ...(status === 'rejected' ? { attempts_count: 0 } : {}),
      ...more,
    })

  for (const [client, upstream] of WAYS) {
    const name = client === upstream ? client : `${client} to ${upstream}`
    const model = (kind: string) => `${upstream}.${kind}`
    const call = (kind: string, options?: AskOptions) => ask(service, key, client, model(kind), options)
    const rejected = async (
      t: Test,
      named: Named,
      response: Response | Promise<Response>,
      message?: RegExp,
    ) => {
      const answered = await response
      await checkRefused(t, answered, client, named, message)
      noted(answered, named.code)
    }

    await t.test(`${name}: of the gateway's own`, async (t) => {
      await rejected(t, ERRORS.modelNotFound, ask(service, key, client, 'unheard-of'), /'unheard-of'/)
      await rejected(t, ERRORS.modelNotFound, ask(service, key, client, 'placeholder', { stream: true }))
      await rejected(t, ERRORS.noChannel, ask(service, key, client, 'unserved'), /'unserved'/)
      const { path, body } = PLAIN[client](model('plain'), false)
      await rejected(t, ERRORS.invalidRequest, post(service, key, path, '{"model":'), /not valid JSON/)
      const { messages, contents, input, ...rest } = body
      await rejected(t, ERRORS.invalidRequest, post(service, key, path, rest), /'(messages|contents|input)'/)
      const search = { more: BUILT_IN_SEARCH[client], stream: true }
      await rejected(t, ERRORS.toolNotSupported, call('plain', search), /'web_search'/)
      for (const bad of ['', 'two words', 'x'.repeat(201), 'caf\u00e9s']) {
        const headers = { 'idempotency-key': bad }
        await rejected(t, ERRORS.invalidKey, call('plain', { headers }))
      }
      const narrow = await service.newKey('1000', { allowedModels: ['unserved'] })
      const closed = await service.newKey('1000', { allowedModels: [] })
      for (const other of [narrow, closed]) {
        const response = await ask(service, other.key, client, model('plain'))
        await checkRefused(t, response, client, ERRORS.modelNotAllowed)
      }
    })

    await t.test(`${name}: of a key used again`, async (t) => {
      const headers = { 'idempotency-key': `once-${name.replaceAll(' ', '-')}` }
      t.equal((await call('plain', { headers })).status, 200)
      const other = call('plain', { headers, more: { temperature: 0.5 } })
      await rejected(t, ERRORS.keyReuse, other)

      const slow = { 'idempotency-key': `slow-${name.replaceAll(' ', '-')}` }
      const abort = new AbortController()
      const { path, body } = PLAIN[client](model('slow'), true)
      const running = await post(service, key, path, body, slow, abort.signal)
      t.equal(running.status, 200)
      await rejected(t, ERRORS.inFlight, call('slow', { stream: true, headers: slow }))
      abort.abort()

      const large = { 'idempotency-key': `large-${name.replaceAll(' ', '-')}` }
      const options = { headers: large, stream: true, more: TAKES_MAX_TOKENS.has(client) ? NO_LIMIT : {} }
      const whole = await call('large', options)
      t.equal(whole.status, 200)
      t.ok((await whole.arrayBuffer()).byteLength > 8 * 1024 * 1024)
      await rejected(t, ERRORS.notCached, call('large', options), /fresh key/)
    })

    await t.test(`${name}: of connections`, async (t) => {
      for (const stream of [false, true]) {
        const dead = await call('unreachable', { stream })
        await checkRefused(t, dead, client, ERRORS.unreachable, /^The connection to the upstream failed\.$/)
        noted(dead, 'upstream_unreachable', 'error')
        const silent = await call('silent', { stream })
        await checkRefused(t, silent, client, ERRORS.timeout, /^The upstream did not answer in time\.$/)
        noted(silent, 'upstream_timeout', 'interrupted')
      }
    })

    await t.test(`${name}: of the upstream, its status kept and its message unwrapped`, async (t) => {
      for (const [index, [status, code, type]] of PASSED_THROUGH.entries()) {
        const response = await call(`status-${status}`, { stream: index % 2 === 0 })
        await checkRefused(t, response, client, passedThrough(status, code, type), /^[^{}]*simulat[^{}]*$/i)
        t.equal(response.headers.get('retry-after'), '17')
        t.notOk([...response.headers.keys()].some((header) => header.startsWith('x-ratelimit')))
        const isAboutRequest = status === 400 || status === 422
        noted(response, code, isAboutRequest ? 'rejected' : 'error', { attempts_count: 1 })
      }
    })
  }

  for (const protocol of CHAT_PROTOCOLS)
    await t.test(`${protocol}: of keys, wallets, paths and sizes`, async (t) => {
      const model = `${protocol}.plain`
      const refusedBy = async (raw: string, message: RegExp) => {
        const response = await ask(service, raw, protocol, model)
        await checkRefused(t, response, protocol, ERRORS.invalidApiKey, message)
      }
      await refusedBy('sk-nobody', /^API key is missing or malformed\.$/)
      await refusedBy(`sk-tollgate-${'0'.repeat(64)}`, /^API key is invalid\.$/)
      const past = new Date(Date.now() - 1000)
      await refusedBy((await service.newKey('1', { expiresAt: past })).key, /^API key has expired\.$/)
      const [disabled, revoked] = [await service.newKey('1'), await service.newKey('1')]
      await service.database.keys.update(disabled.keyId, { enabled: false })
      await service.database.keys.revoke(revoked.keyId)
      for (const ended of [disabled, revoked]) await refusedBy(ended.key, /^API key has been revoked\.$/)
      const inactive = await service.newKey('1')
      await service.database.accounts.setEnabled(inactive.accountId, false)
      await refusedBy(inactive.key, /^Account is not active\.$/)

      for (const credit of ['0', '1']) {
        const response = await ask(service, (await service.newKey(credit)).key, protocol, model)
        await checkRefused(t, response, protocol, ERRORS.quotaExceeded, /balance.*insufficient.*top up/)
      }

      const limited = await service.newKey('1000000')
      await service.database.accounts.setLimits(limited.accountId, { requestsPerMinute: 1 })
      t.equal((await ask(service, limited.key, protocol, model)).status, 200)
      const excess = await ask(service, limited.key, protocol, model, { stream: true })
      await checkRefused(t, excess, protocol, ERRORS.rateLimited, /requests per minute/)
      t.match(excess.headers.get('retry-after'), /^[1-9]\d*$/)
      t.equal(excess.headers.get('x-ratelimit-limit'), '1')

      const { path } = PLAIN[protocol](model, false)
      const wrong = await fetch(service.baseUrl + path, { method: 'PUT', body: '{}' })
      t.equal(wrong.headers.get('allow'), 'POST')
      await checkRefused(t, wrong, protocol, ERRORS.methodNotAllowed)
      const nowhere = path.includes(':') ? '/v1beta/models/m:embedContent' : `${path}/nowhere/at/all`
      await checkRefused(t, await post(service, key, nowhere, '{}'), protocol, ERRORS.notFound)
      await checkRefused(t, await announce(service, key, path), protocol, ERRORS.tooLarge, /32/)
    })

  await t.test('leaves its row', async (t) => {
    const rows = await rowsOf(service, key, [...expected.keys()])
    for (const row of rows) t.match(row, expected.get(row.request_id), row.request_id)
    t.notMatch(JSON.stringify(rows), /line-|impatient-|dead-|127\.0\.0\.1|sim-/)
  })
})
