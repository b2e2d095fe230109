import { lastValueFrom, map, take, toArray } from 'rxjs'
import t from 'tap'
import { type Origin, type UpstreamClient, UpstreamFailure } from '../../../src/upstream/client.ts'
import { observeUpstream, type UpstreamEvent } from '../../../src/upstream/observe.ts'
import { answer, clientFor, replyingServer, serverFor, until } from './fixture.ts'
import { readRequests } from './raw-server.ts'
import { getRequest } from './recorded-calls.ts'

const observed = (client: UpstreamClient, origin: Origin) =>
  observeUpstream((handler) => client.send(getRequest(origin), handler))

const describe = (event: UpstreamEvent): string =>
  event.type === 'head'
    ? `${event.status} ${event.headers.get('content-length')}`
    : Buffer.from(event.bytes).toString('latin1')

t.test('cold: nothing is sent before it is subscribed; then head, data, complete', async (t) => {
  const client = clientFor(t)
  const server = await replyingServer(t, () => answer('hello'))
  const call = observed(client, server.origin).pipe(map(describe), toArray())
  t.equal(client.stats().inFlight, 0)
  t.same(await lastValueFrom(call), ['200 5', 'hello'])
  t.same(await lastValueFrom(call), ['200 5', 'hello'], 'each subscription is a call')
  t.match(client.stats(), { idle: 1, inFlight: 0, opened: 1, reused: 1 })
})

t.test('a failure is its error', async (t) => {
  const client = clientFor(t)
  const server = await replyingServer(t, () => 'HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n')
  await t.rejects(lastValueFrom(observed(client, server.origin)), {
    name: 'UpstreamFailure',
    kind: 'malformed',
  })
  await lastValueFrom(observed(client, server.origin)).catch((error: unknown) => {
    t.ok(error instanceof UpstreamFailure)
  })
})

t.test('unsubscribing before the first byte closes the upstream connection', async (t) => {
  const client = clientFor(t)
  const server = await serverFor(t, (socket) => socket.resume())
  const subscription = observed(client, server.origin).subscribe()
  await until(() => server.accepted() === 1)
  subscription.unsubscribe()
  t.match(client.stats(), { open: 0, inFlight: 0 })
  await until(() => server.sockets.size === 0)
})

t.test('an operator that has enough closes it too, from inside the event', async (t) => {
  const client = clientFor(t)
  const server = await serverFor(t, (socket) => {
    readRequests(socket, () => socket.write('HTTP/1.1 200 OK\r\n\r\nfirst'))
  })
  const events = observed(client, server.origin).pipe(map(describe), take(2), toArray())
  t.same(await lastValueFrom(events), ['200 undefined', 'first'])
  t.match(client.stats(), { open: 0, inFlight: 0 })
  await until(() => server.sockets.size === 0)
})
