/** Every answer is described by the reference: its status, its headers, its type and its body. */
import t, { type Test } from 'tap'
import { ENDPOINTS } from '../../../schemas/endpoints/index.ts'
import { MANAGEMENT_PATH } from '../../../schemas/routes.ts'
import { undescribed } from '../../support/described.ts'
import { borrowService } from '../../support/lend-services.ts'
import type { LentService } from '../../support/service.ts'
import { demonstration } from '../media/support.ts'
import { say } from '../support.ts'

const HELLO = { contents: [{ role: 'user', parts: [{ text: 'Hello!' }] }] }
const chat = (model: string, more: object = {}) => ({
  model,
  messages: say('Hello!'),
  max_tokens: 5,
  ...more,
})
const LINK = 'https://example.com/a.mp4'

type Ask = (
  expected: number,
  method: string,
  path: string,
  init?: { body?: unknown; headers?: Record<string, string> },
) => Promise<Record<string, unknown>>

/** Returns a client that checks what it is answered. */
const checking =
  (t: Test, { baseUrl }: LentService, key: string | null): Ask =>
  async (expected, method, path, { body, headers = {} } = {}) => {
    const response = await fetch(baseUrl + path, {
      method,
      redirect: 'manual',
      headers: {
        ...(key !== null && { authorization: `Bearer ${key}` }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
    const text = await response.text()
    t.equal(response.status, expected, `${method} ${path}: ${text.slice(0, 300)}`)
    t.same(undescribed(method, path, response, text), [], `${method} ${path}`)
    return text.startsWith('{') ? JSON.parse(text) : {}
  }

/** Bodies of every POST, each answered as it says. */
const CHAT: readonly (readonly [path: string, ok: object])[] = [
  ['/v1/chat/completions', chat('demo-chat')],
  ['/v1/messages', chat('ballad-large')],
  ['/v1/messages/count_tokens', { model: 'ballad-large', messages: say('Hello!') }],
  ['/v1/responses', { model: 'sonata-large', input: 'Hello!', max_output_tokens: 16 }],
  ['/v1/responses/input_tokens', { model: 'sonata-large', input: 'Hello!' }],
  ['/v1beta/models/canto-large:generateContent', HELLO],
  ['/v1beta/models/canto-large:streamGenerateContent', HELLO],
  ['/v1beta/models/canto-large:streamGenerateContent?alt=sse', HELLO],
  ['/v1beta/models/canto-large:countTokens', HELLO],
]
/** Counting tokens is free. */
const COUNTS = /(?:count_?|input_)tokens$/i
const MADE: readonly (readonly [status: number, path: string, body: object])[] = [
  [200, '/v1/images/generations', { model: 'demo-image', prompt: 'A fox', async: true }],
  [200, '/v1/videos/generations', { model: 'demo-video', prompt: 'A fox', duration: 2 }],
  [200, '/v1/music/generations', { model: 'demo-music', prompt: 'A waltz' }],
  [200, '/v1/audio/speech', { model: 'voice-tts-pro', input: 'Hi.', async: true }],
  [200, '/v1/audio/voices', { name: 'Ada', audio_url: LINK, async: true }],
  [202, '/v1/videos/clip-subtitles', { video_url: LINK, async: true }],
]
const TASKS = [...MADE.map(([, path]) => path), '/v1/videos/avatars'] as const
const READS = [
  '/v1/models',
  '/v1/models/demo-chat',
  '/v1beta/models?pageSize=2',
  '/v1beta/models/demo-chat',
  '/v1/key/balance',
  '/api/v1/usage',
  '/v1/dashboard/billing/subscription',
  '/v1/dashboard/billing/usage',
  '/v1/dashboard/billing/credit_grants',
  '/v1/logs?limit=5',
  '/v1/logs?format=csv',
  '/v1/logs/summary',
  '/v1/videos/avatars/presets',
  '/v1/videos/clip-templates',
  '/v1/videos/clip-templates/categories',
  '/api/v1/ext/wiki/kbs',
  '/api/v1/ext/wiki/search?q=a',
  '/api/v1/ext/wiki/tags',
  '/api/v1/ext/wiki/tags/x',
  '/api/v1/ext/wiki/pages?ids=x',
]
const BAD_QUERIES = [
  '/v1beta/models?pageSize=x',
  '/api/v1/usage?period=x',
  '/v1/dashboard/billing/usage?start_date=x',
  '/v1/logs?limit=x',
  '/v1/logs/summary?model=x',
  '/v1/images/generations?status=x',
  '/api/v1/ext/wiki/search',
  '/api/v1/ext/wiki/pages',
]
const NOWHERE: readonly (readonly [method: string, path: string])[] = [
  ['GET', '/v1/models/none'],
  ['GET', '/v1beta/models/none'],
  ['GET', '/v1/logs/1'],
  ['GET', '/v1/responses/resp_1'],
  ['GET', '/v1/responses/resp_1/input_items'],
  ['DELETE', '/v1/responses/resp_1'],
  ['POST', '/v1/responses/resp_1/cancel'],
  ['GET', '/v1/conversations/conv_1'],
  ['GET', '/v1/conversations/conv_1/items/item_1'],
  ['GET', '/api/v1/ext/wiki/pages/none'],
  ['GET', '/api/v1/ext/wiki/pages/none/source'],
]
const OPEN = [
  '/healthz',
  '/readyz',
  '/metrics',
  '/openapi.json',
  '/docs',
  '/',
  '/api/v1/models/public',
  '/v1/status',
]

t.test('answers', async (t) => {
  const service = await borrowService(t, demonstration())
  const { key } = await service.newKey('100000')
  await t.test('of chat, with what can be wrong about it', async (t) => {
    const ask = checking(t, service, key)
    for (const [path, body] of CHAT) {
      await ask(200, 'POST', path, { body })
      await ask(400, 'POST', path, { body: '{' })
      await ask(400, 'POST', path, { body: {} })
      await ask(400, 'POST', path, { body, headers: { 'content-encoding': 'gzip' } })
      await ask(415, 'POST', path, { body, headers: { 'content-encoding': 'compress' } })
      await checking(t, service, null)(401, 'POST', path, { body })
    }
    for (const model of ['canto-large', 'ballad-large'])
      await ask(200, 'POST', '/v1/chat/completions', { body: chat(model, { n: 1, logprobs: true }) })
    await ask(200, 'POST', '/v1/chat/completions', { body: chat('demo-chat', { stream: true }) })
    await ask(200, 'POST', '/v1/messages', { body: chat('ballad-large', { stream: true }) })
    await ask(400, 'POST', '/v1/chat/completions', { body: chat('none') })
    await ask(400, 'POST', '/v1beta/models/none:generateContent', { body: HELLO })
    await ask(400, 'POST', '/v1beta/models/%zz:generateContent', { body: HELLO })
    await ask(400, 'POST', '/v1beta/models/%zz:countTokens', { body: HELLO })
    await ask(503, 'POST', '/v1/messages', { body: chat('sonata-large') })
    await ask(500, 'POST', '/v1/chat/completions', { body: chat('demo-broken') })
    await ask(404, 'POST', '/v1/embeddings', { body: { model: 'none' } })
    await ask(400, 'POST', '/v1/embeddings', { body: '{}', headers: { 'content-encoding': 'gzip' } })
  })

  await t.test('of chat, to the examples of the reference', async (t) => {
    // No channel of the demonstration keeps conversations.
    const isServed = (path: string) => !path.startsWith('/v1/conversations')
    for (const { method, path, tag, example } of ENDPOINTS)
      if (tag === 'Chat' && example !== undefined && isServed(path))
        await checking(t, service, key)(200, method, path.replace('{model}', 'canto-large'), {
          body: example,
        })
  })

  await t.test('of an empty wallet, of limits, and of keys that may less', async (t) => {
    const [poor, limited, closed] = await Promise.all([
      service.newKey('0'),
      service.newKey('100', { requestsPerMinute: 1, concurrency: 1 }),
      service.newKey('100', { allowedModels: [] }),
    ])
    for (const [path, body] of CHAT)
      await checking(t, service, poor.key)(COUNTS.test(path) ? 200 : 402, 'POST', path, { body })
    const asLimited = checking(t, service, limited.key)
    await asLimited(200, 'POST', '/v1/chat/completions', { body: chat('demo-chat') })
    await asLimited(429, 'POST', '/v1/chat/completions', { body: chat('demo-chat') })
    await asLimited(429, 'GET', '/v1/models')
    for (const [path, body] of CHAT) await checking(t, service, closed.key)(400, 'POST', path, { body })
    for (const [, path, body] of MADE) await checking(t, service, closed.key)(403, 'POST', path, { body })
    await checking(t, service, closed.key)(403, 'GET', '/v1/videos/clip-templates')
  })

  await t.test('under an Idempotency-Key', async (t) => {
    const ask = checking(t, service, key)
    const intent = (body: object) => ({ body, headers: { 'idempotency-key': 'described' } })
    await ask(200, 'POST', '/v1/chat/completions', intent(chat('demo-chat')))
    await ask(200, 'POST', '/v1/chat/completions', intent(chat('demo-chat')))
    await ask(409, 'POST', '/v1/chat/completions', intent(chat('demo-chat', { n: 2 })))
    await ask(400, 'POST', '/v1/chat/completions', { body: {}, headers: { 'idempotency-key': 'a b' } })
  })

  await t.test('of media', async (t) => {
    const ask = checking(t, service, key)
    for (const [status, path, body] of MADE) {
      const { id } = await ask(status, 'POST', path, { body })
      await ask(200, 'GET', `${path}/${id}`)
      await ask(400, 'POST', path, { body: {} })
    }
    const { data } = await ask(200, 'POST', '/v1/images/generations', {
      body: { model: 'demo-image', prompt: 'A fox' },
    })
    const { pathname, search } = new URL((data as { url: string }[])[0]!.url)
    const file = pathname + search
    await ask(200, 'GET', file)
    await ask(206, 'GET', file, { headers: { range: 'bytes=0-9' } })
    await ask(416, 'GET', file, { headers: { range: 'bytes=999999999-' } })
    await ask(304, 'GET', file, { headers: { 'if-none-match': '*' } })
    await ask(403, 'GET', pathname)
    for (const path of TASKS) {
      if (path !== '/v1/videos/clip-subtitles') await ask(200, 'GET', path)
      await ask(404, 'GET', `${path}/none`)
    }
    await ask(200, 'POST', '/v1/audio/speech', { body: { model: 'voice-tts-pro', input: 'Hi.' } })
    const sound = { model: 'voice-tts-pro', input: 'Hi.', response_format: 'mp3' }
    await ask(200, 'POST', '/v1/audio/speech', { body: sound })
    await ask(200, 'POST', '/v1/transcripts/extract', { body: { url: LINK } })
    await ask(404, 'POST', '/v1/videos/generations', { body: { model: 'dh-none', duration: 1 } })
  })

  await t.test('of what is read', async (t) => {
    const ask = checking(t, service, key)
    for (const path of READS) await ask(200, 'GET', path)
    for (const path of BAD_QUERIES) await ask(400, 'GET', path)
    for (const [method, path] of NOWHERE) await ask(404, method, path)
    await ask(403, 'GET', '/v1/logs?scope=account')
    for (const path of OPEN) await checking(t, service, null)(path === '/' ? 302 : 200, 'GET', path)
  })

  await t.test('of MCP', async (t) => {
    const ask = checking(t, service, key)
    const list = { jsonrpc: '2.0', id: 1, method: 'tools/list' }
    await ask(200, 'POST', '/mcp', { body: list })
    await ask(202, 'POST', '/mcp', { body: { jsonrpc: '2.0', method: 'notifications/initialized' } })
    await ask(400, 'POST', '/mcp', { body: '{' })
    await ask(406, 'POST', '/mcp', { body: list, headers: { accept: 'text/html' } })
    await ask(415, 'POST', '/mcp', { body: list, headers: { 'content-type': 'text/plain' } })
  })

  await t.test('of the management API to who is not signed in', async (t) => {
    const ask = checking(t, service, key)
    const asVisitor = checking(t, service, null)
    await asVisitor(200, 'GET', `${MANAGEMENT_PATH}/sign-in`)
    await asVisitor(401, 'GET', `${MANAGEMENT_PATH}/session`)
    await ask(401, 'GET', `${MANAGEMENT_PATH}/sign-in`)
    await asVisitor(403, 'POST', `${MANAGEMENT_PATH}/sign-in/password`, { body: {} })
    const headers = { origin: service.baseUrl }
    const wrong = { email: 'ada@example.com', password: 'not the password' }
    await asVisitor(401, 'POST', `${MANAGEMENT_PATH}/sign-in/password`, { body: wrong, headers })
    const empty = { body: {}, headers }
    const refused = await asVisitor(400, 'POST', `${MANAGEMENT_PATH}/sign-in/password`, empty)
    t.match(refused, { error: { message: 'email: it is missing.' } })
  })
})
