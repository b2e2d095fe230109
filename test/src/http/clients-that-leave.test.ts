/** A client may go at any moment: its pipeline is torn down once, and nothing of it is left. */
import { Observable } from 'rxjs'
import t from 'tap'
import type { Reply } from '../../../src/http/handler.ts'
import { ask, HOST, head, isWhole, RawClient, serve, until, whole } from './support.ts'

const CONNECTIONS = 500

/** A reply that goes on until its client leaves; `left` counts the teardowns. */
function endless(counts: { left: number }, first: boolean): Observable<Reply> {
  return new Observable((subscriber) => {
    if (first) {
      subscriber.next({ type: 'head', status: 200, headers: [], flow: null })
      subscriber.next({ type: 'data', bytes: 'first' })
    }
    return () => void counts.left++
  })
}

t.test('before the first byte and after it', async (t) => {
  const counts = { left: 0 }
  const { port, server, seen } = await serve(t, {
    'GET /silent': () => endless(counts, false),
    'GET /speaking': () => endless(counts, true),
  })
  const silent = new RawClient(port).send(head('GET /silent'))
  const speaking = new RawClient(port).send(head('GET /speaking'))
  await speaking.until((text) => text.endsWith('first'))
  await until(() => seen.length === 2)
  t.equal(server.inFlight, 2)
  silent.socket.destroy()
  await until(() => counts.left === 1)
  speaking.socket.resetAndDestroy()
  await until(() => counts.left === 2)
  t.equal(server.inFlight, 0)
  await server.idle()
})

t.test('a half-closed connection is a client that left', async (t) => {
  const counts = { left: 0 }
  const { port, server } = await serve(t, { 'GET /speaking': () => endless(counts, true) })
  const client = new RawClient(port).send(head('GET /speaking'))
  await client.until((text) => text.endsWith('first'))
  client.socket.end()
  await until(() => counts.left === 1)
  await client.gone
  t.equal(server.inFlight, 0)
})

t.test('in the middle of its body: no handler is called', async (t) => {
  const { port, server, seen } = await serve(t, { 'POST /echo': ({ body }) => whole(body) })
  for (const leave of ['destroy', 'resetAndDestroy', 'end'] as const) {
    const client = new RawClient(port).send(`${head('POST /echo', 'content-length: 1000000')}begun`)
    await until(() => server.inFlight === 1)
    client.socket[leave]()
    await until(() => server.inFlight === 0)
  }
  t.equal(seen.length, 0)
  t.match(await ask(t, port, `${head('POST /echo', 'content-length: 2')}ok`, isWhole), /ok$/)
})

t.test('before its reply is ready: the reply is not written', async (t) => {
  const { port, server } = await serve(t, {
    'GET /later': () =>
      new Observable((subscriber) => {
        const timer = setInterval(() => {
          subscriber.next({ type: 'full', status: 200, headers: [], body: 'late' })
          subscriber.complete()
        })
        // Torn down late, and written to until then.
        return () => setTimeout(() => clearInterval(timer), 5)
      }),
  })
  const clients = Array.from({ length: 20 }, () => new RawClient(port).send(head('GET /later')))
  for (const { socket } of clients) socket.destroy()
  await Promise.all(clients.map(({ gone }) => gone))
  await until(() => server.inFlight === 0)
  t.match(await ask(t, port, head('GET /later'), isWhole), /late$/)
})

t.test('inside the delivery of its reply', async (t) => {
  const counts = { left: 0 }
  const { port, server } = await serve(t, { 'GET /speaking': () => endless(counts, true) })
  const clients = Array.from({ length: 50 }, () => {
    const client = new RawClient(port).send(head('GET /speaking'))
    client.socket.once('data', () => client.socket.resetAndDestroy())
    return client
  })
  await Promise.all(clients.map(({ gone }) => gone))
  await until(() => counts.left === 50)
  t.equal(server.inFlight, 0)
})

t.test('many connections opened and dropped, at every point of a request', async (t) => {
  const { port, server } = await serve(t, { 'POST /echo': ({ body }) => whole(body) })
  const request = `${head('POST /echo', 'content-length: 5')}hello`
  const clients = Array.from({ length: CONNECTIONS }, (_, i) => {
    const client = new RawClient(port)
    client.socket.on('connect', () => {
      client.send(request.slice(0, i % request.length))
      if (i % 3 === 0) client.socket.resetAndDestroy()
      else client.socket.end()
    })
    return client
  })
  await Promise.all(clients.map(({ gone }) => gone))
  await until(() => server.inFlight === 0)
  t.match(await ask(t, port, request, isWhole), /hello$/)
})

t.test('the server ends its connections at once when told to', async (t) => {
  const counts = { left: 0 }
  const { port, server } = await serve(t, { 'GET /speaking': () => endless(counts, true) })
  const client = new RawClient(port).send(head('GET /speaking'))
  await client.until((text) => text.endsWith('first'))
  server.close()
  await client.gone
  t.equal(counts.left, 1)
  t.equal(server.inFlight, 0)
  t.notOk(client.text.endsWith('0\r\n\r\n'), 'cut, not ended')
  await t.rejects(fetch(`http://${HOST}:${port}/speaking`))
})
