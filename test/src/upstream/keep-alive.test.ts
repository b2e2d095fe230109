import t from 'tap'
import type { UpstreamHandler } from '../../../src/upstream/client.ts'
import { READ_BUFFER_BYTES } from '../../../src/upstream/limits.ts'
import { answer, clientFor, replyingServer, serverFor, until } from './fixture.ts'
import { readRequests } from './raw-server.ts'
import { getRequest, LoggingHandler, postRequest, run } from './recorded-calls.ts'

t.test('calls one after another share a connection', async (t) => {
  const client = clientFor(t)
  const server = await replyingServer(t, (request) => answer(request.split(' ')[1]!))
  for (let i = 0; i < 20; i++) {
    const log = await run(client, getRequest(server.origin, `/call/${i}`))
    t.match(log, { status: 200, body: `/call/${i}`, ended: true })
  }
  t.equal(server.accepted(), 1)
  t.match(client.stats(), { open: 1, idle: 1, inFlight: 0, opened: 1, reused: 19 })
})

t.test('a call from inside onEnd gets the connection just freed', async (t) => {
  const client = clientFor(t)
  const server = await replyingServer(t, (request) => answer(request.split(' ')[1]!))
  const last = new LoggingHandler()
  const chain = (left: number): UpstreamHandler => {
    const handler = new LoggingHandler()
    handler.onEnd = () => {
      client.send(getRequest(server.origin, `/${left}`), left === 0 ? last : chain(left - 1))
    }
    return handler
  }
  client.send(getRequest(server.origin, '/first'), chain(10))
  t.match(await last.finished, { body: '/0', ended: true })
  t.equal(server.accepted(), 1)
})

t.test('500 tagged calls at once: no foreign byte', async (t) => {
  const client = clientFor(t)
  const server = await replyingServer(t, (request) => {
    const tag = request.split(' ')[1]!
    const chunk = `${tag.length.toString(16)}\r\n${tag}\r\n`
    return `HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n${chunk.repeat(20)}0\r\n\r\n`
  })
  const calls = Array.from({ length: 500 }, async (_, i) => {
    const log = await run(client, getRequest(server.origin, `/tag-${i}`))
    return log.body === `/tag-${i}`.repeat(20)
  })
  t.same(new Set(await Promise.all(calls)), new Set([true]))
  t.equal(client.stats().inFlight, 0)
})

t.test('the connection used last is used next', async (t) => {
  const client = clientFor(t)
  const sockets: number[] = []
  let opened = 0
  const server = await serverFor(t, (socket) => {
    const number = opened++
    readRequests(socket, () => {
      sockets.push(number)
      socket.write(answer('ok'))
    })
  })
  await Promise.all([0, 1, 2].map(() => run(client, getRequest(server.origin))))
  await run(client, getRequest(server.origin))
  for (let i = 0; i < 5; i++) await run(client, getRequest(server.origin))
  t.equal(new Set(sockets.slice(3)).size, 1)
  t.equal(client.stats().idle, 3)
})

t.test('idle connections are bounded in number', async (t) => {
  const client = clientFor(t, { maxIdlePerOrigin: 2 })
  const server = await replyingServer(t, () => answer('ok'))
  await Promise.all(Array.from({ length: 10 }, () => run(client, getRequest(server.origin))))
  t.match(client.stats(), { open: 2, idle: 2 })
  await until(() => server.sockets.size === 2)
})

t.test('idle connections are bounded in time', async (t) => {
  const client = clientFor(t, { idleConnectionMs: 30 })
  const server = await replyingServer(t, () => answer('ok'))
  await run(client, getRequest(server.origin))
  t.equal(client.stats().idle, 1)
  await until(() => client.stats().open === 0)
  await until(() => server.sockets.size === 0)
})

t.test("a server's own shorter limit wins", async (t) => {
  const client = clientFor(t)
  const server = await replyingServer(t, () => answer('ok', 'keep-alive: timeout=1'))
  await run(client, getRequest(server.origin))
  t.equal(client.stats().open, 0, 'one second less the margin is nothing')
})

t.test('open connections are bounded, unused ones of other origins give way', async (t) => {
  const client = clientFor(t, { maxConnections: 2 })
  const held = await serverFor(t, (socket) => socket.resume())
  const quick = await replyingServer(t, () => answer('ok'))
  await run(client, getRequest(quick.origin))
  const first = client.send(getRequest(held.origin), new LoggingHandler())
  const second = client.send(getRequest(held.origin), new LoggingHandler())
  t.match(client.stats(), { open: 2, idle: 0, inFlight: 2 })
  const { failure } = await run(client, getRequest(quick.origin))
  t.match(failure, { kind: 'exhausted', sent: false, headReceived: false, reused: false })
  first.abort()
  second.abort()
  t.match(await run(client, getRequest(quick.origin)), { ended: true })
})

const NOT_KEPT: Record<string, string> = {
  'Connection: close': answer('ok', 'connection: close'),
  'Connection: close in a list': answer('ok', 'connection: x, Close'),
  'HTTP/1.0': 'HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok',
  'bytes after the end': `${answer('ok')}x`,
  'a second response after the end': answer('ok') + answer('smuggled'),
}

for (const [name, text] of Object.entries(NOT_KEPT)) {
  t.test(`not kept: ${name}`, async (t) => {
    const client = clientFor(t)
    const server = await replyingServer(t, (_request, number) => (number === 0 ? text : answer('own')))
    t.match(await run(client, getRequest(server.origin)), { body: 'ok', ended: true })
    t.equal(client.stats().open, 0)
    t.match(await run(client, getRequest(server.origin)), { body: 'own', ended: true })
    t.equal(server.accepted(), 2)
  })
}

t.test('a response that exactly fills the read buffer is not followed by another call', async (t) => {
  const client = clientFor(t)
  const bytes = READ_BUFFER_BYTES
  const frame = answer('').length + `${bytes}`.length - 1
  const server = await replyingServer(t, (_request, number) =>
    answer(number === 0 ? 'a'.repeat(bytes - frame) : 'own'),
  )
  const log = await run(client, getRequest(server.origin))
  t.equal(log.body.length, bytes - frame)
  if (log.pieces.length === 1) t.equal(client.stats().idle, 0)
  t.match(await run(client, getRequest(server.origin)), { body: 'own' })
})

t.test('unasked bytes on an unused connection close it', async (t) => {
  const client = clientFor(t)
  const server = await replyingServer(t, () => answer('ok'))
  await run(client, getRequest(server.origin))
  t.equal(client.stats().idle, 1)
  for (const socket of server.sockets) socket.write(answer('smuggled'))
  await until(() => client.stats().open === 0)
  t.match(await run(client, getRequest(server.origin)), { body: 'ok' })
})

t.test('an early answer ends the call, but its connection is not used again', async (t) => {
  const client = clientFor(t)
  const server = await serverFor(t, (socket) => {
    socket.once('readable', () => socket.write('HTTP/1.1 413 Too Large\r\ncontent-length: 3\r\n\r\nbig'))
  })
  const body = Buffer.alloc(32 * 1024 * 1024)
  const log = await run(client, postRequest(server.origin, body))
  t.match(log, { status: 413, body: 'big', ended: true })
  t.equal(client.stats().open, 0)
})
