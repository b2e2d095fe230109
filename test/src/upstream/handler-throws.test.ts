import t from 'tap'
import type { UpstreamClient, UpstreamHandler } from '../../../src/upstream/client.ts'
import { answer, clientFor, replyingServer } from './fixture.ts'
import { getRequest, LoggingHandler, run } from './recorded-calls.ts'

const thrown = new Error('handler')

async function send(
  client: UpstreamClient,
  origin: Parameters<typeof getRequest>[0],
  name: keyof UpstreamHandler,
) {
  const handler = new LoggingHandler()
  const throwing = Promise.withResolvers<void>()
  handler[name] = () => {
    throwing.resolve()
    throw thrown
  }
  client.send(getRequest(origin), handler)
  await throwing.promise
  return handler
}

for (const name of ['onHead', 'onData'] as const) {
  t.test(`${name} throws: its call fails, the client goes on`, async (t) => {
    const noted: unknown[] = []
    const client = clientFor(t, { onHandlerError: (error) => noted.push(error) })
    const server = await replyingServer(t, () => answer('ok'))
    const handler = await send(client, server.origin, name)
    const log = await handler.finished
    t.match(log.failure, { kind: 'closed', headReceived: true, cause: thrown })
    t.equal(log.ended, false)
    t.same(noted, [thrown])
    t.match(client.stats(), { open: 0, inFlight: 0, handlerErrors: 1 })
    t.match(await run(client, getRequest(server.origin)), { body: 'ok', ended: true })
  })
}

t.test('onEnd throws: the connection is kept all the same', async (t) => {
  const client = clientFor(t)
  const server = await replyingServer(t, () => answer('ok'))
  const handler = await send(client, server.origin, 'onEnd')
  t.equal(handler.log.failure, null)
  t.match(client.stats(), { open: 1, idle: 1, inFlight: 0, handlerErrors: 1 })
  t.match(await run(client, getRequest(server.origin)), { body: 'ok', ended: true })
  t.equal(server.accepted(), 1)
})

t.test('onError throws: noted, no more', async (t) => {
  const client = clientFor(t)
  const server = await replyingServer(t, () => 'HTTP/9\r\n')
  await send(client, server.origin, 'onError')
  t.match(client.stats(), { open: 0, inFlight: 0, handlerErrors: 1 })
})
