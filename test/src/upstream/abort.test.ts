import t from 'tap'
import { answer, clientFor, replyingServer, serverFor, until } from './fixture.ts'
import { readRequests } from './raw-server.ts'
import { getRequest, LoggingHandler, postRequest, run } from './recorded-calls.ts'

t.test('abort before the first byte of the answer: the upstream sees the close', async (t) => {
  const client = clientFor(t)
  const server = await serverFor(t, (socket) => socket.resume())
  const handler = new LoggingHandler()
  const call = client.send(getRequest(server.origin), handler)
  await until(() => server.accepted() === 1)
  call.abort()
  t.match(client.stats(), { open: 0, inFlight: 0 })
  await until(() => server.sockets.size === 0)
  t.match(handler.log, { status: 0, ended: false, failure: null }, 'no handler is called')
})

t.test('a call that is over still tells whether anything of it went out', async (t) => {
  const client = clientFor(t)
  const server = await serverFor(t, (socket) => socket.resume())
  const early = client.send(getRequest(server.origin), new LoggingHandler())
  early.abort()
  t.equal(early.sent, false, 'nothing while the connection is made')
  const late = client.send(getRequest(server.origin), new LoggingHandler())
  await until(() => [...server.sockets].some((socket) => socket.bytesRead > 0))
  late.abort()
  t.equal(late.sent, true)
  const talking = await replyingServer(t, () => answer('hello'))
  const handler = new LoggingHandler()
  const ended = client.send(getRequest(talking.origin), handler)
  t.match(await handler.finished, { ended: true })
  t.equal(ended.sent, true)
})

t.test('abort in the middle of the body, from inside a handler', async (t) => {
  const client = clientFor(t)
  const server = await serverFor(t, (socket) => {
    readRequests(socket, () => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n')
      const drip = setInterval(() => socket.write('a'), 1)
      socket.on('close', () => clearInterval(drip))
    })
  })
  let data = 0
  const handler = new LoggingHandler()
  const call = client.send(getRequest(server.origin), handler)
  handler.onData = () => {
    if (++data === 3) call.abort()
  }
  await until(() => server.accepted() === 1 && server.sockets.size === 0)
  t.equal(data, 3)
  t.match(handler.log, { status: 200, ended: false, failure: null })
  t.match(client.stats(), { open: 0, inFlight: 0 })
})

t.test('abort in onHead: data in the same read is not delivered', async (t) => {
  const client = clientFor(t)
  const server = await replyingServer(t, () => answer('hello'))
  const handler = new LoggingHandler()
  const call = client.send(getRequest(server.origin), handler)
  handler.onHead = () => call.abort()
  await until(() => server.accepted() === 1 && server.sockets.size === 0)
  t.match(handler.log, { body: '', ended: false, failure: null })
})

t.test('abort while connecting, in the turn of the call', async (t) => {
  const client = clientFor(t)
  const server = await replyingServer(t, () => answer('ok'))
  const handler = new LoggingHandler()
  client.send(getRequest(server.origin), handler).abort()
  t.match(client.stats(), { open: 0, inFlight: 0 })
  t.match(await run(client, getRequest(server.origin)), { body: 'ok' })
  t.match(handler.log, { status: 0, ended: false, failure: null })
})

t.test('abort while a large request is on its way', async (t) => {
  const client = clientFor(t)
  const server = await serverFor(t, (socket) => socket.pause())
  const call = client.send(postRequest(server.origin, Buffer.alloc(32 * 1024 * 1024)), new LoggingHandler())
  await until(() => server.accepted() === 1)
  call.abort()
  t.match(client.stats(), { open: 0, inFlight: 0 })
})

t.test('abort after the end leaves the next user of the connection alone', async (t) => {
  const client = clientFor(t)
  const server = await replyingServer(t, () => answer('ok'))
  const first = new LoggingHandler()
  const call = client.send(getRequest(server.origin), first)
  await first.finished
  const second = run(client, getRequest(server.origin))
  call.abort()
  call.pause()
  call.resume()
  t.match(await second, { body: 'ok', ended: true })
  t.equal(server.accepted(), 1)
})

t.test('1,000 aborts at random moments: nothing is counted for ever', async (t) => {
  const client = clientFor(t)
  const server = await serverFor(t, (socket) => {
    readRequests(socket, () => {
      socket.write('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n')
      setTimeout(() => socket.write('0\r\n\r\n'), 5)
    })
  })
  let over = 0
  for (let i = 0; i < 1_000; i++) {
    const handler = new LoggingHandler()
    const call = client.send(getRequest(server.origin), handler)
    void handler.finished.then(() => over++)
    setTimeout(
      () => {
        if (!handler.log.ended && handler.log.failure === null) over++
        call.abort()
      },
      (i * 7) % 16,
    )
    if (i % 100 === 99) await until(() => over === i + 1)
  }
  t.equal(client.stats().inFlight, 0)
  t.match(await run(client, getRequest(server.origin)), { body: 'hello', ended: true })
})
