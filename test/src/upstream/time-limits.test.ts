import { createServer } from 'node:net'
import t from 'tap'
import { answer, clientFor, replyingServer, serverFor, until } from './fixture.ts'
import { listen, readRequests } from './raw-server.ts'
import { getRequest, LoggingHandler, postRequest, run } from './recorded-calls.ts'

const SHORT_MS = 40

t.test('no head in time', async (t) => {
  const client = clientFor(t)
  const server = await serverFor(t, (socket) => socket.resume())
  const { failure } = await run(client, getRequest(server.origin, '/', { headTimeoutMs: SHORT_MS }))
  t.match(failure, { kind: 'head_timeout', sent: true, headReceived: false })
  await until(() => server.sockets.size === 0)
})

t.test('half a head, byte by byte, does not hold the limit off', async (t) => {
  const client = clientFor(t)
  const server = await serverFor(t, (socket) => {
    readRequests(socket, () => {
      socket.write('HTTP/1.1 200 OK\r\nx: ')
      const drip = setInterval(() => socket.write('a'), 5)
      socket.on('close', () => clearInterval(drip))
    })
  })
  const { failure } = await run(client, getRequest(server.origin, '/', { headTimeoutMs: SHORT_MS }))
  t.match(failure, { kind: 'head_timeout', sent: true, headReceived: false })
})

t.test('the body stops coming', async (t) => {
  const client = clientFor(t)
  const server = await replyingServer(t, () => 'HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhello')
  const log = await run(client, getRequest(server.origin, '/', { idleTimeoutMs: SHORT_MS }))
  t.match(log, { status: 200, body: 'hello', ended: false })
  t.match(log.failure, { kind: 'idle_timeout', sent: true, headReceived: true })
})

t.test('a body that keeps coming is not idle, but ends at the deadline', async (t) => {
  const client = clientFor(t)
  const server = await serverFor(t, (socket) => {
    readRequests(socket, () => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n')
      const drip = setInterval(() => socket.write('a'), 10)
      socket.on('close', () => clearInterval(drip))
    })
  })
  const log = await run(client, getRequest(server.origin, '/', { idleTimeoutMs: 400, deadlineMs: 1_000 }))
  t.match(log.failure, { kind: 'deadline', headReceived: true })
  t.ok(log.body.length > 1)
  await until(() => server.sockets.size === 0)
})

t.test('while paused nothing is idle', async (t) => {
  const client = clientFor(t)
  const server = await replyingServer(t, () => 'HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhello')
  const handler = new LoggingHandler()
  const call = client.send(getRequest(server.origin, '/', { idleTimeoutMs: 1, deadlineMs: 600 }), handler)
  handler.onData = () => call.pause()
  t.match((await handler.finished).failure, { kind: 'deadline' })
})

t.test('a server that never takes the request', async (t) => {
  const client = clientFor(t)
  const server = await serverFor(t, (socket) => socket.pause())
  const request = postRequest(server.origin, Buffer.alloc(32 * 1024 * 1024), { headTimeoutMs: SHORT_MS })
  t.match((await run(client, request)).failure, { kind: 'head_timeout', sent: true })
})

t.test('a handshake that never comes: the connect limit', async (t) => {
  const client = clientFor(t, { connectTimeoutMs: SHORT_MS })
  const server = await listen(
    createServer((socket) => socket.resume()),
    'https',
  )
  t.teardown(() => server.close())
  const { failure } = await run(client, getRequest(server.origin))
  t.match(failure, { kind: 'connect_timeout', sent: false, headReceived: false, reused: false })
  await until(() => server.sockets.size === 0)
})

t.test('the deadline counts while connecting', async (t) => {
  const client = clientFor(t)
  const server = await listen(
    createServer((socket) => socket.resume()),
    'https',
  )
  t.teardown(() => server.close())
  const { failure } = await run(client, getRequest(server.origin, '/', { deadlineMs: SHORT_MS }))
  t.match(failure, { kind: 'deadline', sent: false })
})

t.test('a timed-out call leaves its origin usable', async (t) => {
  const client = clientFor(t)
  const server = await serverFor(t, (socket) => {
    readRequests(socket, (request) => {
      if (request.startsWith('GET /slow')) socket.write('HTTP/1.1 200 OK\r\n')
      else socket.write(answer('ok'))
    })
  })
  t.match((await run(client, getRequest(server.origin, '/slow', { headTimeoutMs: SHORT_MS }))).failure, {
    kind: 'head_timeout',
  })
  t.match(await run(client, getRequest(server.origin, '/')), { body: 'ok' })
})
