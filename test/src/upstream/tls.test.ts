import { execFile } from 'node:child_process'
import { createServer as createPlainServer } from 'node:net'
import { text } from 'node:stream/consumers'
import t, { type Test } from 'tap'
import { answer, clientFor, until } from './fixture.ts'
import { listen } from './raw-server.ts'
import { getRequest, LoggingHandler, postRequest, run } from './recorded-calls.ts'
import { startTlsServer, TEST_CA, TEST_CA_PATH, type TlsServer, type TlsServerOptions } from './tls-server.ts'

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
  t.match(client.stats(), { opened: 1, reused: 4 })
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
  t.equal(client.stats().idle, 1)
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
  t.match(client.stats(), { open: 0, inFlight: 0 })
  await until(() => server.sockets.size === 0)
  t.match(handler.log, { ended: false, failure: null })
})
