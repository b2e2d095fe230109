/** One connection carries many requests, in order; a reply never has a body where none may be. */
import { delay, Observable, of, throwError } from 'rxjs'
import t from 'tap'
import { Failure } from '../../../schemas/failure.ts'
import { ask, clientOn, head, isWhole, RawClient, serve, statusOf, until, whole } from './support.ts'

t.test('two requests in sequence on one connection', async (t) => {
  const { port, seen } = await serve(t, {
    'POST /echo': ({ body }) => whole(body),
    'POST /later': ({ body }) => whole(body).pipe(delay(5)),
  })
  const client = clientOn(t, port)
  const traces = new Set<string>()
  for (const path of ['/echo', '/later', '/echo']) {
    client.received = Buffer.alloc(0)
    client.send(`${head(`POST ${path}`, 'content-length: 5')}hello`)
    const text = await client.until(isWhole)
    t.equal(statusOf(text), 200)
    t.ok(text.endsWith('\r\n\r\nhello'))
    traces.add(/x-gateway-trace: (\S+)/.exec(text)?.[1] ?? '')
  }
  t.equal(traces.size, 3, 'each has an id of its own')
  t.strictSame(new Set(seen.map(({ requestId }) => requestId)), traces)
})

t.test('a preflight is answered without a body or a length', async (t) => {
  const { port } = await serve(t, {})
  const text = await ask(t, port, head('OPTIONS /v1/anything'), (all) => all.includes('\r\n\r\n'))
  t.equal(statusOf(text), 204)
  t.notMatch(text, /content-length/i)
  t.match(text, /access-control-allow-methods: GET, POST/)
  t.match(text, /access-control-allow-origin: \*\r\n/)
  t.match(text, /access-control-expose-headers: x-gateway-trace,/)
})

t.test('an unknown path, a wrong method, a body that is too large: in the shape of the path', async (t) => {
  const { port, seen } = await serve(t, { 'POST /v1/chat/completions': () => whole('') })
  const unknown = await ask(t, port, head('GET /v1/messages'), isWhole)
  t.equal(statusOf(unknown), 404)
  t.match(unknown, /\{"type":"error","error":\{"type":"not_found_error"/)
  const wrong = await ask(t, port, head('GET /v1/chat/completions'), isWhole)
  t.equal(statusOf(wrong), 405)
  t.match(wrong, /\r\nallow: POST\r\n/)
  const announced = head('POST /v1/chat/completions', `content-length: ${33 * 1024 * 1024}`)
  const early = await ask(t, port, announced, isWhole)
  t.equal(statusOf(early), 413, 'before the body comes')
  t.match(early, /"code":"request_too_large"/)
  const chunk = Buffer.alloc(1024 * 1024, 0x20)
  const parts = Array(33)
    .fill([`${chunk.length.toString(16)}\r\n`, chunk, '\r\n'])
    .flat()
  const body = Buffer.concat(parts.map((part) => Buffer.from(part)))
  const start = Buffer.from(head('POST /v1/chat/completions', 'transfer-encoding: chunked'))
  const late = await ask(t, port, Buffer.concat([start, body]), isWhole)
  t.equal(statusOf(late), 413, 'as soon as there is too much')
  t.equal(seen.length, 0)
})

t.test('a body is waited for, and asked for where the client wants that', async (t) => {
  const { port, server } = await serve(t, { 'POST /echo': ({ body }) => whole(body) })
  const client = clientOn(t, port)
  client.send(head('POST /echo', 'content-length: 3', 'expect: 100-continue'))
  await client.until((text) => text.startsWith('HTTP/1.1 100 Continue\r\n\r\n'))
  for (const byte of 'abc') {
    t.equal(server.inFlight, 1)
    client.send(byte)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
  t.ok((await client.until((text) => text.endsWith('abc'))).includes('200 OK'))
  await until(() => server.inFlight === 0)
})

t.test('an error before the first byte has its status, a foreseen one its own body', async (t) => {
  const { port, unforeseen } = await serve(t, {
    'GET /failure': () => throwError(() => new Failure('quota_exceeded', 'Top up.')),
    'GET /bug': () => throwError(() => new Error('secret detail')),
    'GET /throws': () => {
      throw new Error('thrown before there is anything to subscribe to')
    },
  })
  const failure = await ask(t, port, head('GET /failure'), isWhole)
  t.equal(statusOf(failure), 402)
  for (const path of ['/bug', '/throws']) {
    const text = await ask(t, port, head(`GET ${path}`), isWhole)
    t.equal(statusOf(text), 500)
    t.match(text, /"code":"internal_error"/)
    t.notMatch(text, /secret|thrown/)
  }
  t.equal(unforeseen.length, 2)
})

t.test('an error after the first byte cuts the reply off, and is logged for the operator', async (t) => {
  const { port, unforeseen } = await serve(t, {
    'GET /half': () =>
      new Observable((subscriber) => {
        subscriber.next({ type: 'head', status: 200, headers: [], flow: null })
        subscriber.next({ type: 'data', bytes: 'half' })
        subscriber.error(new Error('too late for a status'))
        subscriber.next({ type: 'data', bytes: 'never' })
      }),
  })
  const client = new RawClient(port).send(head('GET /half'))
  await client.gone
  t.equal(statusOf(client.text), 200)
  t.ok(client.text.endsWith('\r\n4\r\nhalf'), 'without the mark of the end')
  t.match(unforeseen, [{ message: 'too late for a status' }])
})

t.test('a client that reads slowly gets all that was sent before the cut', async (t) => {
  const sent = 'x'.repeat(8 * 1024 * 1024)
  const last = 'y'.repeat(1000)
  const { port } = await serve(t, {
    'GET /half': () =>
      new Observable((subscriber) => {
        subscriber.next({ type: 'head', status: 200, headers: [], flow: null })
        subscriber.next({ type: 'data', bytes: Buffer.from(sent) })
        subscriber.next({ type: 'data', bytes: Buffer.from(last) })
        subscriber.error(new Error('in the middle'))
      }),
  })
  const client = new RawClient(port)
  client.socket.pause()
  client.send(head('GET /half'))
  await new Promise((resolve) => setTimeout(resolve, 50))
  client.socket.resume()
  await client.gone
  const body = client.text.slice(client.text.indexOf('\r\n\r\n')).replace(/\r\n[0-9a-f]*/g, '')
  t.ok(body === sent + last)
})

t.test('while draining only what is meant for it is answered, and connections end', async (t) => {
  const { port, server } = await serve(t, { 'GET /get': () => of() })
  server.drain()
  const text = await ask(t, port, head('GET /get'))
  t.equal(statusOf(text), 503)
  t.match(text, /retry-after: 1\r\n/)
  t.match(text, /connection: close\r\n/i)
})
