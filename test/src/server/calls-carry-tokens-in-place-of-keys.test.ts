/** Calls of channels with `auth`, over real connections: the upstream sees the token, and refuses it. */
import type { ServerResponse } from 'node:http'
import t, { type Test } from 'tap'
import { chatAdapterOf } from '../../../src/channels/chat/registry.ts'
import type { MediaRequest } from '../../../src/channels/media/adapter.ts'
import { jsonRequest } from '../../../src/channels/media/request.ts'
import { mask } from '../../../src/core/call-log/redact.ts'
import { upstreamTexts } from '../../../src/core/routing/upstream-texts.ts'
import { mediaCalls } from '../../../src/server/channels/media-calls.ts'
import { upstreamCalls } from '../../../src/server/channels/upstream-calls.ts'
import { UpstreamClient, type UpstreamFailure } from '../../../src/upstream/client.ts'
import { type Asked, FIVE_MINUTES_MS, HOUR_MS, json, type Opened, open, serve } from '../auth/support.ts'

const client = new UpstreamClient()
t.teardown(() => client.close())

interface Answered {
  readonly status?: number
  readonly body?: string
  readonly failure?: UpstreamFailure
}

function call({ channel, access }: Opened, deadlineMs = 10_000) {
  const send = upstreamCalls(client, () => access)
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
    json(response, 200, { access_token: `token-number-${number}`, expires_in: HOUR_MS / 1000 }),
): Promise<Servers> {
  const tokens = await serve(t, (_, response, number) => answerToken(response, number))
  const upstream = await serve(t, ({ headers }, response) => answer(headers.authorization ?? '', response))
  const opened = open(
    `type: azure-entra, tenant_id: t, client_id: c, client_secret: client-secret-1, authority: "${tokens.url}" }, base_url: "${upstream.url}/v1", headers: { x-extra: "1"`,
  )
  return { tokens, upstream, opened }
}

t.test('a call carries the token, and none where it has a key', async (t) => {
  const { opened, upstream } = await start(t, (_, response) => json(response, 200, { ok: true }))
  t.match(await call(opened).answered, { status: 200, body: '{"ok":true}' })
  t.match(upstream.asked[0], {
    path: '/v1/chat/completions',
    body: '{"model":"up"}',
    headers: { authorization: 'Bearer token-number-1', 'x-extra': '1', 'x-request-id': 'req_1' },
  })
  const { headers } = chatAdapterOf(opened.channel, 'chat-completions').request(opened.channel, {
    upstreamModel: 'up',
    stream: false,
    query: '',
  })
  t.notOk(headers.some(([name]) => name === 'authorization'))
})

t.test('calls whose token is refused are sent once more with one other token', async (t) => {
  const { opened, tokens, upstream } = await start(t, (authorization, response) =>
    authorization === 'Bearer token-number-1' ? json(response, 401, {}) : json(response, 200, { ok: true }),
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
    json(response, 401, { error: { message: 'no' } }),
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
    (_, response) => json(response, 200, {}),
    (response) => json(response, 401, { error: 'invalid_client' }),
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
    (_, response) => json(response, 200, {}),
    (response) => json(response, 200, { access_token: 'token\nnumber-1', expires_in: 3600 }),
  )
  for (const call1 of [call(opened), call(opened)])
    t.match((await call1.answered).failure, { kind: 'authorization', sent: false, message: /visible ASCII/ })
  t.match((await call(opened).answered).failure, { kind: 'authorization' }, 'it is not kept')
  t.same(upstream.asked, [])
  t.notMatch(opened.problems.join(), /number-1/)
})

t.test('a signature that no header can carry fails its call and nothing else', async (t) => {
  const { opened, upstream } = await start(t, (_, response) => json(response, 200, {}))
  const headers = [['authorization', 'two\nlines']] as const
  const access = { ...opened.access, authorize: async () => ({ headers, source: null, secret: '' }) }
  t.match((await call({ ...opened, access }).answered).failure, { kind: 'authorization', sent: false })
  t.same(upstream.asked, [])
})

t.test('a refusal by a server whose clock differs by five minutes names the clock', async (t) => {
  const { opened } = await start(t, (_, response) => {
    response.setHeader('date', new Date(Date.now() - FIVE_MINUTES_MS).toUTCString())
    json(response, 403, { message: 'Signature expired' })
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
    (_, response) => json(response, 200, {}),
    (response) => asked.resolve(response),
  )
  const { sent } = call(opened)
  const response = await asked.promise
  sent.abort()
  json(response, 200, { access_token: 'token-number-1', expires_in: 3600 })
  const other = await call(opened).answered
  t.equal(other.status, 200)
  t.equal(upstream.asked.length, 1)
  t.equal(sent.sent, false)
})

t.test('the deadline holds for the wait too', async (t) => {
  const { opened } = await start(
    t,
    (_, response) => json(response, 200, {}),
    () => {},
  )
  t.match((await call(opened, 20).answered).failure, { kind: 'deadline', sent: false })
})

t.test('an upstream that quotes the token does not show it', async (t) => {
  const { opened } = await start(t, (authorization, response) => json(response, 400, { authorization }))
  const { body = '' } = await call(opened).answered
  t.match(body, /token-number-1/)
  const { secrets } = upstreamTexts([{ channel: opened.channel, upstreamModel: 'up' }], 'm')
  t.notMatch(mask(body.replace('Bearer ', 'token-'), [], secrets), /token-number-1/)
  t.same(opened.tokens, ['token-number-1'])
})

t.test('jobs of media carry it too, once more after a refusal', async (t) => {
  const { opened, tokens, upstream } = await start(t, (authorization, response) =>
    json(response, authorization === 'Bearer token-number-1' ? 401 : 200, {}),
  )
  const storage = { open: () => Promise.reject(new Error('nothing is sent along')) }
  const calls = mediaCalls(client, storage, () => opened.access)
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
