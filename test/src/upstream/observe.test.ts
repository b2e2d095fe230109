import { lastValueFrom, map, take, toArray } from 'rxjs'
import t from 'tap'
import { UpstreamFailure } from '../../../src/upstream/failure.ts'
import { observeUpstream, type UpstreamEvent } from '../../../src/upstream/observe.ts'
import { getRequest } from './exchange-log.ts'
import { answer, clientFor, replyingServer, serverFor, until } from './fixture.ts'
import { readRequests } from './raw-server.ts'

const describe = (event: UpstreamEvent): string =>
  event.type === 'head'
    ? `${event.status} ${event.headers.get('content-length')}`
    : Buffer.from(event.bytes).toString('latin1')

t.test('cold: nothing is sent before it is subscribed; then head, data, complete', async (t) => {
  const client = clientFor(t)
  const server = await replyingServer(t, () => answer('hello'))
  const call = observeUpstream(client, getRequest(server.origin)).pipe(map(describe), toArray())
  t.equal(client.stats().inFlight, 0)
  t.same(await lastValueFrom(call), ['200 5', 'hello'])
  t.same(await lastValueFrom(call), ['200 5', 'hello'], 'each subscription is a call')
  t.match(client.stats(), { idle: 1, inFlight: 0, opened: 1, reused: 1 })
})

t.test('a failure is its error', async (t) => {
  const client = clientFor(t)
  const server = await replyingServer(t, () => 'HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n')
  await t.rejects(lastValueFrom(observeUpstream(client, getRequest(server.origin))), {
    name: 'UpstreamFailure',
    kind: 'malformed',
  })
  await lastValueFrom(observeUpstream(client, getRequest(server.origin))).catch((error: unknown) => {
    t.ok(error instanceof UpstreamFailure)
  })
})

t.test('row 41: unsubscribing before the first byte closes the upstream connection', async (t) => {
  const client = clientFor(t)
  const server = await serverFor(t, (socket) => socket.resume())
  const subscription = observeUpstream(client, getRequest(server.origin)).subscribe()
  await until(() => server.accepted() === 1)
  subscription.unsubscribe()
  t.match(client.stats(), { open: 0, inFlight: 0 })
  await until(() => server.sockets.size === 0)
})

t.test('told when it is let go of: whether anything went out', async (t) => {
  const client = clientFor(t)
  const silent = await serverFor(t, (socket) => socket.resume())
  const told: boolean[] = []
  const observe = () => observeUpstream(client, getRequest(silent.origin), (wasSent) => told.push(wasSent))
  observe().subscribe().unsubscribe()
  t.same(told, [false], 'nothing while the connection is made')
  const subscription = observe().subscribe()
  await until(() => silent.accepted() >= 1 && [...silent.sockets].some((socket) => socket.bytesRead > 0))
  subscription.unsubscribe()
  t.same(told, [false, true])
  const talking = await replyingServer(t, () => answer('hello'))
  const ended: boolean[] = []
  await lastValueFrom(observeUpstream(client, getRequest(talking.origin), (wasSent) => ended.push(wasSent)))
  t.same(ended, [true], 'at the end too, once')
})

t.test('an operator that has enough closes it too, from inside the event', async (t) => {
  const client = clientFor(t)
  const server = await serverFor(t, (socket) => {
    readRequests(socket, () => socket.write('HTTP/1.1 200 OK\r\n\r\nfirst'))
  })
  const events = observeUpstream(client, getRequest(server.origin)).pipe(map(describe), take(2), toArray())
  t.same(await lastValueFrom(events), ['200 undefined', 'first'])
  t.match(client.stats(), { open: 0, inFlight: 0 })
  await until(() => server.sockets.size === 0)
})

t.test('the head carries the flow', async (t) => {
  const client = clientFor(t)
  const server = await replyingServer(t, () => answer('hello'.repeat(100_000)))
  let bytes = 0
  let pauses = 0
  let flow: Extract<UpstreamEvent, { type: 'head' }>['flow']
  await new Promise<void>((resolve, reject) => {
    observeUpstream(client, getRequest(server.origin)).subscribe({
      next(event) {
        if (event.type === 'head') flow = event.flow
        else {
          bytes += event.bytes.length
          pauses++
          flow.pause()
          setImmediate(() => flow.resume())
        }
      },
      complete: resolve,
      error: reject,
    })
  })
  t.equal(bytes, 500_000)
  t.ok(pauses > 1)
})
