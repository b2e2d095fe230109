/** Requests to upstreams, from the origin to the last byte of an answer. */
import { createServer } from 'node:net'
import { lastValueFrom, map, take, toArray } from 'rxjs'
import t from 'tap'
import {
  buildHeadPrefix,
  finishHead,
  type Origin,
  parseOrigin,
  renderHead,
  type UpstreamClient,
  UpstreamFailure,
  type UpstreamHandler,
} from '../../../src/upstream/client.ts'
import { READ_BUFFER_BYTES } from '../../../src/upstream/limits.ts'
import { observeUpstream, type UpstreamEvent } from '../../../src/upstream/observe.ts'
import { joinHead, type RequestHead } from '../../../src/upstream/request/head.ts'
import { answer, clientFor, replyingServer, serverFor, until } from './fixture.ts'
import { listen, readRequests } from './raw-server.ts'
import { getRequest, LoggingHandler, postRequest, run } from './recorded-calls.ts'

t.test('origin', async (t) => {
  t.test('base URLs', async (t) => {
    t.same(parseOrigin('https://api.example.com/v1'), {
      origin: {
        key: 'https://api.example.com:443',
        tls: true,
        host: 'api.example.com',
        port: 443,
        servername: 'api.example.com',
        authority: 'api.example.com',
      },
      pathPrefix: '/v1',
    })
    t.same(parseOrigin('http://LOCALHOST:8080/'), {
      origin: {
        key: 'http://localhost:8080',
        tls: false,
        host: 'localhost',
        port: 8080,
        authority: 'localhost:8080',
      },
      pathPrefix: '',
    })
  })

  t.test('addresses have no name for SNI', async (t) => {
    t.same(parseOrigin('https://127.0.0.1/a/b/').origin, {
      key: 'https://127.0.0.1:443',
      tls: true,
      host: '127.0.0.1',
      port: 443,
      authority: '127.0.0.1',
    })
    t.match(parseOrigin('https://[::1]:8443'), {
      origin: { host: '::1', port: 8443, authority: '[::1]:8443', servername: undefined },
      pathPrefix: '',
    })
  })

  t.test('the path keeps its escapes and loses final slashes', async (t) => {
    t.equal(parseOrigin('https://a/x%20y/z//').pathPrefix, '/x%20y/z')
  })

  t.test('the same place has the same key', async (t) => {
    t.equal(parseOrigin('https://A.example/x').origin.key, parseOrigin('https://a.example:443/y').origin.key)
    t.not(parseOrigin('https://a.example:80').origin.key, parseOrigin('http://a.example').origin.key)
  })

  const REFUSED: Record<string, RegExp> = {
    '': /not a valid/,
    'api.example.com/v1': /not a valid/,
    '/v1': /not a valid/,
    'ftp://a': /http/,
    'file:///etc/passwd': /http/,
    'https://user:secret@a': /credentials/,
    'https://user@a': /credentials/,
    'https://a/?key=secret': /query/,
    'https://a/#b': /fragment/,
    'http://a:0': /port/,
    'http://a:65536': /not a valid/,
  }

  for (const [url, message] of Object.entries(REFUSED)) {
    t.test(`"${url}" is refused`, async (t) => {
      t.throws(() => parseOrigin(url), { name: 'TypeError', message })
      try {
        parseOrigin(url)
      } catch (error) {
        t.notMatch(String(error), /secret/)
      }
    })
  }
})

t.test('head', async (t) => {
  const textOf = (head: RequestHead): string => joinHead(head).toString('latin1')

  t.test('a head with a body', async (t) => {
    t.equal(
      textOf(
        renderHead(
          'POST',
          '/v1/chat/completions?a=b',
          'api.example.com',
          [['Authorization', 'Bearer k']],
          12,
        ),
      ),
      'POST /v1/chat/completions?a=b HTTP/1.1\r\nhost: api.example.com\r\nAuthorization: Bearer k\r\ncontent-length: 12\r\n\r\n',
    )
  })

  t.test('a head without one', async (t) => {
    t.equal(textOf(renderHead('GET', '/', 'a:81', [], null)), 'GET / HTTP/1.1\r\nhost: a:81\r\n\r\n')
  })

  t.test('a constant prefix finished per call gives the same', async (t) => {
    const prefix = buildHeadPrefix('POST', '/x', 'a', [['accept', '*/*']])
    t.equal(textOf(finishHead(prefix, 5)), textOf(renderHead('POST', '/x', 'a', [['accept', '*/*']], 5)))
    const headers = [
      ['accept', '*/*'],
      ['x-trace', '1'],
      ['x-other', '2'],
    ] as const
    t.equal(
      textOf(finishHead(prefix, 0, headers.slice(2), 'x-trace: 1\r\n')),
      textOf(renderHead('POST', '/x', 'a', headers, 0)),
    )
  })

  const render = (over: {
    method?: string
    path?: string
    authority?: string
    name?: string
    value?: string
  }) => {
    const { method = 'POST', path = '/', authority = 'a', name = 'x', value = 'y' } = over
    return textOf(renderHead(method, path, authority, [[name, value]], 0))
  }

  t.test('nothing can end a line or begin another', async (t) => {
    for (const evil of ['\r', '\n', '\0', '\r\nhost: b', '\u010a', '\u0a0d', '\u{1f600}']) {
      t.throws(() => render({ path: `/${evil}` }), TypeError)
      t.throws(() => render({ authority: `a${evil}` }), TypeError)
      t.throws(() => render({ method: `GET${evil}` }), TypeError)
      t.throws(() => render({ name: `x${evil}` }), TypeError)
      t.throws(() => render({ value: `y${evil}` }), TypeError)
      t.throws(() => finishHead(buildHeadPrefix('GET', '/', 'a', []), 0, [['x', `y${evil}`]]), TypeError)
    }
  })

  t.test('illegal parts are refused', async (t) => {
    for (const path of ['', 'x', 'http://a/', '/a b', '/a#b', '/\u00e9'])
      t.throws(() => render({ path }), TypeError)
    for (const method of ['', 'get', 'G ET', 'CONNECT']) t.throws(() => render({ method }), TypeError)
    for (const name of ['', 'a b', 'a:', '\u00e9', '(a)']) t.throws(() => render({ name }), TypeError)
    for (const authority of ['', 'a b']) t.throws(() => render({ authority }), TypeError)
    for (const length of [-1, 1.5, Number.NaN, Number.MAX_SAFE_INTEGER + 1]) {
      t.throws(() => renderHead('POST', '/', 'a', [], length), TypeError)
    }
  })

  t.test('what frames the message belongs to the client', async (t) => {
    for (const name of [
      'Content-Length',
      'transfer-encoding',
      'HOST',
      'Connection',
      'Upgrade',
      'TE',
      'Expect',
    ]) {
      t.throws(() => render({ name }), { message: /client itself/ })
    }
  })

  t.test('an error never shows a value: it may be a key', async (t) => {
    try {
      render({ name: 'authorization', value: 'Bearer secret\n' })
      t.fail('not refused')
    } catch (error) {
      t.notMatch(String(error), /secret/)
    }
  })

  t.test('tabs and obs-text in values pass', async (t) => {
    t.match(render({ value: 'caf\u00e9\tau lait' }), 'caf\u00e9\tau lait')
  })
})

t.test('flow', async (t) => {
  const BODY_BYTES = 64 * 1024 * 1024
  const PIECE = Buffer.alloc(65_536, 'a')

  t.test('while paused nothing is read, and in the end the upstream cannot write', async (t) => {
    const client = clientFor(t)
    let written = 0
    const server = await serverFor(t, (socket) => {
      const more = (): void => {
        while (written < BODY_BYTES) {
          written += PIECE.length
          if (!socket.write(PIECE)) return
        }
      }
      readRequests(socket, () => {
        socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${BODY_BYTES}\r\n\r\n`)
        socket.on('drain', more)
        more()
      })
    })
    const handler = new LoggingHandler()
    let received = 0
    let largest = 0
    const call = client.send(getRequest(server.origin), handler)
    handler.onHead = () => call.pause()
    handler.onData = (bytes) => {
      received += bytes.length
      largest = Math.max(largest, bytes.length)
    }
    let before = -1
    await until(() => {
      const stalled = written > 0 && written === before
      before = written
      return stalled
    })
    t.ok(received <= READ_BUFFER_BYTES, 'only what was read with the head came')
    t.ok(written < BODY_BYTES / 2, 'the upstream is held back')
    call.resume()
    await handler.finished
    t.equal(received, BODY_BYTES)
    t.ok(largest <= READ_BUFFER_BYTES)
  })

  t.test('pausing and resuming at every piece loses nothing', async (t) => {
    const client = clientFor(t)
    const text = Array.from({ length: 20_000 }, (_, i) => `${i},`).join('')
    const server = await serverFor(t, (socket) => {
      readRequests(socket, () =>
        socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${text.length}\r\n\r\n${text}`),
      )
    })
    const handler = new LoggingHandler()
    let body = ''
    const call = client.send(getRequest(server.origin), handler)
    handler.onData = (bytes) => {
      body += Buffer.from(bytes).toString('latin1')
      call.pause()
      setImmediate(() => call.resume())
    }
    await handler.finished
    t.equal(body, text)
    t.equal(client.readStats().idle, 1, 'the connection is kept, and read again')
  })

  t.test('paused before it connects: nothing comes until resumed', async (t) => {
    const client = clientFor(t)
    let requests = 0
    const server = await serverFor(t, (socket) => {
      readRequests(socket, () => {
        requests++
        socket.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok')
      })
    })
    const handler = new LoggingHandler()
    const call = client.send(getRequest(server.origin), handler)
    call.pause()
    await until(() => requests === 1)
    for (let turns = 0; turns < 20; turns++) await new Promise((resolve) => setImmediate(resolve))
    t.equal(handler.log.status, 0)
    call.resume()
    t.match(await handler.finished, { status: 200, body: 'ok', ended: true })
  })

  t.test('many chunks in one read come as one piece', async (t) => {
    const client = clientFor(t)
    const frames = Array.from({ length: 100 }, (_, i) => `data: ${i}\n\n`)
    const chunks = frames.map((frame) => `${frame.length.toString(16)}\r\n${frame}\r\n`).join('')
    const server = await serverFor(t, (socket) => {
      readRequests(socket, () =>
        socket.write(`HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n${chunks}0\r\n\r\n`),
      )
    })
    const log = await run(client, getRequest(server.origin))
    t.same(log.pieces, [frames.join('')])
  })

  t.test('a body of 32 MiB arrives whole, and slowly taken does not pile up', async (t) => {
    const client = clientFor(t)
    const body = Buffer.alloc(32 * 1024 * 1024, 'prompt ')
    let received = 0
    let different = 0
    const server = await serverFor(t, (socket) => {
      let headBytes = -1
      socket.on('data', (bytes: Buffer) => {
        if (headBytes < 0) headBytes = bytes.indexOf('\r\n\r\n') + 4
        const data = received === 0 ? bytes.subarray(headBytes) : bytes
        if (!data.equals(body.subarray(received, received + data.length))) different++
        received += data.length
        socket.pause()
        setImmediate(() => socket.resume())
        if (received === body.length) socket.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok')
      })
    })
    const log = await run(client, postRequest(server.origin, body))
    t.match(log, { body: 'ok', ended: true })
    t.equal(received, body.length)
    t.equal(different, 0)
    t.equal(client.readStats().idle, 1)
  })

  for (const size of [1, 16_000, 16_384, 20_000, 131_072, 131_073, 300_000]) {
    t.test(`a body of ${size} bytes arrives as it is`, async (t) => {
      const client = clientFor(t)
      const body = Buffer.from(Array.from({ length: size }, (_, i) => (i * 31) & 0xff))
      let got = ''
      const server = await serverFor(t, (socket) => {
        readRequests(socket, (request) => {
          got = request.slice(request.indexOf('\r\n\r\n') + 4)
          socket.write('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n')
        })
      })
      const logs = await Promise.all([0, 1, 2].map(() => run(client, postRequest(server.origin, body))))
      t.ok(logs.every((log) => log.ended))
      t.ok(got === body.toString('latin1'))
    })
  }
})

t.test('time limits', async (t) => {
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
})

t.test('abort', async (t) => {
  t.test('abort before the first byte of the answer: the upstream sees the close', async (t) => {
    const client = clientFor(t)
    const server = await serverFor(t, (socket) => socket.resume())
    const handler = new LoggingHandler()
    const call = client.send(getRequest(server.origin), handler)
    await until(() => server.accepted() === 1)
    call.abort()
    t.match(client.readStats(), { open: 0, inFlight: 0 })
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
    t.match(client.readStats(), { open: 0, inFlight: 0 })
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
    t.match(client.readStats(), { open: 0, inFlight: 0 })
    t.match(await run(client, getRequest(server.origin)), { body: 'ok' })
    t.match(handler.log, { status: 0, ended: false, failure: null })
  })

  t.test('abort while a large request is on its way', async (t) => {
    const client = clientFor(t)
    const server = await serverFor(t, (socket) => socket.pause())
    const call = client.send(postRequest(server.origin, Buffer.alloc(32 * 1024 * 1024)), new LoggingHandler())
    await until(() => server.accepted() === 1)
    call.abort()
    t.match(client.readStats(), { open: 0, inFlight: 0 })
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
    t.equal(client.readStats().inFlight, 0)
    t.match(await run(client, getRequest(server.origin)), { body: 'hello', ended: true })
  })
})

t.test('handler throws', async (t) => {
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
      t.match(client.readStats(), { open: 0, inFlight: 0, handlerErrors: 1 })
      t.match(await run(client, getRequest(server.origin)), { body: 'ok', ended: true })
    })
  }

  t.test('onEnd throws: the connection is kept all the same', async (t) => {
    const client = clientFor(t)
    const server = await replyingServer(t, () => answer('ok'))
    const handler = await send(client, server.origin, 'onEnd')
    t.equal(handler.log.failure, null)
    t.match(client.readStats(), { open: 1, idle: 1, inFlight: 0, handlerErrors: 1 })
    t.match(await run(client, getRequest(server.origin)), { body: 'ok', ended: true })
    t.equal(server.accepted(), 1)
  })

  t.test('onError throws: noted, no more', async (t) => {
    const client = clientFor(t)
    const server = await replyingServer(t, () => 'HTTP/9\r\n')
    await send(client, server.origin, 'onError')
    t.match(client.readStats(), { open: 0, inFlight: 0, handlerErrors: 1 })
  })
})

t.test('observe', async (t) => {
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
    t.equal(client.readStats().inFlight, 0)
    t.same(await lastValueFrom(call), ['200 5', 'hello'])
    t.same(await lastValueFrom(call), ['200 5', 'hello'], 'each subscription is a call')
    t.match(client.readStats(), { idle: 1, inFlight: 0, opened: 1, reused: 1 })
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
    t.match(client.readStats(), { open: 0, inFlight: 0 })
    await until(() => server.sockets.size === 0)
  })

  t.test('an operator that has enough closes it too, from inside the event', async (t) => {
    const client = clientFor(t)
    const server = await serverFor(t, (socket) => {
      readRequests(socket, () => socket.write('HTTP/1.1 200 OK\r\n\r\nfirst'))
    })
    const events = observed(client, server.origin).pipe(map(describe), take(2), toArray())
    t.same(await lastValueFrom(events), ['200 undefined', 'first'])
    t.match(client.readStats(), { open: 0, inFlight: 0 })
    await until(() => server.sockets.size === 0)
  })
})
