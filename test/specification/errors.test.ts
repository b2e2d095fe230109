/** "Errors": each row of the table in every protocol, whole and streamed. */
import t, { type Test } from 'tap'
import {
  CHAT_PROTOCOLS,
  type ChatProtocol,
  checkRefused,
  ERRORS,
  type Named,
  WAYS,
} from '../end-to-end/protocols/support.ts'
import { section, statements } from './statement.ts'
import { type Answer, type CallOptions, type Client, callOf, simulate, type World } from './world.ts'

type Way = (typeof WAYS)[number]

const nameOf = ([client, upstream]: Way) => (client === upstream ? client : `${client} to ${upstream}`)

const responseOf = ({ status, headers, text }: Answer) => new Response(text, { status, headers })

/** The answer is this error in the shape of `protocol` and nothing more. */
const isError = (t: Test, answer: Answer, protocol: ChatProtocol, named: Named, message?: RegExp) =>
  checkRefused(t, responseOf(answer), protocol, named, message)

/** A row of the table: what `ask` is answered, by each way through the gateway, whole and streamed. */
const row = (
  sentence: string,
  named: Named,
  ask: (client: Client, way: Way, options: CallOptions, world: World) => Promise<Answer>,
  {
    message,
    credit = '1000000',
    ways = WAYS,
  }: { message?: RegExp; credit?: string; ways?: readonly Way[] } = {},
) =>
  statements(
    ways.flatMap((way) => [false, true].map((stream) => ({ way, stream }))),
    ({ way, stream }) => `${sentence} (${nameOf(way)}, ${stream ? 'streamed' : 'whole'})`,
    async (t, world, { way, stream }) => {
      const client = await world.client(credit)
      await isError(t, await ask(client, way, { stream }, world), way[0], named, message)
    },
  )

const NATIVE = CHAT_PROTOCOLS.map((protocol) => [protocol, protocol] as const)

const SEARCH: Readonly<Record<ChatProtocol, object>> = {
  'chat-completions': { tools: [{ type: 'web_search' }] },
  messages: { tools: [{ type: 'web_search_20250305', name: 'web_search' }] },
  'generate-content': { tools: [{ googleSearch: {} }] },
  responses: { tools: [{ type: 'web_search' }] },
}

const DRAW: Readonly<Partial<Record<ChatProtocol, object>>> = {
  'chat-completions': { tools: [{ type: 'image_generation' }] },
  responses: { tools: [{ type: 'image_generation' }] },
}

/** Each body is valid JSON with one thing wrong. */
const MALFORMED: Readonly<Record<ChatProtocol, readonly object[]>> = {
  'chat-completions': [{ messages: undefined }, { messages: 'hi' }, { stream: 'yes' }, { temperature: 2.1 }],
  messages: [{ messages: undefined }, { max_tokens: undefined }, { max_tokens: 'many' }, { stream: 1 }],
  'generate-content': [{ contents: undefined }, { contents: 'hi' }],
  responses: [{ input: undefined }, { input: 7 }, { stream: 'yes' }],
}

await section(t, 'Errors', [
  row('400 model_not_found: an id that no model has', ERRORS.modelNotFound, (client, [protocol], options) =>
    client.call(protocol, 'unheard-of', options),
  ),
  row('400 model_not_found: a placeholder', ERRORS.modelNotFound, (client, [protocol], options) =>
    client.call(protocol, 'placeholder', options),
  ),
  row(
    '400 model_not_allowed: a model that the allowlist leaves out',
    ERRORS.modelNotAllowed,
    async (client, [protocol, upstream], options, world) =>
      (await world.another(client, { allowedModels: ['unserved'] })).call(
        protocol,
        `plain-${upstream}`,
        options,
      ),
  ),
  row(
    '400 model_not_allowed: any model where the allowlist is empty',
    ERRORS.modelNotAllowed,
    async (client, [protocol, upstream], options, world) =>
      (await world.another(client, { allowedModels: [] })).call(protocol, `plain-${upstream}`, options),
  ),
  row('400 invalid_request: a body that is no JSON', ERRORS.invalidRequest, (client, way, options) => {
    const { path, body } = callOf(way[0], `plain-${way[1]}`, options)
    return client.post(path, `${JSON.stringify(body).slice(0, -1)},`)
  }),
  statements(
    NATIVE.flatMap(([protocol]) => MALFORMED[protocol].map((more) => ({ protocol, more }))),
    ({ protocol, more }) =>
      `400 invalid_request: ${Object.entries(more).map(([name, value]) => `${name} ${JSON.stringify(value) ?? 'missing'}`)} (${protocol})`,
    async (t, world, { protocol, more }) => {
      const client = await world.client()
      await isError(
        t,
        await client.call(protocol, `plain-${protocol}`, { more }),
        protocol,
        ERRORS.invalidRequest,
      )
    },
  ),
  statements(
    NATIVE,
    ([protocol]) => `400 tool_not_supported: web search that the channel lacks (${protocol})`,
    async (t, world, [protocol]) => {
      const client = await world.client()
      for (const stream of protocol === 'chat-completions' ? [true] : [false, true])
        await isError(
          t,
          await client.call(protocol, `plain-${protocol}`, { stream, more: SEARCH[protocol] }),
          protocol,
          ERRORS.toolNotSupported,
        )
    },
  ),
  statements(
    ['chat-completions', 'responses'] as const,
    (protocol) => `400 tool_not_supported: image generation that the channel lacks (${protocol})`,
    async (t, world, protocol) => {
      const client = await world.client()
      const options = { stream: true, more: DRAW[protocol]! }
      const answer = await client.call(protocol, `plain-${protocol}`, options)
      await isError(t, answer, protocol, ERRORS.toolNotSupported)
    },
  ),
  row(
    '400 invalid_idempotency_key: a key of two words',
    ERRORS.invalidKey,
    (client, [protocol, upstream], options) =>
      client.call(protocol, `plain-${upstream}`, { ...options, headers: { 'idempotency-key': 'two words' } }),
  ),
  row(
    '409 idempotency_key_reuse: the key came with another body before',
    ERRORS.keyReuse,
    async (client, [protocol, upstream], options) => {
      const headers = { 'idempotency-key': 'once' }
      await client.call(protocol, `plain-${upstream}`, { ...options, headers })
      return client.call(protocol, `plain-${upstream}`, { ...options, headers, say: 'bye' })
    },
  ),
  row(
    '409 idempotency_in_flight: the call of the key still runs',
    ERRORS.inFlight,
    async (client, [protocol, upstream], { stream }) => {
      const say = simulate('fault=hang')
      const headers = { 'idempotency-key': 'slow' }
      const { path, body } = callOf(protocol, `plain-${upstream}`, { stream, say })
      const leave = new AbortController()
      const running = client.open('POST', path, body, headers, leave.signal)
      running.catch(() => undefined)
      // The two race for the key: only one of them runs, and the other one's answer comes at once.
      const second = client.open('POST', path, body, headers, leave.signal)
      second.catch(() => undefined)
      const response = await Promise.race([running, second])
      const text = await response.text()
      leave.abort()
      const { status, headers: received } = response
      return { status, headers: received, text, body: JSON.parse(text), trace: '' }
    },
  ),
  row('401 invalid_api_key: a key that nobody has', ERRORS.invalidApiKey, (client, way, options) =>
    client.call(way[0], `plain-${way[1]}`, {
      ...options,
      headers: { authorization: `Bearer sk-tollgate-${'0'.repeat(64)}` },
    }),
  ),
  row(
    '402 quota_exceeded: the balance is zero; the message says to top up',
    ERRORS.quotaExceeded,
    (client, [protocol, upstream], options) => client.call(protocol, `plain-${upstream}`, options),
    { credit: '0', message: /balance.*insufficient.*top up/i },
  ),
  row(
    '402 quota_exceeded: the balance does not cover the estimate; the message says to top up',
    ERRORS.quotaExceeded,
    (client, [protocol, upstream], options) => client.call(protocol, `plain-${upstream}`, options),
    { credit: '1', message: /balance.*insufficient.*top up/i },
  ),
  row(
    '429 rate_limit_exceeded: over the requests per minute of the account',
    ERRORS.rateLimited,
    async (client, [protocol, upstream], options, { service }) => {
      await service.database.accounts.setLimits(client.accountId, { requestsPerMinute: 1 })
      await client.call(protocol, `plain-${upstream}`, options)
      return client.call(protocol, `plain-${upstream}`, options)
    },
    { message: /requests per minute/ },
  ),
  row(
    '429 rate_limit_exceeded: over the concurrency of the account',
    ERRORS.rateLimited,
    async (client, [protocol, upstream], options, { service }) => {
      await service.database.accounts.setLimits(client.accountId, { concurrency: 1 })
      const leave = new AbortController()
      const say = simulate('tokens=2000,tps=20')
      const slow = callOf(protocol, `plain-${upstream}`, { stream: true, say })
      await client.open('POST', slow.path, slow.body, {}, leave.signal)
      const answer = await client.call(protocol, `plain-${upstream}`, options)
      leave.abort()
      return answer
    },
    { message: /concurren/ },
  ),
  row(
    '502 upstream_unreachable: no connection to the upstream',
    ERRORS.unreachable,
    (client, [protocol, upstream], options) => client.call(protocol, `dead-${upstream}`, options),
  ),
  row(
    '503 no_channel_available: a model that no channel serves',
    ERRORS.noChannel,
    (client, [protocol], options) => client.call(protocol, 'unserved', options),
  ),
  row(
    '504 upstream_timeout: the upstream did not answer in time',
    ERRORS.timeout,
    (client, [protocol, upstream], options) => client.call(protocol, `silent-${upstream}`, options),
  ),
])
