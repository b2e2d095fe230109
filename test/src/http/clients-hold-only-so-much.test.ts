/** What clients may hold before they are admitted: bytes of bodies, connections, and requests without a good key. */
import { randomBytes } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import { from, Subject, switchMap, throwError } from 'rxjs'
import t from 'tap'
import { answer } from '../../../pipelines/calls/answer.ts'
import { authenticate } from '../../../pipelines/calls/authenticate.ts'
import { pipeline } from '../../../pipelines/calls/pipeline.ts'
import { UpstreamRefusal } from '../../../pipelines/calls/upstream-error.ts'
import { Failure } from '../../../schemas/failure.ts'
import { clientNetwork } from '../../../src/core/keys/address-prefix.ts'
import { generateApiKey } from '../../../src/core/keys/material.ts'
import { ClientLimits, type ClientRefusal, HeldBytes } from '../../../src/http/client-limits.ts'
import type { Handler, Reply } from '../../../src/http/handler.ts'
import { TrustedProxies } from '../../../src/http/trusted-proxies.ts'
import { clientLimits, clientOn, head, serve, statusOf, until, whole } from './support.ts'

const KIB = 1024
const MIB = 1024 * KIB
const BODY = Buffer.alloc(100 * KIB, 'a')
const isAnswered = (text: string) => /\r\n\r\n[\s\S]*\}/.test(text)
const post = (path: string, ...fields: string[]) =>
  head(`POST ${path}`, `content-length: ${BODY.length}`, ...fields)

t.test('bodies beyond the budget are refused, and an answer gives its bytes back', async (t) => {
  const clients = clientLimits({ maxBufferedBytes: 250 * KIB })
  const held: Subject<Reply>[] = []
  const { port } = await serve(
    t,
    {
      'POST /hold': () => {
        const replies = new Subject<Reply>()
        held.push(replies)
        return replies
      },
    },
    clients,
  )
  const send = () => {
    const client = clientOn(t, port)
    return client.send(post('/hold')).send(BODY)
  }
  const [first, second] = [send(), send()]
  await until(() => held.length === 2)
  t.equal(clients.bufferedBytes, 2 * BODY.length)
  const refused = await send().until(isAnswered)
  t.equal(statusOf(refused), 503)
  t.match(refused, /retry-after: 1[\s\S]*as many request bodies as its memory allows/i)
  held[0]!.next({ type: 'full', status: 200, headers: [], body: '{}' })
  held[0]!.complete()
  await first!.until(isAnswered)
  t.equal(clients.bufferedBytes, BODY.length)
  second!.socket.destroy()
  await until(() => clients.bufferedBytes === 0)
  const next = send()
  await until(() => held.length === 3)
  next.socket.destroy()
  await until(() => clients.bufferedBytes === 0)
})

t.test('a client that leaves while its body is decoded leaves nothing behind', async (t) => {
  const clients = clientLimits({ maxBufferedBytes: 64 * MIB })
  const { port, server } = await serve(t, { 'POST /': () => whole('{}') }, clients)
  const encoded = gzipSync(randomBytes(8 * MIB), { level: 0 })
  const send = () => {
    const client = clientOn(t, port)
    const fields = ['content-encoding: gzip', `content-length: ${encoded.length}`]
    return client.send(head('POST /', ...fields)).send(encoded)
  }
  const leaver = send()
  // More than the body as it came: the rest is decoded.
  await until(() => clients.bufferedBytes > encoded.length)
  leaver.socket.resetAndDestroy()
  await until(() => server.inFlight === 0)
  t.equal(clients.bufferedBytes, 0)
  // Decoded later than the rest of the first one would be.
  t.equal(statusOf(await send().until(isAnswered)), 200)
  t.equal(clients.bufferedBytes, 0)
})

t.test('an announced body takes memory as it comes', async (t) => {
  const clients = clientLimits({ maxBufferedBytes: 300 * KIB })
  const { port } = await serve(t, { 'POST /': ({ body }) => whole(`{"bytes":${body.length}}`) }, clients)
  const client = clientOn(t, port)
  client.send(head('POST /', `content-length: ${900 * KIB}`)).send(Buffer.alloc(10 * KIB))
  await until(() => clients.bufferedBytes > 0)
  t.equal(clients.bufferedBytes, 256 * KIB)
  client.send(Buffer.alloc(400 * KIB))
  t.equal(statusOf(await client.until(isAnswered)), 503)
  await until(() => clients.bufferedBytes === 0)
})

t.test('the fields of a form take memory until its answer begins', async (t) => {
  const clients = clientLimits({ maxBufferedBytes: 300 * KIB })
  const fieldLimits = { maxFields: 64, maxFieldBytes: 100 * KIB, maxFiles: 0 }
  const answers = new Subject<Reply>()
  const handler: Handler = ({ form }) =>
    from(form!.read(fieldLimits, async () => undefined)).pipe(switchMap(() => answers))
  const { port } = await serve(t, { 'POST /form': { handler, maxFormBytes: MIB } }, clients)
  const field = (bytes: number) =>
    `--cut\r\ncontent-disposition: form-data; name="text"\r\n\r\n${'a'.repeat(bytes)}\r\n`
  const send = (body: string, length = body.length) => {
    const client = clientOn(t, port)
    const type = 'content-type: multipart/form-data; boundary=cut'
    return client.send(head('POST /form', type, `content-length: ${length}`)).send(body)
  }
  const unfinished = send(field(KIB) + field(KIB), 10 * KIB)
  // The first field, and room for a longest one, whose end has not come.
  await until(() => clients.bufferedBytes === 100 * KIB + KIB + 'text'.length)
  unfinished.socket.destroy()
  await until(() => clients.bufferedBytes === 0)
  const refused = await send(`${field(90 * KIB).repeat(3)}--cut--\r\n`).until(isAnswered)
  t.equal(statusOf(refused), 503)
  t.match(refused, /as many request bodies as its memory allows/)
  await until(() => clients.bufferedBytes === 0)
  const taken = send(`${field(90 * KIB).repeat(2)}--cut--\r\n`)
  await until(() => answers.observed)
  t.equal(clients.bufferedBytes, 100 * KIB + 2 * (90 * KIB + 'text'.length))
  answers.next({ type: 'full', status: 200, headers: [], body: '{}' })
  answers.complete()
  t.equal(statusOf(await taken.until(isAnswered)), 200)
  t.equal(clients.bufferedBytes, 0)
})

t.test('one address has its share of the budget', async (t) => {
  const reasons: string[] = []
  const proxies = new TrustedProxies(['127.0.0.0/8'])
  const clients = new ClientLimits({
    maxBufferedBytes: () => 1000,
    perAddress: () => ({ connections: null, unauthenticatedPerMinute: null, bufferedBytes: 100 }),
    proxies: () => proxies,
    onRefused: (reason: ClientRefusal, address) => reasons.push(`${reason} ${address}`),
  })
  const heldBy = (forwardedFor: string) => new HeldBytes(clients, { peer: () => '127.0.0.1', forwardedFor })
  const one = heldBy('2001:db8:1:2::1')
  t.equal(one.take(60), null)
  t.equal(one.take(30), null)
  t.match(heldBy('2001:db8:1:2:ffff::9').take(20), {
    code: 'rate_limit_exceeded',
    message: /from this address exceed/,
  })
  t.equal(heldBy('2001:db8:1:3::1').take(100), null)
  one.release()
  one.release()
  t.equal(clients.bufferedBytes, 100)
  t.equal(heldBy('2001:db8:1:2::7').take(100), null)
  t.same(reasons, ['address_buffer 2001:db8:1:2::/64'])
})

t.test('connections that one address opens beyond its limit are closed', async (t) => {
  const { port } = await serve(t, { 'GET /': () => whole('{}') }, clientLimits({ connections: 2 }))
  const open = () => {
    const client = clientOn(t, port)
    return client.send(head('GET /'))
  }
  for (const client of [open(), open()]) t.equal(statusOf(await client.until(isAnswered)), 200)
  const third = open()
  await third.gone
  t.equal(third.text, '')
})

t.test('an address without a good key is refused, and a known key still works from it', async (t) => {
  let now = 0
  let lookUps = 0
  const good = generateApiKey()
  const known = {
    key: { revokedAt: null, enabled: true, expiresAt: null, kind: 'console' },
    account: { enabled: true },
    addresses: null,
    secret: null,
  }
  const credentials = {
    peek: (key: string) => (key === good ? known : undefined),
    load: async () => {
      lookUps++
      return null
    },
  } as never
  const proxies = new TrustedProxies([])
  const clients = new ClientLimits({
    maxBufferedBytes: () => Number.POSITIVE_INFINITY,
    perAddress: () => ({ connections: null, unauthenticatedPerMinute: 3, bufferedBytes: null }),
    proxies: () => proxies,
    now: () => now,
  })
  const { port } = await serve(
    t,
    {
      'GET /keyed': pipeline(
        authenticate({ credentials, onSecretUsed: () => undefined }),
        answer(() => whole('{}')),
      ),
      'GET /upstream': Object.assign(() => throwError(() => new UpstreamRefusal(401, 'Bad key.', [])), {
        admit: () => null,
      }),
    },
    clients,
  )
  const ask = async (path: string, key: string) => {
    const client = clientOn(t, port)
    const text = await client.send(head(`GET ${path}`, `authorization: Bearer ${key}`)).until(isAnswered)
    return statusOf(text)
  }
  const keys = Array.from({ length: 5 }, generateApiKey)
  const bad = (number: number) => keys[number - 1]!
  for (let call = 0; call < 5; call++)
    t.equal(await ask('/upstream', good), 401, "an upstream's 401 says nothing of the client")
  t.same(
    [await ask('/keyed', bad(1)), await ask('/keyed', bad(2)), await ask('/none', bad(3))],
    [401, 401, 404],
  )
  t.equal(lookUps, 2)
  t.equal(await ask('/keyed', bad(4)), 429)
  t.equal(lookUps, 2, 'no key is looked up')
  t.equal(await ask('/keyed', good), 200)
  now = 60_000
  t.equal(await ask('/keyed', bad(5)), 401)
})

t.test('what proves itself without a key is neither counted nor refused for the others', async (t) => {
  const clients = clientLimits({ unauthenticatedPerMinute: 3 })
  const session: Handler = ({ header }) =>
    header('cookie') === '' ? throwError(() => new Failure('not_signed_in', 'Sign in first.')) : whole('{}')
  const { port } = await serve(
    t,
    {
      'GET /probe': { handler: () => whole('{}'), addressLimit: 'never' },
      'GET /session': { handler: session, addressLimit: 'refused' },
      'GET /open': () => whole('{}'),
    },
    clients,
  )
  const ask = async (path: string, ...fields: string[]) =>
    statusOf(
      await clientOn(t, port)
        .send(head(`GET ${path}`, ...fields))
        .until(isAnswered),
    )
  for (let time = 0; time < 5; time++) {
    t.equal(await ask('/probe'), 200)
    t.equal(await ask('/session', 'cookie: good'), 200)
  }
  t.same([await ask('/session'), await ask('/none'), await ask('/open')], [401, 404, 429], 'these count')
  t.equal(await ask('/session', 'cookie: good'), 429)
  t.equal(await ask('/probe'), 200, 'a probe is answered whatever others of its address do')
})

t.test('a window ends also where the clock is set back', async (t) => {
  let now = 1_000_000
  const proxies = new TrustedProxies([])
  const clients = new ClientLimits({
    maxBufferedBytes: () => Number.POSITIVE_INFINITY,
    perAddress: () => ({ connections: 1, unauthenticatedPerMinute: 1, bufferedBytes: null }),
    proxies: () => proxies,
    now: () => now,
  })
  const source = { peer: () => '203.0.113.7', forwardedFor: '' }
  const mayConnect = () => clients.mayConnect(source.peer)
  t.same([mayConnect(), mayConnect()], [true, false])
  clients.unauthenticated(source)
  t.ok(clients.isBlocked(source))
  now = 1_000
  t.notOk(clients.isBlocked(source))
  t.same([mayConnect(), mayConnect()], [true, false])
})

t.test('only trusted proxies speak for another address', async (t) => {
  const proxies = new TrustedProxies(['10.0.0.0/8', '2001:db8::/32', '192.0.2.1'])
  const clientOf = (peer: string, forwarded: string) => proxies.clientOf(peer, forwarded)
  t.equal(clientOf('203.0.113.7', '198.51.100.1'), '203.0.113.7', 'a stranger')
  t.equal(clientOf('10.1.2.3', ''), '10.1.2.3')
  t.equal(clientOf('10.1.2.3', '198.51.100.1'), '198.51.100.1')
  t.equal(
    clientOf('10.1.2.3', '8.8.8.8, 198.51.100.1, 192.0.2.1'),
    '198.51.100.1',
    'what stands before is not believed',
  )
  t.equal(clientOf('0000:0000:0000:0000:0000:ffff:0a01:0203', '198.51.100.1:4711'), '198.51.100.1')
  t.equal(clientOf('2001:0db8:0000:0000:0000:0000:0000:0001', '[2001:abcd::5]:443'), '2001:abcd::5')
  t.equal(clientOf('10.1.2.3', 'unknown'), '10.1.2.3')
  t.equal(clientOf('10.1.2.3', '198.51.100.1, junk'), '10.1.2.3')
  t.equal(clientNetwork('::ffff:203.0.113.7'), '203.0.113.7')
  t.equal(clientNetwork('2001:db8:1:2:3:4:5:6'), '2001:db8:1:2::/64')
})

t.test('a head that comes byte by byte is cut off', async (t) => {
  const { port } = await serve(t, { 'GET /': () => whole('{}') })
  const client = clientOn(t, port)
  client.send('GET / HTTP/1.1\r\nhost: test\r\nx-slow: ')
  let sent = 0
  const dripping = setInterval(() => client.send(String(sent++ % 10)), 1_000)
  await client.gone
  clearInterval(dripping)
  t.equal(client.text, '')
})
