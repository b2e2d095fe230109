import t from 'tap'
import { parseOrigin } from '../../../src/upstream/client.ts'
import { MAX_REMEMBERED_ORIGINS } from '../../../src/upstream/limits.ts'
import { closedPort } from '../../support/http-server.ts'
import { answer, clientFor, serverFor } from './fixture.ts'
import { readRequests } from './raw-server.ts'
import { getRequest, run } from './recorded-calls.ts'

const RESPONSES: Record<string, string> = {
  'content-length': answer('hello', 'content-type: text/plain'),
  chunked:
    'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n6\r\n world\r\n0\r\nx: y\r\n\r\n',
  'ended by close': 'HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nhello',
}

for (const [name, text] of Object.entries(RESPONSES)) {
  for (const way of ['reset', 'reset in the same read', 'end'] as const) {
    t.test(`${name}: ${way} after each byte: never taken for whole, the client goes on`, async (t) => {
      const client = clientFor(t)
      const server = await serverFor(t, (socket) => {
        readRequests(socket, (request) => {
          const bytes = Number(request.split(' ')[1]!.slice(1))
          socket.write(text.slice(0, bytes))
          if (way === 'end') socket.end()
          else if (way === 'reset') setTimeout(() => socket.resetAndDestroy(), 2)
          else socket.resetAndDestroy()
        })
      })
      const headBytes = text.indexOf('\r\n\r\n') + 4
      const byClose = name === 'ended by close' && way === 'end'
      const limit = name === 'ended by close' ? text.length + 1 : text.length
      const wrong: unknown[] = []
      const calls = Array.from({ length: limit }, async (_, bytes) => {
        const { ended, failure, status, body } = await run(client, getRequest(server.origin, `/${bytes}`))
        const whole = byClose && bytes >= headBytes
        const kind = way !== 'end' ? 'reset' : bytes === 0 ? 'closed' : 'truncated'
        const right = whole
          ? ended && body === text.slice(headBytes, bytes)
          : failure?.kind === kind && failure.sent && failure.headReceived === status > 0
        if (!right) wrong.push({ bytes, ended, kind: failure?.kind, body })
      })
      await Promise.all(calls)
      t.same(wrong, [])
      t.equal(client.stats().inFlight, 0)
      const { status } = await run(client, getRequest(server.origin, `/${text.length}`))
      t.equal(status, 200)
    })
  }
}

for (const host of ['127.0.0.1', 'localhost']) {
  t.test(`nobody listens on ${host}`, async (t) => {
    const client = clientFor(t)
    const { failure } = await run(
      client,
      getRequest(parseOrigin(`http://${host}:${await closedPort()}`).origin),
    )
    t.match(failure, {
      kind: 'connect',
      sent: false,
      headReceived: false,
      reused: false,
      name: 'UpstreamFailure',
    })
    t.match(failure?.message, /ECONNREFUSED/)
  })
}

t.test('origins without connections are forgotten when there are too many', async (t) => {
  const client = clientFor(t)
  const port = await closedPort()
  for (let batch = 0; batch < 12; batch++) {
    const calls = Array.from({ length: 100 }, (_, i) =>
      run(client, getRequest(parseOrigin(`http://127.0.${batch + 1}.${i + 1}:${port}`).origin)),
    )
    for (const { failure } of await Promise.all(calls)) if (failure?.kind !== 'connect') t.fail('not refused')
  }
  t.ok(client.stats().origins <= MAX_REMEMBERED_ORIGINS)
  t.equal(client.stats().open, 0)
})

t.test('a name that cannot exist', async (t) => {
  const client = clientFor(t)
  // A label over 63 bytes: refused by the resolver itself, whatever network the machine has.
  const host = `${'a'.repeat(64)}.invalid`
  const { failure } = await run(client, getRequest(parseOrigin(`http://${host}`).origin))
  t.match(failure, { kind: 'dns', sent: false })
})

t.test('a malformed answer closes the connection and says so', async (t) => {
  const client = clientFor(t)
  const server = await serverFor(t, (socket) =>
    readRequests(socket, () => socket.write('HTTP/1.1 200 OK\nx: y\n\n')),
  )
  const { failure } = await run(client, getRequest(server.origin))
  t.match(failure, { kind: 'malformed', sent: true, headReceived: false })
  t.match(client.stats(), { open: 0, inFlight: 0 })
})

t.test('a body over its bound is cut off', async (t) => {
  const client = clientFor(t)
  const server = await serverFor(t, (socket) =>
    readRequests(socket, () => socket.write('HTTP/1.1 200 OK\r\n\r\nhello')),
  )
  const log = await run(client, getRequest(server.origin, '/', { maxBodyBytes: 4 }))
  t.match(log, { body: 'hell', failure: { kind: 'too_large', headReceived: true } })
})

t.test('closing the client fails what is in flight and whatever comes later', async (t) => {
  const client = clientFor(t)
  const server = await serverFor(t, (socket) => socket.resume())
  const running = run(client, getRequest(server.origin))
  client.close()
  t.match((await running).failure, { kind: 'closed', sent: false })
  t.match((await run(client, getRequest(server.origin))).failure, { kind: 'closed', sent: false })
})
