import { Readable } from 'node:stream'
import t from 'tap'
import { MediaCallFailure } from '../../../pipelines/tasks/ports.ts'
import type { FormPart, MediaRequest } from '../../../src/channels/media/adapter.ts'
import { mediaCalls } from '../../../src/server/channels/media-calls.ts'
import { UpstreamClient } from '../../../src/upstream/client.ts'
import { authorizerOf } from '../../support/channel-authorizer.ts'
import { bytesOf, serveHttp } from '../../support/http-server.ts'

const client = new UpstreamClient()
t.teardown(() => client.close())
const LARGE = Buffer.alloc(3_000_000, 'film')
const options = { timeoutMs: 5_000, maxAnswerBytes: 1_000_000 }
const calls = mediaCalls(
  client,
  {
    open: async (key) =>
      Readable.from([LARGE.subarray(0, 1_000_000), LARGE.subarray(key === 'short' ? 1_000_001 : 1_000_000)]),
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
    seen.push([method, path, headers.authorization, headers['content-type'], String(await bytesOf(incoming))])
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
  t.ok(text.includes('name="video"; filename="a %22film%22.mp4"\r\ncontent-type: video/mp4\r\n\r\nfilmfilm'))
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
    const url = await serveHttp(t, (incoming, response) => {
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
    t.match(await failureOf(calls.send(to('/silent'), { ...options, timeoutMs: 300 })), {
      isSent: true,
      isTimeout: true,
    })
    t.match(await failureOf(calls.send(to('/large'), options)), { isSent: true, isTimeout: false })
    const aborting = new AbortController()
    const aborted = failureOf(calls.send(to('/silent'), { ...options, signal: aborting.signal }))
    setTimeout(() => aborting.abort(), 50)
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

t.test('what is posted goes out on a connection of its own: a kept one may have ended unseen', async (t) => {
  const seen = new Set<object>()
  const url = await serveHttp(t, (incoming, response) => {
    const isKept = seen.has(incoming.socket)
    seen.add(incoming.socket)
    if (isKept && incoming.method === 'POST') incoming.socket.destroy()
    else response.end('{}')
  })
  for (let time = 0; time < 3; time++) t.match(await calls.send(request(url, json), options), { status: 200 })
  t.equal(seen.size, 3)
  t.match(await calls.send(request(url, null, 'GET'), options), { status: 200 })
  t.equal(seen.size, 3, 'a question takes a kept one')
})
