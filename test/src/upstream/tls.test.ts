/** Connections by TLS. */
import { execFile } from 'node:child_process'
import { connect, createServer as createPlainServer, createServer } from 'node:net'
import { text } from 'node:stream/consumers'
import t, { type Test } from 'tap'
import { answer, clientFor, until } from './fixture.ts'
import { listen, type RawServer } from './raw-server.ts'
import { getRequest, LoggingHandler, postRequest, run } from './recorded-calls.ts'
import { startTlsServer, TEST_CA, TEST_CA_PATH, type TlsServer, type TlsServerOptions } from './tls-server.ts'

t.test('tls', async (t) => {
  const tlsServer = (
    t: Test,
    reply: (request: string) => string,
    options?: TlsServerOptions,
  ): Promise<TlsServer> =>
    startTlsServer(t, (socket, request) => socket.write(reply(request), 'latin1'), options)

  t.test('a call over TLS offers HTTP/1.1 alone and names the server', async (t) => {
    const client = clientFor(t, { ca: [TEST_CA] })
    const server = await tlsServer(t, (request) => answer(request.split(' ')[1]!))
    for (let i = 0; i < 5; i++)
      t.match(await run(client, getRequest(server.origin, `/${i}`)), { body: `/${i}` })
    t.same(server.handshakes, [{ resumed: false, alpn: 'http/1.1', servername: 'localhost' }])
    t.match(client.readStats(), { opened: 1, reused: 4 })
  })

  for (const maxVersion of ['TLSv1.2', 'TLSv1.3'] as const) {
    t.test(`${maxVersion}: a later connection resumes the session`, async (t) => {
      const client = clientFor(t, { ca: [TEST_CA], maxIdlePerOrigin: 0 })
      const server = await tlsServer(t, () => answer('ok'), { maxVersion })
      for (let i = 0; i < 3; i++) t.match(await run(client, getRequest(server.origin)), { body: 'ok' })
      t.same(
        server.handshakes.map(({ resumed }) => resumed),
        [false, true, true],
      )
    })
  }

  t.test('an address is checked against the certificate, and no name is sent', async (t) => {
    const client = clientFor(t, { ca: [TEST_CA] })
    const server = await tlsServer(t, () => answer('ok'), { host: '127.0.0.1' })
    t.match(await run(client, getRequest(server.origin)), { body: 'ok' })
    t.equal(server.handshakes[0]!.servername, false)
  })

  /** Calls from a process of its own: Node reads the variable only when it starts. */
  async function callElsewhere(origin: string, options: string): Promise<string> {
    const client = JSON.stringify(new URL('../../../src/upstream/client.ts', import.meta.url))
    const program = `
    import { parseOrigin, renderHead, UpstreamClient } from ${client}
    const { origin } = parseOrigin(${JSON.stringify(origin)})
    const client = new UpstreamClient(${options})
    const head = renderHead('GET', '/', origin.authority, [], null)
    client.send({ origin, head, body: null, deadlineMs: 10_000 }, {
      onHead: (status) => process.stdout.write(String(status)),
      onData() {},
      onEnd: () => client.close(),
      onError: (failure) => process.stdout.write(failure.kind),
    })`
    const child = execFile(process.execPath, ['--input-type=module', '-e', program], {
      env: { ...process.env, NODE_EXTRA_CA_CERTS: TEST_CA_PATH },
      timeout: 60_000,
    })
    return text(child.stdout!)
  }

  t.test('NODE_EXTRA_CA_CERTS is honoured, with an authority of its own besides too', async (t) => {
    const server = await tlsServer(t, () => answer('ok'))
    const url = `https://${server.origin.authority}`
    t.same(await Promise.all([callElsewhere(url, '{}'), callElsewhere(url, '{ ca: [] }')]), ['200', '200'])
  })

  t.test('an unknown authority is refused before a byte of the request is sent', async (t) => {
    const client = clientFor(t)
    let requests = 0
    const server = await tlsServer(t, () => {
      requests++
      return answer('ok')
    })
    const { failure } = await run(client, getRequest(server.origin))
    t.match(failure, { kind: 'tls', sent: false, headReceived: false })
    await until(() => server.sockets.size === 0)
    t.equal(requests, 0)
  })

  t.test("another server's certificate is refused", async (t) => {
    const client = clientFor(t, { ca: [TEST_CA] })
    const server = await tlsServer(t, () => answer('ok'), { certificate: 'other' })
    t.match((await run(client, getRequest(server.origin))).failure, { kind: 'tls', sent: false })
  })

  t.test('a server that offers only HTTP/2 is refused', async (t) => {
    const client = clientFor(t, { ca: [TEST_CA] })
    const server = await tlsServer(t, () => answer('ok'), { ALPNProtocols: ['h2'] })
    t.match((await run(client, getRequest(server.origin))).failure, { kind: 'tls', sent: false })
  })

  t.test('a server that speaks no TLS, and one that hangs up in the handshake', async (t) => {
    const client = clientFor(t, { ca: [TEST_CA] })
    for (const reply of ['HTTP/1.1 400 Bad Request\r\n\r\n', '']) {
      const server = await listen(
        createPlainServer((socket) => socket.once('data', () => socket.end(reply))),
        'https',
        'localhost',
      )
      t.teardown(() => server.close())
      t.match((await run(client, getRequest(server.origin))).failure, { kind: 'tls', sent: false })
    }
  })

  t.test('large bodies both ways, and a pause, over TLS', async (t) => {
    const client = clientFor(t, { ca: [TEST_CA] })
    const size = 4 * 1024 * 1024
    const server = await tlsServer(t, (request) => answer(request.slice(request.indexOf('\r\n\r\n') + 4)))
    const handler = new LoggingHandler()
    let received = 0
    let different = 0
    const body = Buffer.from('0123456789abcdef'.repeat(size / 16))
    const call = client.send(postRequest(server.origin, body), handler)
    handler.onData = (bytes) => {
      if (!body.subarray(received, received + bytes.length).equals(bytes)) different++
      received += bytes.length
      call.pause()
      setImmediate(() => call.resume())
    }
    t.match(await handler.finished, { status: 200, ended: true, failure: null })
    t.equal(received, size)
    t.equal(different, 0)
    t.equal(client.readStats().idle, 1)
  })

  t.test('many calls at once over TLS: no foreign byte', async (t) => {
    const client = clientFor(t, { ca: [TEST_CA] })
    const server = await tlsServer(t, (request) => {
      const tag = request.split(' ')[1]!
      return `HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n${`${tag.length.toString(16)}\r\n${tag}\r\n`.repeat(50)}0\r\n\r\n`
    })
    const calls = Array.from({ length: 60 }, async (_, i) => {
      const log = await run(client, getRequest(server.origin, `/tag-${i}`))
      return log.body === `/tag-${i}`.repeat(50)
    })
    t.same(new Set(await Promise.all(calls)), new Set([true]))
  })

  t.test('abort over TLS reaches the upstream', async (t) => {
    const client = clientFor(t, { ca: [TEST_CA] })
    const server = await tlsServer(t, () => 'HTTP/1.1 200 OK\r\n\r\ndata')
    const handler = new LoggingHandler()
    const call = client.send(getRequest(server.origin), handler)
    await handler.headArrived
    call.abort()
    t.match(client.readStats(), { open: 0, inFlight: 0 })
    await until(() => server.sockets.size === 0)
    t.match(handler.log, { ended: false, failure: null })
  })
})

t.test('tls records', async (t) => {
  /** Longer than the pause between two records of the server behind. */
  const GATHER_MS = 30

  /** A relay that lets the client's bytes through at once, and gathers what the server says into single writes. */
  async function gatheringRelay(t: Test, port: number): Promise<RawServer> {
    const server = createServer((client) => {
      const upstream = connect(port, '127.0.0.1')
      let held: Buffer[] = []
      let timer: NodeJS.Timeout | undefined
      const handOn = (): void => {
        client.write(Buffer.concat(held))
        held = []
      }
      client.pipe(upstream)
      upstream.on('data', (bytes: Buffer) => {
        held.push(bytes)
        clearTimeout(timer)
        timer = setTimeout(handOn, GATHER_MS)
      })
      upstream.on('error', () => client.destroy())
      upstream.on('close', () => {
        clearTimeout(timer)
        handOn()
        client.end()
      })
      client.on('close', () => upstream.destroy())
    })
    const relay = await listen(server, 'https', 'localhost')
    t.teardown(() => relay.close())
    return relay
  }

  t.test('records that come in one read are handed on in few pieces', async (t) => {
    const client = clientFor(t, { ca: [TEST_CA] })
    const frames = Array.from({ length: 60 }, (_, i) => `data: ${i}\n\n`)
    const server = await startTlsServer(t, (socket) => {
      socket.write('HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n')
      const next = (i: number): void => {
        if (i < frames.length) socket.write(frames[i]!, () => next(i + 1))
        else socket.end()
      }
      next(0)
    })
    const relay = await gatheringRelay(t, server.port)
    const log = await run(client, getRequest(relay.origin))
    t.match(log, { body: frames.join(''), ended: true })
    t.ok(log.pieces.length < frames.length / 4, `${log.pieces.length} pieces`)
  })

  t.test(
    'a record left in the read that ended a response is never the answer to the next call',
    async (t) => {
      const client = clientFor(t, { ca: [TEST_CA] })
      let requests = 0
      const server = await startTlsServer(t, (socket) => {
        if (requests++ % 2 === 0) socket.write(answer('first'), () => socket.write(answer('smuggled')))
        else socket.write(answer('own'))
      })
      const relay = await gatheringRelay(t, server.port)
      for (let round = 0; round < 5; round++) {
        const second = new LoggingHandler()
        const first = new LoggingHandler()
        first.onEnd = () => client.send(getRequest(relay.origin), second)
        client.send(getRequest(relay.origin), first)
        t.match(await second.finished, { body: 'own', failure: null })
        t.equal(first.log.body, 'first')
      }
    },
  )

  t.test('a call from inside onEnd keeps the connection when nothing is left over', async (t) => {
    const client = clientFor(t, { ca: [TEST_CA] })
    const server = await startTlsServer(t, (socket) => socket.write(answer('ok')))
    const last = new LoggingHandler()
    const send = (left: number): void => {
      const handler = left === 0 ? last : new LoggingHandler()
      if (left > 0) handler.onEnd = () => send(left - 1)
      client.send(getRequest(server.origin), handler)
    }
    send(10)
    t.match(await last.finished, { body: 'ok', failure: null })
    t.match(client.readStats(), { opened: 1, reused: 10, idle: 1 })
  })

  t.test('chains of calls at once keep their connections', async (t) => {
    const client = clientFor(t, { ca: [TEST_CA] })
    const server = await startTlsServer(t, (socket, request) => socket.write(answer(request.split(' ')[1]!)))
    const chain = async (name: number): Promise<void> => {
      for (let i = 0; i < 50; i++) {
        const { body } = await run(client, getRequest(server.origin, `/${name}/${i}`))
        if (body !== `/${name}/${i}`) t.fail('a foreign answer', { body, name, i })
      }
    }
    await Promise.all([0, 1, 2, 3, 4, 5, 6, 7].map(chain))
    t.match(client.readStats(), { opened: 8, reused: 392, inFlight: 0 })
  })

  t.test('a call waiting for its turn can be aborted, and fails with its client', async (t) => {
    const client = clientFor(t, { ca: [TEST_CA] })
    let requests = 0
    const server = await startTlsServer(t, (socket) => {
      requests++
      socket.write(answer('ok'))
    })
    const first = new LoggingHandler()
    const aborted = new LoggingHandler()
    const done = Promise.withResolvers<void>()
    first.onEnd = () => {
      client.send(getRequest(server.origin), aborted).abort()
      done.resolve()
    }
    client.send(getRequest(server.origin), first)
    await done.promise
    t.match(client.readStats(), { open: 0, inFlight: 0 })
    await until(() => server.sockets.size === 0)
    t.equal(requests, 1)
    const refused = new LoggingHandler()
    const next = new LoggingHandler()
    next.onEnd = () => {
      client.send(getRequest(server.origin), refused)
      client.close()
    }
    client.send(getRequest(server.origin), next)
    t.match((await refused.finished).failure, { kind: 'closed', sent: false, reused: true })
    t.match(aborted.log, { ended: false, failure: null })
  })
})
