/** Answers: back-pressure, departures, drains, faults. */

import { createHash } from 'node:crypto'
import { connect } from 'node:net'
import { setTimeout as after } from 'node:timers/promises'
import { concat, delay, from, map, Observable, of, Subject, switchMap, throwError } from 'rxjs'
import t, { type Test } from 'tap'
import { makeErrorReply } from '../../../pipelines/calls/errors.ts'
import { paceReply } from '../../../pipelines/calls/replies.ts'
import { Failure } from '../../../schemas/failure.ts'
import type { GatewayRequest, Handler, Reply } from '../../../src/http/handler.ts'
import { Router } from '../../../src/http/router.ts'
import { GatewayServer } from '../../../src/http/server.ts'
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

t.test('slow reader pauses upstream', async (t) => {
  // A client that reads slowly gets every byte, and what reads from the upstream is paused meanwhile.
  const PIECE_BYTES = 65_536
  /** More than two kernels take of a connection that nobody reads from. */
  const STREAM_BYTES = 32 * 1024 * 1024
  const READ_ON_BYTES = 256 * 1024

  const piece = (number: number): Buffer => {
    const bytes = Buffer.alloc(PIECE_BYTES, number)
    bytes.writeUInt32BE(number)
    return bytes
  }

  interface Habits {
    /** What was read already still comes after a pause. */
    readonly sendsAfterPause: boolean
    /** Falls silent at its first pause, until `goOn`. */
    readonly restsOncePaused: boolean
  }

  /** As an upstream does: pieces as fast as they are taken. */
  class Source {
    readonly hash = createHash('sha256')
    sent = 0
    pauses = 0
    resumes = 0
    isPaused = false
    isLeft = false
    readonly total: number
    readonly #habits: Habits
    #isResting = false
    #pump: () => void = () => undefined

    constructor(total: number, habits: Habits = { sendsAfterPause: true, restsOncePaused: false }) {
      this.total = total
      this.#habits = habits
    }

    goOn(): void {
      this.#isResting = false
      this.#pump()
    }

    readonly reply = (): Observable<Reply> =>
      new Observable((subscriber) => {
        const send = () => {
          const bytes = piece(this.sent / PIECE_BYTES)
          this.hash.update(bytes)
          this.sent += bytes.length
          subscriber.next({ type: 'data', bytes })
          // Its buffer is used again at once, as that of a connection is.
          bytes.fill(0xee)
        }
        this.#pump = () => {
          while (!this.isPaused && !this.#isResting && this.sent < this.total) {
            send()
            if (!this.isPaused) continue
            if (this.#habits.sendsAfterPause && this.sent < this.total) send()
            this.#isResting = this.#habits.restsOncePaused && this.pauses === 1
          }
          if (this.sent >= this.total && !this.isLeft) subscriber.complete()
        }
        subscriber.next({
          type: 'head',
          status: 200,
          headers: [],
          flow: {
            pause: () => {
              this.pauses++
              this.isPaused = true
            },
            resume: () => {
              this.resumes++
              this.isPaused = false
              setImmediate(this.#pump)
            },
          },
        })
        setImmediate(this.#pump)
        return () => {
          this.isLeft = true
        }
      })
  }

  /** The bytes of a chunked body, and whether its end was there. */
  function dechunked(bytes: Buffer): { body: Buffer; isWhole: boolean } {
    const parts: Buffer[] = []
    let at = bytes.indexOf('\r\n\r\n') + 4
    for (;;) {
      const lineEnd = bytes.indexOf('\r\n', at)
      if (lineEnd < 0) return { body: Buffer.concat(parts), isWhole: false }
      const size = Number.parseInt(bytes.toString('latin1', at, lineEnd), 16)
      if (size === 0) return { body: Buffer.concat(parts), isWhole: true }
      parts.push(bytes.subarray(lineEnd + 2, lineEnd + 2 + size))
      at = lineEnd + 2 + size + 2
    }
  }

  /** Collects without copying what came before. */
  class Reader extends RawClient {
    readonly pieces: Buffer[] = []
    bytes = 0

    constructor(port: number) {
      super(port)
      this.socket.removeAllListeners('data')
      this.socket.on('data', (bytes) => {
        this.pieces.push(bytes)
        this.bytes += bytes.length
      })
    }

    body() {
      return dechunked(Buffer.concat(this.pieces))
    }
  }

  const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex')

  t.test('stops, reads on in steps, and has every byte', async (t) => {
    const source = new Source(STREAM_BYTES)
    const { port, server } = await serve(t, { 'GET /stream': source.reply })
    const client = new Reader(port).send(head('GET /stream'))
    client.socket.pause()
    await until(() => source.isPaused)
    const outstanding = source.sent
    t.ok(outstanding < STREAM_BYTES, 'the upstream is paused long before the end')
    let most = 0
    while (source.sent < STREAM_BYTES) {
      const target = client.bytes + READ_ON_BYTES
      client.socket.resume()
      await until(() => client.bytes >= target)
      client.socket.pause()
      most = Math.max(most, source.sent - client.bytes)
    }
    client.socket.resume()
    await until(() => server.inFlight === 0)
    await until(() => client.body().isWhole)
    t.equal(sha256(client.body().body), source.hash.digest('hex'))
    // The kernel's buffers grow while they are read from; without pauses all of the stream would be under way.
    t.ok(most <= STREAM_BYTES / 2, `never much more under way than at first: ${most} after ${outstanding}`)
    t.ok(source.resumes > 0 && source.pauses >= source.resumes)
    client.socket.destroy()
  })

  for (const sendsAfterPause of [true, false]) {
    const what = sendsAfterPause ? 'and what came after the pause' : 'though nothing more is written'
    t.test(`what was written before the upstream fell silent arrives meanwhile, ${what}`, async (t) => {
      const source = new Source(STREAM_BYTES, { sendsAfterPause, restsOncePaused: true })
      const { port } = await serve(t, { 'GET /stream': source.reply })
      const client = new Reader(port).send(head('GET /stream'))
      client.socket.pause()
      await until(() => source.isPaused)
      client.socket.resume()
      await until(() => client.body().body.length === source.sent)
      t.ok(source.sent < STREAM_BYTES)
      t.equal(client.body().isWhole, false)
      source.goOn()
      await until(() => source.sent === STREAM_BYTES && client.body().isWhole)
      t.equal(sha256(client.body().body), source.hash.digest('hex'))
      client.socket.destroy()
    })
  }

  t.test('the end waits for what waits', async (t) => {
    const source = new Source(0)
    const { port, server } = await serve(t, {
      'GET /burst': () =>
        new Observable((subscriber) => {
          subscriber.next({ type: 'head', status: 200, headers: [], flow: null })
          for (let i = 0; i < STREAM_BYTES / PIECE_BYTES / 2; i++) {
            const bytes = piece(i)
            source.hash.update(bytes)
            subscriber.next({ type: 'data', bytes })
          }
          subscriber.complete()
        }),
    })
    const client = new Reader(port).send(head('GET /burst'))
    client.socket.pause()
    await until(() => server.inFlight === 1)
    client.socket.resume()
    await until(() => client.body().isWhole)
    t.equal(sha256(client.body().body), source.hash.digest('hex'))
    await until(() => server.inFlight === 0)
    client.socket.destroy()
  })

  t.test('a client that leaves while paused ends it all', async (t) => {
    const source = new Source(STREAM_BYTES)
    const { port, server } = await serve(t, { 'GET /stream': source.reply })
    const client = new Reader(port).send(head('GET /stream'))
    client.socket.pause()
    await until(() => source.isPaused)
    client.socket.resetAndDestroy()
    await until(() => source.isLeft)
    t.equal(server.inFlight, 0)
  })
})

t.test('unread answers hold no memory', async (t) => {
  // A client that sends requests on one connection and reads no answer costs little, whatever it asks for.
  const MIB = 1024 * 1024
  /** What two kernels hold of a connection whose client does not read; more than any setting of tests allows. */
  const KERNEL_BYTES = 32 * MIB
  /** Far above what is unsent of a connection before it is closed. */
  const REPLY_BYTES = 1024
  /** Requests of one connection, more than would ever be answered. */
  const REQUESTS = 200_000
  const PAGE = Buffer.alloc(MIB, 0x61)

  /** Sends one request again and again, in pieces, reads nothing meanwhile, and waits for the end of the connection. */
  async function sendUnread(t: Test, port: number, request: string): Promise<void> {
    const socket = connect({ port, host: HOST })
    t.teardown(() => socket.destroy())
    socket.on('error', () => undefined)
    const many = Buffer.from(request.repeat(100))
    for (let sent = 0; sent < REQUESTS && !socket.destroyed; sent += 100) {
      socket.write(many)
      // A socket that is not read learns of its end by writing.
      await new Promise((resolve) => setImmediate(resolve))
    }
    socket.resume()
    await until(() => socket.destroyed)
  }

  const cases: ReadonlyArray<readonly [name: string, line: string, handler: Handler, replyBytes: number]> = [
    ['a large page', 'GET /page', () => whole(PAGE), MIB],
    ['a small answer', 'GET /page', () => whole('x'.repeat(REPLY_BYTES)), REPLY_BYTES],
    ['the head of a page', 'HEAD /page', () => whole(PAGE), 512],
    ['no content', 'GET /page', () => of<Reply>({ type: 'full', status: 204, headers: [], body: '' }), 512],
    ['nothing new', 'GET /page', () => of<Reply>({ type: 'full', status: 304, headers: [], body: '' }), 512],
    ['a refusal that ends the connection', 'GET /page', () => throwError(blocked), 1024],
    ['a redirect', 'GET /page', () => of<Reply>({ type: 'full', status: 302, headers: [], body: '' }), 512],
    ['a stream', 'GET /page', () => streamed(), MIB],
    ['an error', 'GET /page', () => whole('no', 404), 512],
  ]

  const blocked = () =>
    new Failure('rate_limit_exceeded', 'Too many.', { headers: [['connection', 'close']] })

  const streamed = () =>
    concat(
      of<Reply>({ type: 'head', status: 200, headers: [], flow: null }),
      of<Reply>({ type: 'data', bytes: PAGE }),
    )

  for (const [name, line, handler, replyBytes] of cases)
    t.test(`${name}, asked for without reading`, async (t) => {
      const { port, seen, server } = await serve(t, { 'GET /page': handler })
      await sendUnread(t, port, head(line))
      t.ok(seen.length >= 1)
      t.ok(seen.length * replyBytes < KERNEL_BYTES, `${seen.length} answers`)
      await until(() => server.inFlight === 0)
    })

  t.test('preflights', async (t) => {
    const { port, server } = await serve(t, {})
    await sendUnread(t, port, head('OPTIONS /page'))
    await until(() => server.inFlight === 0)
  })

  t.test('many requests at once on one connection take one turn no longer than a few do', async (t) => {
    const { port, seen } = await serve(t, { 'GET /page': () => whole('x') })
    const client = clientOn(t, port)
    await client.send(head('GET /page').repeat(1000)).gone
    t.ok(seen.length >= 64 && seen.length < 1000, `${seen.length} answered`)
    const few = clientOn(t, port)
    few.send(head('GET /page').repeat(20))
    await few.until((text) => text.split('HTTP/1.1 200').length > 20)
  })

  t.test('a page is sent whole to a client that reads late, from bytes that all replies share', async (t) => {
    const { port } = await serve(t, { 'GET /page': () => whole(PAGE), 'GET /other': () => whole('other') })
    const clients = Array.from({ length: 20 }, () => new RawClient(port))
    for (const { socket } of clients) socket.pause()
    const before = process.memoryUsage().rss
    for (const client of clients) client.send(head('GET /page'))
    await new Promise((resolve) => setTimeout(resolve, 50))
    t.ok(process.memoryUsage().rss - before < 20 * MIB)
    for (const client of clients) {
      client.socket.resume()
      const isWhole = (text: string) => text.endsWith(`\r\n\r\n${PAGE}`)
      t.ok(isWhole(await client.until(isWhole)))
      client.received = Buffer.alloc(0)
      client.send(head('GET /other'))
      t.match(await client.until((text) => text.endsWith('other')), '200 OK', 'and the connection goes on')
      client.socket.destroy()
    }
  })
})

t.test('clients that leave', async (t) => {
  // A client may go at any moment: its pipeline is torn down once, and nothing of it is left.
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
    await server.waitUntilIdle()
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
})

t.test('a drain waits for no upload', async (t) => {
  // A request whose body is still coming when the process drains is answered 503; one that is whole is carried out.
  const MIB = 1024 * 1024
  const BOUNDARY = 'content-type: multipart/form-data; boundary=b'
  const PART = '--b\r\ncontent-disposition: form-data; name="image"; filename="a.png"\r\n\r\nabc'

  const readForm = ({ form }: GatewayRequest) =>
    from(
      form!.read({ maxFields: 9, maxFieldBytes: 1000, maxFiles: 9 }, async ({ content }) => {
        for await (const _ of content);
      }),
    ).pipe(switchMap(() => whole('stored')))

  t.test('with bodies in every state', async (t) => {
    const running = new Subject<Reply>()
    let forms = 0
    let whole = 0
    const server = new GatewayServer({
      clients: clientLimits(),
      maxTextBytes: () => MIB,
      router: new Router([
        [
          'POST',
          '/body',
          {
            handler: () => {
              whole++
              return running
            },
          },
        ],
        [
          'POST',
          '/form',
          {
            handler: (request) => {
              forms++
              return readForm(request)
            },
            maxFormBytes: MIB,
          },
        ],
      ]),
      renderError: (path, id) =>
        makeErrorReply(path, id, { onUnforeseen: t.error, onInternal: () => undefined }),
    })
    const port = await server.listen(HOST, 0)
    t.teardown(() => server.close())
    const send = (bytes: string) => {
      const client = clientOn(t, port)
      return client.send(bytes)
    }
    const length = 'content-length: 100000'
    const incomplete = {
      'no byte of a short body': head('POST /body', 'content-length: 3'),
      'a piece of a body': `${head('POST /body', length)}abc`,
      'a chunk of a body': `${head('POST /body', 'transfer-encoding: chunked')}3\r\nabc\r\n`,
      'a piece of a form': `${head('POST /form', BOUNDARY, length)}${PART}`,
      'a chunk of a form': `${head('POST /form', BOUNDARY, 'transfer-encoding: chunked')}${PART.length.toString(16)}\r\n${PART}\r\n`,
    }
    const clients = Object.entries(incomplete).map(([name, bytes]) => ({ name, client: send(bytes) }))
    const complete = send(`${head('POST /body', 'content-length: 3')}abc`)
    await until(() => server.inFlight === clients.length + 1 && forms === 2 && whole === 1)
    server.drain()
    for (const { name, client } of clients) {
      const text = await client.until((text) => text.includes('}'))
      t.equal(statusOf(text), 503, name)
      t.match(text, /\r\nretry-after: 1\r\n/, name)
      t.match(text, /does not wait for the rest/, name)
    }
    await until(() => server.inFlight === 1)
    running.next({ type: 'full', status: 200, headers: [], body: 'done' })
    running.complete()
    t.equal(statusOf(await complete.until((text) => text.endsWith('done'))), 200)
    await server.waitUntilIdle()
    t.equal(whole, 1, 'no other pipeline of a body has begun')
  })
})

t.test('an answer may take its time', async (t) => {
  // The server closes a connection on which it waits for bytes. It must not do so to one that waits for its answer.
  /** Ten seconds without a byte, and four until the server looks again. */
  const SLOW_ANSWER_MS = 15_000
  const FORM_LIMITS = { maxFields: 1, maxFieldBytes: 1024, maxFiles: 1 }

  const chunk = (text: string): string => `${text.length.toString(16)}\r\n${text}\r\n`
  const LAST_CHUNK = '0\r\n\r\n'
  const CHUNKED = 'transfer-encoding: chunked'
  const BODY = 'x'.repeat(20_000)

  t.test('a request that comes whole while its key is looked up, or while nobody reads it', async (t) => {
    const gate = Promise.withResolvers<void>()
    let begun = 0
    const handler: Handler = ({ body }) => {
      begun++
      return whole(`${body.length} bytes`).pipe(delay(SLOW_ANSWER_MS))
    }
    const slow = Object.assign(handler, { admit: () => gate.promise })
    /** Reads a form more slowly than it comes. */
    const read: Handler = ({ form }) => {
      let bytes = 0
      const reading = form!.read(FORM_LIMITS, async ({ content }) => {
        for await (const piece of content) {
          bytes += piece.length
          await after(100)
        }
      })
      return from(reading).pipe(
        map(() => bytes),
        switchMap((length) => whole(`${length} bytes`)),
        delay(SLOW_ANSWER_MS),
      )
    }
    const { port } = await serve(t, {
      'POST /slow': slow,
      'POST /form': { handler: read, maxFormBytes: 1024 * 1024 },
    })
    const form = [
      '--b\r\ncontent-disposition: form-data; name="f"; filename="f"\r\n\r\n',
      ...Array<string>(60).fill('x'.repeat(8000)),
      '\r\n--b--\r\n',
    ]
    const requests = [
      head('POST /slow', 'content-length: 20000') + BODY,
      head('POST /slow', CHUNKED) + chunk(BODY) + LAST_CHUNK,
      head('POST /form', 'content-type: multipart/form-data; boundary=b', CHUNKED) +
        form.map(chunk).join('') +
        LAST_CHUNK,
    ]
    const raws = requests.map((request) => clientOn(t, port).send(request))
    await until(() => begun === 2)
    gate.resolve()
    const texts = await Promise.all(raws.map((raw) => raw.until(isWhole)))
    t.same(
      texts.map((text) => text.slice(text.lastIndexOf('\n') + 1)),
      ['20000 bytes', '20000 bytes', '480000 bytes'],
    )
  })
})

t.test('long files are cut when they fail', async (t) => {
  // A long reply made piece by piece: whole, or visibly not; and made no further than its client takes it.
  /** How a reply in chunks ends when it is whole. */
  const LAST_CHUNK = '\r\n0\r\n\r\n'
  const PIECE = 'x'.repeat(64 * 1024)
  /** More than two kernels take of a connection that nobody reads from. */
  const MANY_PIECES = 512

  t.test('a long reply', async (t) => {
    let made = 0
    const signals: AbortSignal[] = []
    const reply = (pieces: (signal: AbortSignal) => AsyncGenerator<string>) => () =>
      paceReply(async (signal) => {
        signals.push(signal)
        return { headers: [['content-type', 'text/csv']], pieces: pieces(signal) }
      })
    const { port } = await serve(t, {
      'GET /whole': reply(async function* () {
        yield 'one,'
        yield 'two'
      }),
      'GET /broken': reply(async function* () {
        yield 'one,'
        yield 'two'
        throw new Error('the log has gone')
      }),
      'GET /never': () =>
        paceReply(async () => {
          throw new Failure('service_unavailable', 'Not now.')
        }),
      'GET /many': reply(async function* () {
        for (made = 0; made < MANY_PIECES; made++) yield PIECE
      }),
    })

    await t.test('ends with its mark when it is whole', async (t) => {
      const client = new RawClient(port).send(head('GET /whole'))
      const text = await client.until((received) => received.endsWith(LAST_CHUNK))
      t.match(text, /^HTTP\/1.1 200 OK\r\n[\s\S]*content-type: text\/csv/i)
      client.socket.destroy()
    })

    await t.test('is cut without it when it fails on the way', async (t) => {
      const client = new RawClient(port).send(head('GET /broken'))
      await client.gone
      t.notOk(client.text.endsWith(LAST_CHUNK), 'nobody takes it for the whole')
      await t.rejects(fetch(`http://127.0.0.1:${port}/broken`).then((response) => response.text()))
    })

    await t.test('is an error like any other when it fails before it begins', async (t) => {
      const response = await fetch(`http://127.0.0.1:${port}/never`)
      t.equal(response.status, 503)
      t.match(await response.json(), { error: { code: 'service_unavailable' } })
    })

    await t.test('waits for its client, and is given up when that has left', async (t) => {
      const client = new RawClient(port)
      client.socket.pause()
      client.send(head('GET /many'))
      let last = -1
      await until(() => {
        const rests = made > 0 && made === last
        last = made
        return rests
      })
      t.ok(made < MANY_PIECES, `${made} pieces for nobody`)
      t.notOk(signals.at(-1)!.aborted)
      client.socket.destroy()
      await until(() => signals.at(-1)!.aborted)
      t.ok(made < MANY_PIECES)
    })
  })
})

t.test('a fault of the gateway is internal error in every shape', async (t) => {
  // The one failure that no client can provoke: the pipeline here fails by itself.
  const SECRET = 'what only the log may know'
  const message = String
  const openAiShape = { error: { message, type: 'server_error', code: 'internal_error' } }
  const SHAPES: Readonly<Record<string, object>> = {
    '/v1/chat/completions': openAiShape,
    '/v1/responses': openAiShape,
    '/v1/messages': { type: 'error', error: { type: 'api_error', message } },
    '/v1beta/models/m:generateContent': { error: { code: 500, message, status: 'INTERNAL' } },
  }

  t.test('a pipeline that fails, at once or later, answers 500 in the shape of its protocol', async (t) => {
    for (const [path, shape] of Object.entries(SHAPES)) {
      const thrown = () => {
        throw new Error(SECRET)
      }
      for (const handler of [thrown, () => throwError(() => new Error(SECRET))]) {
        const { port, unforeseen } = await serve(t, { [`POST ${path}`]: handler })
        const response = await fetch(`http://${HOST}:${port}${path}`, { method: 'POST', body: '{}' })
        t.equal(response.status, 500, path)
        t.match(response.headers.get('x-gateway-trace'), /^req_/)
        const text = await response.text()
        t.match(JSON.parse(text), shape, path)
        t.notMatch(text, SECRET, 'nothing of the cause reaches the client')
        t.match(unforeseen, [{ message: SECRET }], 'the log has it')
      }
    }
  })
})
