/** Requests on one connection, and clients that harm others. */

import { createHash, randomBytes } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { gzipSync } from 'node:zlib'
import { delay, from, Observable, of, Subject, switchMap, throwError, timer } from 'rxjs'
import { map } from 'rxjs/operators'
import t, { type Test } from 'tap'
import { authenticate } from '../../../pipelines/calls/authenticate.ts'
import { answer, calls } from '../../../pipelines/calls/pipeline.ts'
import { UpstreamRefusal } from '../../../pipelines/calls/upstream-error.ts'
import { Failure } from '../../../schemas/failure.ts'
import { clientNetwork, normalizeAddress } from '../../../src/core/keys/address-prefix.ts'
import { generateApiKey } from '../../../src/core/keys/material.ts'
import { ClientLimits, type ClientRefusal, HeldBytes } from '../../../src/http/client-limits.ts'
import type { Handler, Reply } from '../../../src/http/handler.ts'
import { Router } from '../../../src/http/router.ts'
import { GatewayServer } from '../../../src/http/server.ts'
import { TrustedProxies } from '../../../src/http/trusted-proxies.ts'
import {
  ask,
  clientLimits,
  clientOn,
  HOST,
  head,
  isWhole,
  RawClient,
  serve,
  statusOf,
  until,
  whole,
} from './support.ts'

t.test('requests one after another', async (t) => {
  // One connection carries many requests, in order; a reply never has a body where none may be.
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
})

t.test('no request is smuggled', async (t) => {
  // Requests whose end could be read in two ways, or that are none, reach no pipeline, and nothing behind them does.
  const ECHO = { 'POST /echo': ({ body }: { body: Buffer }) => whole(`got ${body.length}`) }
  const SMUGGLED = `${head('POST /echo', 'content-length: 8')}smuggled`

  /** Sends the request with another behind it. */
  async function refused(t: Test, name: string, request: string): Promise<void> {
    await t.test(name, async (t) => {
      const { port, seen, server } = await serve(t, ECHO)
      const alone = await ask(t, port, Buffer.from(request, 'latin1'))
      t.ok([400, 431, 505].includes(statusOf(alone)), `refused with ${alone.slice(0, 40)}`)
      const text = await ask(t, port, Buffer.from(request + SMUGGLED, 'latin1'))
      t.ok(text.split('HTTP/1.1 ').length <= 2, 'answered once at most')
      t.notMatch(text, /200 OK/)
      t.equal(seen.length, 0)
      t.equal(server.inFlight, 0)
    })
  }

  const CHUNKED = '3\r\nabc\r\n0\r\n\r\n'

  t.test('refused, and the connection closed', async (t) => {
    const post = (...fields: string[]) => head('POST /echo', ...fields)
    await refused(t, 'length and chunks', post('content-length: 3', 'transfer-encoding: chunked') + CHUNKED)
    await refused(t, 'chunks and length', post('transfer-encoding: chunked', 'content-length: 3') + CHUNKED)
    await refused(t, 'two lengths', `${post('content-length: 3', 'content-length: 30')}abc`)
    await refused(t, 'two lengths the other way', `${post('content-length: 30', 'content-length: 3')}abc`)
    await refused(t, 'a list of lengths', `${post('content-length: 3, 3')}abc`)
    for (const length of ['+3', '-1', '0x3', '3.0', '99999999999999999999999', '18446744073709551619'])
      await refused(t, `length ${length}`, `${post(`content-length: ${length}`)}abc`)
    for (const length of ['', ' ', '\t', '\xe9', '\x80\xff'])
      await refused(t, `empty length ${JSON.stringify(length)}`, `${post(`content-length:${length}`)}abc`)
    await refused(t, 'an empty length behind one', `${post('content-length: 3', 'content-length:')}abc`)
    await refused(t, 'an empty coding', `${post('transfer-encoding:')}${CHUNKED}`)
    await refused(
      t,
      'chunked twice',
      `${post('transfer-encoding: chunked', 'transfer-encoding: chunked')}${CHUNKED}`,
    )
    await refused(t, 'two hosts', `${post('host: other', 'content-length: 3')}abc`)
    await refused(t, 'the same host twice', `${post('host: test', 'content-length: 3')}abc`)
    for (const host of [
      'a b',
      'a/b',
      'user@host',
      'a, b',
      'ho\xe9st',
      'a\\b',
      'host:80:80',
      '[::1',
      'host:port',
    ])
      await refused(t, `host ${host}`, `POST /echo HTTP/1.1\r\nhost: ${host}\r\ncontent-length: 3\r\n\r\nabc`)
    for (const coding of ['gzip, chunked', 'xchunked', 'chunked, identity', '"chunked"'])
      await refused(t, `coding ${coding}`, post(`transfer-encoding: ${coding}`) + CHUNKED)
    await refused(
      t,
      'a chunk size that is none',
      `${post('transfer-encoding: chunked')}zz\r\nabc\r\n0\r\n\r\n`,
    )
    await refused(
      t,
      'a chunk size beyond all',
      `${post('transfer-encoding: chunked')}ffffffffffffffffff\r\nabc`,
    )
    await refused(t, 'no host', 'POST /echo HTTP/1.1\r\ncontent-length: 3\r\n\r\nabc')
    await refused(t, 'lines that end with LF alone', 'POST /echo HTTP/1.1\nhost: x\ncontent-length: 3\n\nabc')
    await refused(t, 'HTTP/1.0', 'POST /echo HTTP/1.0\r\nhost: x\r\ncontent-length: 3\r\n\r\nabc')
    await refused(t, 'headers without end', head('POST /echo', `x: ${'a'.repeat(100_000)}`))
    await refused(t, 'headers without number', head('POST /echo', ...Array(1000).fill('x: a')))
    await refused(t, 'a path without end', head(`POST /${'a'.repeat(100_000)}`))
    await refused(t, 'a TLS greeting', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03')
  })

  t.test('what the server cannot read at all reaches nothing and hurts no one', async (t) => {
    const { port, seen, server } = await serve(t, ECHO)
    const HOSTILE = [
      'POST /echo HTTP/1.1\r\nhost: x\r\ntransfer-encoding : chunked\r\ncontent-length: 3\r\n\r\nabc',
      'POST /echo HTTP/1.1\r\nhost: x\r\nx: a\r\n folded\r\ncontent-length: 3\r\n\r\nabc',
      'POST /echo HTTP/1.1\r\nhost: x\r\nx: a\0b\r\ncontent-length: 3\r\n\r\nabc',
    ]
    const clients = HOSTILE.map((request) =>
      new RawClient(port).send(Buffer.from(request + SMUGGLED, 'latin1')),
    )
    t.match(await ask(t, port, SMUGGLED, isWhole), /got 8$/, 'others are served meanwhile')
    t.equal(seen.length, 1)
    for (const { socket } of clients) socket.destroy()
    await until(() => server.inFlight === 0)
  })

  t.test('hosts with and without a port are taken', async (t) => {
    const { port } = await serve(t, ECHO)
    for (const host of ['localhost', 'LOCALHOST:8080', '127.0.0.1:1', '[::1]:80', 'a_b.example.com.', 'x:']) {
      const request = `POST /echo HTTP/1.1\r\nhost: ${host}\r\ncontent-length: 3\r\n\r\nabc`
      t.match(await ask(t, port, request, isWhole), /got 3$/, host)
    }
  })

  t.test('two lengths that agree are one', async (t) => {
    const { port } = await serve(t, ECHO)
    const text = await ask(
      t,
      port,
      `${head('POST /echo', 'content-length: 3', 'content-length: 3')}abc`,
      isWhole,
    )
    t.match(text, /got 3$/)
  })

  t.test('chunks are put together, however they are split', async (t) => {
    const { port, seen } = await serve(t, ECHO)
    const client = clientOn(t, port)
    client.socket.setNoDelay(true)
    client.send(head('POST /echo', 'transfer-encoding: chunked'))
    for (const byte of Buffer.from('3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n')) {
      client.send(Buffer.of(byte))
      await new Promise((resolve) => setImmediate(resolve))
    }
    t.match(await client.until(isWhole), /got 5$/)
    t.equal(seen[0]!.body.toString(), 'abcde')
  })

  t.test('code that renders an error may read the client address', async (t) => {
    const peers: string[] = []
    const server = new GatewayServer({
      router: new Router([]),
      clients: clientLimits(),
      maxTextBytes: () => 1024,
      renderError: (_path, _id, peer) => () => {
        peers.push(peer())
        return { type: 'full', status: 404, headers: [], body: '' }
      },
    })
    const port = await server.listen(HOST, 0)
    t.teardown(() => server.close())
    await ask(t, port, head('GET /nowhere'), isWhole)
    t.same(peers, [HOST])
  })
})

t.test('nothing behind a chunked body is answered', async (t) => {
  // The server takes the trailer of a chunked body for another request, and passes over junk between chunks. So nothing
  // that follows such a body on its connection is answered, whatever answers the body itself.
  const stream = (): Observable<Reply> =>
    new Observable((client) => {
      client.next({ type: 'head', status: 200, headers: [], flow: null })
      client.next({ type: 'data', bytes: 'said' })
      client.complete()
    })

  const ROUTES = {
    'POST /whole': () => whole('whole'),
    'POST /later': () =>
      timer(1).pipe(map(() => ({ type: 'full', status: 200, headers: [], body: 'late' }) as const)),
    'POST /stream': stream,
    'POST /empty': () => of<Reply>({ type: 'head', status: 200, headers: [], flow: null }),
    'POST /refused': () => {
      throw new Failure('invalid_api_key', 'No.')
    },
    'DELETE /gone': () => whole('gone'),
    'POST /second': () => whole('second'),
  }
  /** Each way in which a reply can end, with the status of it. */
  const LINES = {
    'POST /whole': 200,
    'POST /later': 200,
    'POST /stream': 200,
    'POST /empty': 200,
    'POST /refused': 401,
    'POST /nowhere': 404,
    'PUT /whole': 405,
    'DELETE /gone': 200,
  } as const

  const post = (line: string, ...fields: string[]) => head(line, 'transfer-encoding: chunked', ...fields)
  const SECOND = head('POST /second', 'content-length: 0')
  /** What may follow the head, and how a careful parser reads it: as one body with a trailer, or as junk. */
  const BODIES = {
    'a trailer that is a request': `3\r\nabc\r\n0\r\n${SECOND}`,
    'a request behind the body': `3\r\nabc\r\n0\r\n\r\n${SECOND}`,
    'junk behind a chunk': `3\r\nabcXY0\r\n\r\n${SECOND}`,
    'a chunk extension': `3;x="\r\nabc\r\n0\r\n\r\n${SECOND}`,
    'a size with a sign': `+3\r\nabc\r\n0\r\n\r\n${SECOND}`,
  }

  t.test('with every byte at once, one answer at most', async (t) => {
    const { port, seen, server } = await serve(t, ROUTES)
    for (const line of Object.keys(LINES))
      for (const [name, body] of Object.entries(BODIES)) {
        const text = await ask(t, port, post(line) + body)
        t.ok(text.split('HTTP/1.1 ').length <= 2, `${line}, ${name}`)
      }
    t.notOk(seen.some(({ path }) => path === '/second'))
    await until(() => server.inFlight === 0)
  })

  t.test('with the rest later, the whole answer to the chunked request alone, and the end', async (t) => {
    const { port, seen, server } = await serve(t, ROUTES)
    for (const [line, status] of Object.entries(LINES)) {
      const client = clientOn(t, port)
      client.send(`${post(line)}3\r\nabc\r\n0\r\n\r\n`)
      const isWhole = (text: string) =>
        /\r\n0\r\nx-gateway-trace: req_\w+\r\n\r\n$/.test(text) ||
        Number(/content-length: (\d+)/i.exec(text)?.[1] ?? Number.NaN) ===
          text.length - text.indexOf('\r\n\r\n') - 4
      const text = await client.until(isWhole)
      t.ok(isWhole(text), `${line} is answered to the end`)
      t.equal(statusOf(text), status)
      t.equal(text.match(/\r\nconnection: close\r\n/gi)?.length, 1, `${line} says once that it is the last`)
      client.send(SECOND)
      await client.gone
      t.equal(client.text.split('HTTP/1.1 ').length, 2, `${line}: nothing else is answered`)
    }
    t.notOk(seen.some(({ path }) => path === '/second'))
    await until(() => server.inFlight === 0)
  })

  t.test('a connection whose client waits is closed by the server', async (t) => {
    const { port } = await serve(t, ROUTES)
    for (const line of ['POST /whole', 'POST /stream', 'POST /nowhere'])
      t.equal((await ask(t, port, `${post(line)}0\r\n\r\n`)).split('HTTP/1.1 ').length, 2, line)
  })

  t.test('an HTTP client reads each answer to chunks as whole', async (t) => {
    const { port } = await serve(t, ROUTES)
    for (const [path, text] of Object.entries({ '/stream': 'said', '/empty': '', '/whole': 'whole' })) {
      const body = new Blob(['abc']).stream()
      const answer = await fetch(`http://127.0.0.1:${port}${path}`, { method: 'POST', body, duplex: 'half' })
      t.equal(await answer.text(), text)
    }
  })

  t.test('methods without a body take no chunks', async (t) => {
    const { port, seen } = await serve(t, { 'GET /file': () => whole('file'), 'HEAD /file': () => whole('') })
    for (const line of ['GET /file', 'HEAD /file', 'OPTIONS /file']) {
      t.equal(statusOf(await ask(t, port, `${post(line)}0\r\n\r\n`)), 400, line)
      t.notMatch(await ask(t, port, `${post(line)}0\r\n\r\n${SECOND}`), /200 OK/)
    }
    t.equal(seen.length, 0)
  })
})

t.test('clients hold only so much', async (t) => {
  // What clients may hold before they are admitted: bytes of bodies, connections, and requests without a good key.
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
        'GET /keyed': calls(authenticate({ credentials, onSecretUsed: () => undefined }))
          .then(answer(() => whole('{}')))
          .toHandler(),
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
    clients.noteUnauthenticated(source)
    t.ok(clients.isBlocked(source))
    now = 1_000
    t.notOk(clients.isBlocked(source))
    t.same([mayConnect(), mayConnect()], [true, false])
  })

  t.test('only trusted proxies speak for another address', async (t) => {
    const proxies = new TrustedProxies(['10.0.0.0/8', '2001:db8::/32', '192.0.2.1'])
    const clientOf = (peer: string, forwarded: string) => proxies.findClient(peer, forwarded)
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
})

t.test('forged addresses are not believed', async (t) => {
  // The address of a client: the connection's, or what a trusted proxy says, whatever a client sends.
  const SIGNATURE = [0x0d, 0x0a, 0x0d, 0x0a, 0x00, 0x0d, 0x0a, 0x51, 0x55, 0x49, 0x54, 0x0a]
  /** A header of version 2 of the PROXY protocol: TCP over IPv4. */
  const proxyHeader = (...source: [number, number, number, number]) =>
    Buffer.from([...SIGNATURE, 0x21, 0x11, 0, 12, ...source, 127, 0, 0, 1, 0x11, 0x22, 0, 80])

  const tellAddress: Handler = (request) => whole(normalizeAddress(request.address?.() ?? ''))
  const bodyOf = (text: string) => text.slice(text.indexOf('\r\n\r\n') + 4)

  async function start(t: Test, proxies: readonly string[]) {
    const { port } = await serve(t, { 'GET /address': tellAddress }, clientLimits({ proxies }))
    const request = (...fields: string[]) => head('GET /address', ...fields)
    return { port, request }
  }

  t.test('X-Forwarded-For is not read where no trusted proxy made the connection', async (t) => {
    const { port, request } = await start(t, ['10.0.0.0/8'])
    for (const field of ['x-forwarded-for: 203.0.113.7', 'x-forwarded-for: 10.0.0.1, 203.0.113.7'])
      t.equal(bodyOf(await ask(t, port, request(field), isWhole)), '127.0.0.1', field)
  })

  t.test('of a trusted proxy the last hop counts, over all lines of the header', async (t) => {
    const { port, request } = await start(t, ['127.0.0.1', '10.0.0.0/8'])
    const table: ReadonlyArray<readonly [fields: string[], address: string]> = [
      [[], '127.0.0.1'],
      [['x-forwarded-for: 203.0.113.7'], '203.0.113.7'],
      [['x-forwarded-for: 198.51.100.1, 203.0.113.7, 10.0.0.2'], '203.0.113.7'],
      [['x-forwarded-for: 198.51.100.1', 'x-forwarded-for: 203.0.113.7'], '203.0.113.7'],
      [['X-Forwarded-For: 198.51.100.1', 'x: y', 'x-forwarded-FOR: 203.0.113.7, 10.0.0.9'], '203.0.113.7'],
      [['x-forwarded-for: 203.0.113.7', 'x-forwarded-for: '], '203.0.113.7'],
      [['x-forwarded-for: 198.51.100.1, junk'], '127.0.0.1'],
      [['x-forwarded-for: 999.1.1.1, 10.0.0.2'], '10.0.0.2'],
      [['x-forwarded-for: [2001:db8::5]:443'], '2001:db8:0:0:0:0:0:5'],
      [['x-real-ip: 198.51.100.1', 'forwarded: for=198.51.100.1', 'client-ip: 198.51.100.1'], '127.0.0.1'],
    ]
    for (const [fields, address] of table)
      t.equal(bodyOf(await ask(t, port, request(...fields), isWhole)), address, fields.join(' | '))
  })

  t.test('headers of the PROXY protocol name no address, from a trusted proxy neither', async (t) => {
    for (const proxies of [[], ['127.0.0.1']]) {
      const { port, request } = await start(t, proxies)
      const first = Buffer.concat([proxyHeader(203, 0, 113, 7), Buffer.from(request())])
      t.equal(bodyOf(await ask(t, port, first, isWhole)), '127.0.0.1')
      const client = clientOn(t, port)
      await client.send(first).until(isWhole)
      client.send(Buffer.concat([proxyHeader(198, 51, 100, 1), Buffer.from(request())]))
      await until(() => client.text.split('HTTP/1.1 200').length === 3)
      t.ok(client.text.endsWith('127.0.0.1'), 'nor one before the next request of a connection')
      const written = `PROXY TCP4 203.0.113.7 127.0.0.1 4000 80\r\n${request()}`
      t.match(await ask(t, port, written), /^HTTP\/1\.1 505/, 'version 1 is refused')
    }
  })
})

t.test('the server build is the recorded one', async (t) => {
  // The HTTP server is native code that a third party packs: only the build that was reviewed is loaded.
  const PACKAGE = new URL('../../../node_modules/uWebSockets.js/', import.meta.url)
  const RECORDED = new URL('../../fixtures/uws-pack-20.0.8.sha256', import.meta.url)
  const IS_CODE = /\.(?:[cm]?js|node)$/

  const sumOf = (file: string): string =>
    createHash('sha256')
      .update(readFileSync(new URL(file, PACKAGE)))
      .digest('hex')

  t.test('each file that can be loaded has the recorded checksum, and there is no other', (t) => {
    const files = readdirSync(PACKAGE, { recursive: true, encoding: 'utf8' }).filter((file) =>
      IS_CODE.test(file),
    )
    const found = files.map((file) => `${sumOf(file)}  ${file}`)
    const recorded = readFileSync(RECORDED, 'utf8').trim().split('\n')
    t.same(found.sort(), recorded.filter((line) => IS_CODE.test(line)).sort())
    t.ok(found.some((line) => line.includes('uws_linux_x64_127.node')))
    t.end()
  })

  t.test('one file of the service imports it', (t) => {
    const rooms = ['src', 'pipelines', 'schemas']
    const importers = rooms.flatMap((room) => {
      const folder = new URL(`../../../${room}/`, import.meta.url)
      const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((file) =>
        file.endsWith('.ts'),
      )
      return files
        .filter((file) => readFileSync(new URL(file, folder), 'utf8').includes("from 'uWebSockets.js'"))
        .map((file) => `${room}/${file}`)
    })
    t.same(importers, ['src/http/uws.ts'])
    t.end()
  })
})
