import t from 'tap'
import { answer, clientFor, replyingServer, serverFor, until } from './fixture.ts'
import { readRequests } from './raw-server.ts'
import { getRequest, LoggingHandler, run } from './recorded-calls.ts'

t.test('a connection closed by the server while unused is dropped; the next call opens one', async (t) => {
  const client = clientFor(t)
  const server = await replyingServer(t, () => answer('ok'))
  await run(client, getRequest(server.origin))
  for (const socket of server.sockets) socket.end()
  await until(() => client.stats().open === 0)
  t.match(await run(client, getRequest(server.origin)), { body: 'ok', failure: null })
  t.equal(server.accepted(), 2)
})

t.test('one reset by the server while unused is dropped too', async (t) => {
  const client = clientFor(t)
  const server = await replyingServer(t, () => answer('ok'))
  await run(client, getRequest(server.origin))
  for (const socket of server.sockets) socket.resetAndDestroy()
  await until(() => client.stats().open === 0)
  t.match(await run(client, getRequest(server.origin)), { body: 'ok', failure: null })
})

t.test('found dead by the very first write: another connection takes the call, nobody notices', async (t) => {
  const client = clientFor(t)
  const server = await replyingServer(t, () => answer('ok'))
  await run(client, getRequest(server.origin))
  const { promise, resolve } = Promise.withResolvers<void>()
  for (const socket of server.sockets) {
    socket.once('close', resolve)
    socket.resetAndDestroy()
  }
  // In the same turn of the event loop: the reset lies in the kernel, this process has not seen it.
  const handler = new LoggingHandler()
  client.send(getRequest(server.origin), handler)
  await promise
  t.match(await handler.finished, { body: 'ok', failure: null })
  t.equal(server.accepted(), 2)
})

t.test('closed by the server just as a call is sent: reported as sent and reused', async (t) => {
  const client = clientFor(t)
  let requests = 0
  const server = await serverFor(t, (socket) => {
    readRequests(socket, () => {
      if (requests++ === 0) socket.write(answer('ok'))
      else socket.end()
    })
  })
  await run(client, getRequest(server.origin))
  const { failure } = await run(client, getRequest(server.origin))
  t.match(failure, { kind: 'closed', sent: true, headReceived: false, reused: true })
  t.equal(requests, 2, 'not sent again by the client')
})

t.test('closed by the server without an answer on a fresh connection: not reused', async (t) => {
  const client = clientFor(t)
  const server = await serverFor(t, (socket) => readRequests(socket, () => socket.end()))
  const { failure } = await run(client, getRequest(server.origin))
  t.match(failure, { kind: 'closed', sent: true, headReceived: false, reused: false })
})

t.test('a call that wants its own connection takes none that was kept, and leaves it behind', async (t) => {
  const client = clientFor(t)
  const server = await replyingServer(t, () => answer('ok'))
  await run(client, getRequest(server.origin))
  t.match(await run(client, { ...getRequest(server.origin), onFreshConnection: true }), { body: 'ok' })
  t.equal(server.accepted(), 2)
  await run(client, getRequest(server.origin))
  t.equal(server.accepted(), 2)
  t.equal(client.stats().idle, 2)
})
