/** "Errors": what passes through from upstreams, the sources of 429, and the errors of media and logs. */
import t, { type Test } from 'tap'
import {
  CHAT_PROTOCOLS,
  type ChatProtocol,
  checkRefused,
  ERRORS,
  type Named,
  shapeOf,
  WAYS,
} from '../end-to-end/protocols/support.ts'
import { PNG_URI } from '../end-to-end/sdk/support.ts'
import { json } from './scripted-upstream.ts'
import { section, statement, statements } from './statement.ts'
import { type Answer, simulate } from './world.ts'

type Way = (typeof WAYS)[number]

const nameOf = ([client, upstream]: Way) => (client === upstream ? client : `${client} to ${upstream}`)

const responseOf = ({ status, headers, text }: Answer) => new Response(text, { status, headers })

/** The answer is this error in the shape of `protocol` and nothing more. */
const isError = (t: Test, answer: Answer, protocol: ChatProtocol, named: Named, message?: RegExp) =>
  checkRefused(t, responseOf(answer), protocol, named, message)

/** The answer without what the upstream says beside its message, such as when another try makes sense. */
function withoutDetails(answer: Answer): Answer {
  const { error } = answer.body
  if (error?.details === undefined) return answer
  const { details, ...rest } = error
  return { ...answer, text: JSON.stringify({ ...answer.body, error: rest }) }
}

const permission: Named = {
  status: 403,
  code: 'permission_denied',
  type: 'permission_error',
  messagesType: 'permission_error',
  generateStatus: 'PERMISSION_DENIED',
}

const INVALID = 'invalid_request_error'

/** Status, and code and type in the OpenAI shape. The other two shapes say the same of all but those in the table. */
const passed = (status: number, code: string, type: string, more: Partial<Named> = {}): Named => ({
  status,
  code,
  type,
  messagesType: 'api_error',
  generateStatus: 'UNAVAILABLE',
  ...more,
})

const PASSED_THROUGH = [
  passed(400, 'invalid_request', INVALID),
  passed(401, 'invalid_api_key', 'authentication_error'),
  passed(402, 'upstream_error', 'api_error'),
  permission,
  passed(404, 'not_found', INVALID),
  passed(408, 'upstream_error', 'api_error'),
  passed(409, 'upstream_error', 'api_error'),
  passed(418, 'upstream_error', 'api_error'),
  passed(422, 'invalid_request', INVALID),
  passed(429, 'rate_limit_exceeded', 'rate_limit_error', {
    messagesType: 'rate_limit_error',
    generateStatus: 'RESOURCE_EXHAUSTED',
  }),
  passed(500, 'upstream_error', 'api_error'),
  passed(501, 'upstream_error', 'api_error'),
  passed(503, 'upstream_error', 'api_error'),
  passed(504, 'upstream_error', 'api_error', { generateStatus: 'DEADLINE_EXCEEDED' }),
  passed(529, 'upstream_error', 'api_error'),
]

const MEDIA_BODIES: readonly (readonly [path: string, body: object])[] = [
  ['/v1/images/generations', { model: 'demo-image', prompt: 'a kite' }],
  ['/v1/images/edits', { model: 'demo-image', prompt: 'a kite', image: PNG_URI }],
  ['/v1/videos/generations', { model: 'demo-video', prompt: 'a kite', duration: 4 }],
  ['/v1/music/generations', { model: 'demo-music', prompt: 'a waltz' }],
  ['/v1/audio/speech', { model: 'voice-tts-pro', input: 'Good day' }],
  ['/v1/audio/voices', { name: 'Ada', audio_url: 'https://example.com/a.mp3' }],
  ['/v1/transcripts/extract', { url: 'https://example.com/v/1' }],
  ['/v1/videos/avatars', { name: 'Ada', source_url: 'https://example.com/a.png' }],
  ['/v1/videos/clip-subtitles', { video_url: 'https://example.com/a.mp4' }],
]

/** What an upstream's error holds beside its message, as each protocol's vendor writes it. */
const DETAILED: Readonly<Record<ChatProtocol, object>> = {
  'chat-completions': { error: { message: 'Too long.', type: 'x', code: 'y', param: 'messages[3]' } },
  messages: { type: 'error', error: { type: 'x', message: 'Too long.', details: { limit: 7 } } },
  'generate-content': {
    error: { code: 400, message: 'Too long.', status: 'X', details: [{ '@type': 'a/b', field: 'contents' }] },
  },
  responses: { error: { message: 'Too long.', type: 'x', code: 'y', param: 'input[3]' } },
}

await section(t, 'Errors: passed through, limits, media', [
  statements(
    WAYS,
    (way) =>
      `Every upstream status passes through, named by the table, its message unwrapped (${nameOf(way)})`,
    async (t, world, [protocol, upstream]) => {
      const client = await world.client()
      for (const stream of [false, true])
        await Promise.all(
          PASSED_THROUGH.map(async (named) => {
            const say = simulate(`fault=status:${named.status},retry_after=17`)
            const answer = await client.call(protocol, `faulty-${upstream}`, { stream, say })
            await t.test(`${named.status}, ${stream ? 'streamed' : 'whole'}`, async (t) => {
              await isError(
                t,
                withoutDetails(answer),
                protocol,
                { ...named, isPassed: true },
                /^[^{}]*simulat[^{}]*$/i,
              )
              t.equal(answer.headers.get('retry-after'), '17', 'Retry-After is kept')
              t.notOk([...answer.headers.keys()].some((name) => name.startsWith('x-ratelimit')))
            })
          }),
        )
    },
  ),
  statements(
    CHAT_PROTOCOLS,
    (protocol) => `What an upstream's error says beside its message is kept (${protocol})`,
    async (t, world, protocol) => {
      const client = await world.client()
      const { word } = world.upstream.script(json(400, DETAILED[protocol], { 'retry-after': '7' }))
      const answer = await client.call(protocol, `script-${protocol}`, { say: word })
      t.equal(answer.status, 400)
      t.equal(answer.headers.get('retry-after'), '7')
      const detailed = DETAILED[protocol] as { error: Record<string, unknown> }
      for (const name of ['message', 'param', 'details'])
        t.same(answer.body.error[name], detailed.error[name], name)
    },
  ),
  statements(
    CHAT_PROTOCOLS,
    (protocol) => `An upstream's plain-text error is the message, of 500 characters at most (${protocol})`,
    async (t, world, protocol) => {
      const client = await world.client()
      for (const [text, message] of [
        ['The prompt is too long.', 'The prompt is too long.'],
        ['a word '.repeat(80), 'a word '.repeat(60)],
      ] as const) {
        const { word } = world.upstream.script((response) =>
          response.writeHead(422, { 'content-type': 'text/plain' }).end(text),
        )
        const answer = await client.call(protocol, `script-${protocol}`, { say: word })
        t.equal(answer.status, 422)
        t.ok(answer.body.error.message.startsWith(message))
        t.ok(answer.body.error.message.length <= 500)
      }
    },
  ),
  statement(
    'An upstream limit carries no x-ratelimit headers and one of the account does',
    async (t, world) => {
      const client = await world.client()
      const upstream = await client.call('chat-completions', 'faulty-chat-completions', {
        say: simulate('fault=status:429'),
      })
      t.equal(upstream.status, 429)
      t.equal(upstream.headers.get('x-ratelimit-limit'), null)
      const limited = await world.client()
      await world.service.database.accounts.setLimits(limited.accountId, { requestsPerMinute: 1 })
      await limited.get('/v1/models')
      const own = await limited.get('/v1/models')
      t.equal(own.status, 429)
      t.equal(own.headers.get('x-ratelimit-limit'), '1')
      t.match(own.headers.get('retry-after'), /^[1-9]\d*$/)
    },
  ),
  statement('The limits of an account hold over all of its keys', async (t, world) => {
    const client = await world.client()
    await world.service.database.accounts.setLimits(client.accountId, { requestsPerMinute: 2 })
    const other = await world.another(client)
    t.equal((await client.get('/v1/models')).status, 200)
    t.equal((await other.get('/v1/models')).status, 200)
    for (const each of [client, other]) t.equal((await each.get('/v1/models')).status, 429)
  }),
  statement('Every /v1 request counts, polls included', async (t, world) => {
    const client = await world.client()
    const paths = [
      '/v1/models',
      '/v1/videos/generations/vid_unknown',
      '/v1/music/generations',
      '/v1/images/generations',
      '/v1/audio/voices',
      '/v1/videos/avatars/presets',
      '/v1/dashboard/billing/subscription',
      '/v1/dashboard/billing/usage',
      '/v1/dashboard/billing/credit_grants',
    ]
    await world.service.database.accounts.setLimits(client.accountId, { requestsPerMinute: paths.length })
    for (const path of paths) t.not((await client.get(path)).status, 429, path)
    t.equal((await client.get('/v1/models')).status, 429)
  }),
  statement('The balance and the call log count towards no limit of requests', async (t, world) => {
    const client = await world.client()
    await world.service.database.accounts.setLimits(client.accountId, { requestsPerMinute: 1 })
    for (const path of ['/v1/key/balance', '/v1/logs', '/v1/logs/summary', '/v1/logs/1', '/v1/key/balance'])
      t.not((await client.get(path)).status, 429, path)
    t.equal((await client.get('/v1/models')).status, 200)
    t.equal((await client.get('/v1/models')).status, 429)
  }),
  statement('The balance of zero is refused before the rate, and such a request counts', async (t, world) => {
    const { database } = world.service
    const client = await world.client('0')
    await database.accounts.setLimits(client.accountId, { requestsPerMinute: 1 })
    for (const _ of [1, 2, 3])
      t.equal((await client.call('chat-completions', 'plain-chat-completions')).status, 402)
    t.equal((await client.get('/v1/models')).status, 429, 'the refused requests have used the minute')
  }),
  statement('On generate-content 402 and 429 share a status, and the numbers differ', async (t, world) => {
    const poor = await world.client('0')
    const empty = await poor.call('generate-content', 'plain-generate-content')
    t.same([empty.body.error.code, empty.body.error.status], [402, 'RESOURCE_EXHAUSTED'])
    const client = await world.client()
    const limited = await client.call('generate-content', 'faulty-generate-content', {
      say: simulate('fault=status:429'),
    })
    t.same([limited.body.error.code, limited.body.error.status], [429, 'RESOURCE_EXHAUSTED'])
  }),
  statement('Embeddings are 404 model_not_found', async (t, world) => {
    const client = await world.client()
    const answer = await client.post('/v1/embeddings', { model: 'text-embedding', input: 'hi' })
    t.same([answer.status, answer.body.error.code], [404, 'model_not_found'])
    t.equal(answer.body.error.type, INVALID)
  }),
  statement('502 is for connections: an upstream that answers 5xx keeps its own status', async (t, world) => {
    const client = await world.client()
    for (const status of [500, 502, 503, 504, 599]) {
      const say = simulate(`fault=status:${status}`)
      const { body, ...answer } = await client.call('responses', 'faulty-responses', { say })
      t.same([answer.status, body.error.code, body.error.type], [status, 'upstream_error', 'api_error'])
    }
    const cut = await client.call('responses', 'faulty-responses', { say: simulate('fault=reset:head') })
    t.same([cut.status, cut.body.error.code], [502, 'upstream_unreachable'])
  }),
  statements(
    MEDIA_BODIES,
    ([path]) => `Errors of ${path} have message, type and code, and the trace in a header`,
    async (t, world, [path, body]) => {
      const client = await world.client()
      const unknown = await client.send('POST', path, body, { authorization: 'Bearer nothing' })
      await isError(t, unknown, 'chat-completions', ERRORS.invalidApiKey)
      const malformed = await client.post(path, '{"model":')
      await isError(t, malformed, 'chat-completions', ERRORS.invalidRequest)
      const poor = await world.client('0')
      const empty = await poor.post(path, body)
      await isError(t, empty, 'chat-completions', ERRORS.quotaExceeded, /top up/)
      const key = await client.post(path, body, { 'idempotency-key': 'two words' })
      await isError(t, key, 'chat-completions', ERRORS.invalidKey)
    },
  ),
  statements(
    MEDIA_BODIES.filter(([, body]) => 'model' in body),
    ([path]) => `An upstream's refusal of ${path} passes through with status, code and type`,
    async (t, world, [path, body]) => {
      const client = await world.client()
      for (const named of PASSED_THROUGH.filter(({ status }) => status < 500)) {
        const text = 'input' in body ? 'input' : 'prompt'
        const say = simulate(`fault=status:${named.status}`)
        const answer = await client.post(path, { ...body, [text]: say })
        t.equal(answer.status, named.status, `${named.status}`)
        t.same(
          [answer.body.error?.code, answer.body.error?.type],
          [named.code, named.type],
          `${named.status}: code and type`,
        )
        t.match(answer.trace, /^req_/)
      }
    },
  ),
  statements(
    [
      ['/v1/logs?status=misspelled', 400, 'invalid_request', INVALID],
      ['/v1/logs?scope=account', 403, 'permission_denied', 'permission_error'],
      ['/v1/logs/999999999999', 404, 'log_not_found', INVALID],
    ] as const,
    ([path, status, code]) => `The call log answers ${status} ${code} to ${path}`,
    async (t, world, [path, status, code, type]) => {
      const answer = await (await world.client()).get(path)
      t.equal(answer.status, status)
      t.same(answer.body, { error: { message: answer.body.error.message, type, code } })
    },
  ),
  statement('No error body names the request; the header does', async (t, world) => {
    const client = await world.client()
    for (const protocol of CHAT_PROTOCOLS) {
      const answer = await client.call(protocol, 'unheard-of')
      t.match(answer.trace, /^req_[0-9A-HJKMNP-TV-Z]{26}$/)
      t.notMatch(answer.text, /request_id|req_/)
      const { message } = answer.body.error
      t.strictSame(answer.body, shapeOf(protocol, ERRORS.modelNotFound, message))
    }
  }),
])
