/** Connections: kept, stale, broken, exhausted. */
import { execFile } from 'node:child_process'
import dns from 'node:dns'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { parseOrigin, type UpstreamHandler } from '../../../src/upstream/client.ts'
import { classifyConnectError } from '../../../src/upstream/connection/socket.ts'
import {
  MAX_REMEMBERED_ORIGINS,
  READ_BUFFER_BYTES,
  RESERVED_DESCRIPTORS,
} from '../../../src/upstream/limits.ts'
import { closedPort } from '../../support/http-server.ts'
import type { Ends } from './call-without-files.ts'
import { answer, clientFor, replyingServer, serverFor, until } from './fixture.ts'
import { readRequests } from './raw-server.ts'
import { getRequest, LoggingHandler, postRequest, run } from './recorded-calls.ts'

t.test('keep alive', async (t) => {
  t.test('calls one after another share a connection', async (t) => {
    const client = clientFor(t)
    const server = await replyingServer(t, (request) => answer(request.split(' ')[1]!))
    for (let i = 0; i < 20; i++) {
      const log = await run(client, getRequest(server.origin, `/call/${i}`))
      t.match(log, { status: 200, body: `/call/${i}`, ended: true })
    }
    t.equal(server.accepted(), 1)
    t.match(client.readStats(), { open: 1, idle: 1, inFlight: 0, opened: 1, reused: 19 })
  })

  t.test('a call from inside onEnd gets the connection just freed', async (t) => {
    const client = clientFor(t)
    const server = await replyingServer(t, (request) => answer(request.split(' ')[1]!))
    const last = new LoggingHandler()
    const chain = (left: number): UpstreamHandler => {
      const handler = new LoggingHandler()
      handler.onEnd = () => {
        client.send(getRequest(server.origin, `/${left}`), left === 0 ? last : chain(left - 1))
      }
      return handler
    }
    client.send(getRequest(server.origin, '/first'), chain(10))
    t.match(await last.finished, { body: '/0', ended: true })
    t.equal(server.accepted(), 1)
  })

  t.test('500 tagged calls at once: no foreign byte', async (t) => {
    const client = clientFor(t)
    const server = await replyingServer(t, (request) => {
      const tag = request.split(' ')[1]!
      const chunk = `${tag.length.toString(16)}\r\n${tag}\r\n`
      return `HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n${chunk.repeat(20)}0\r\n\r\n`
    })
    const calls = Array.from({ length: 500 }, async (_, i) => {
      const log = await run(client, getRequest(server.origin, `/tag-${i}`))
      return log.body === `/tag-${i}`.repeat(20)
    })
    t.same(new Set(await Promise.all(calls)), new Set([true]))
    t.equal(client.readStats().inFlight, 0)
  })

  t.test('the connection used last is used next', async (t) => {
    const client = clientFor(t)
    const sockets: number[] = []
    let opened = 0
    const server = await serverFor(t, (socket) => {
      const number = opened++
      readRequests(socket, () => {
        sockets.push(number)
        socket.write(answer('ok'))
      })
    })
    await Promise.all([0, 1, 2].map(() => run(client, getRequest(server.origin))))
    await run(client, getRequest(server.origin))
    for (let i = 0; i < 5; i++) await run(client, getRequest(server.origin))
    t.equal(new Set(sockets.slice(3)).size, 1)
    t.equal(client.readStats().idle, 3)
  })

  t.test('idle connections are bounded in number', async (t) => {
    const client = clientFor(t, { maxIdlePerOrigin: 2 })
    const server = await replyingServer(t, () => answer('ok'))
    await Promise.all(Array.from({ length: 10 }, () => run(client, getRequest(server.origin))))
    t.match(client.readStats(), { open: 2, idle: 2 })
    await until(() => server.sockets.size === 2)
  })

  t.test('idle connections are bounded in time', async (t) => {
    const client = clientFor(t, { idleConnectionMs: 30 })
    const server = await replyingServer(t, () => answer('ok'))
    await run(client, getRequest(server.origin))
    t.equal(client.readStats().idle, 1)
    await until(() => client.readStats().open === 0)
    await until(() => server.sockets.size === 0)
  })

  t.test("a server's own shorter limit wins", async (t) => {
    const client = clientFor(t)
    const server = await replyingServer(t, () => answer('ok', 'keep-alive: timeout=1'))
    await run(client, getRequest(server.origin))
    t.equal(client.readStats().open, 0, 'one second less the margin is nothing')
  })

  t.test('open connections are bounded, unused ones of other origins give way', async (t) => {
    const client = clientFor(t, { maxConnections: 2 })
    const held = await serverFor(t, (socket) => socket.resume())
    const quick = await replyingServer(t, () => answer('ok'))
    await run(client, getRequest(quick.origin))
    const first = client.send(getRequest(held.origin), new LoggingHandler())
    const second = client.send(getRequest(held.origin), new LoggingHandler())
    t.match(client.readStats(), { open: 2, idle: 0, inFlight: 2 })
    const { failure } = await run(client, getRequest(quick.origin))
    t.match(failure, { kind: 'exhausted', sent: false, headReceived: false, reused: false })
    first.abort()
    second.abort()
    t.match(await run(client, getRequest(quick.origin)), { ended: true })
  })

  const NOT_KEPT: Record<string, string> = {
    'Connection: close': answer('ok', 'connection: close'),
    'Connection: close in a list': answer('ok', 'connection: x, Close'),
    'HTTP/1.0': 'HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok',
    'bytes after the end': `${answer('ok')}x`,
    'a second response after the end': answer('ok') + answer('smuggled'),
  }

  for (const [name, text] of Object.entries(NOT_KEPT)) {
    t.test(`not kept: ${name}`, async (t) => {
      const client = clientFor(t)
      const server = await replyingServer(t, (_request, number) => (number === 0 ? text : answer('own')))
      t.match(await run(client, getRequest(server.origin)), { body: 'ok', ended: true })
      t.equal(client.readStats().open, 0)
      t.match(await run(client, getRequest(server.origin)), { body: 'own', ended: true })
      t.equal(server.accepted(), 2)
    })
  }

  t.test('a response that exactly fills the read buffer is not followed by another call', async (t) => {
    const client = clientFor(t)
    const bytes = READ_BUFFER_BYTES
    const frame = answer('').length + `${bytes}`.length - 1
    const server = await replyingServer(t, (_request, number) =>
      answer(number === 0 ? 'a'.repeat(bytes - frame) : 'own'),
    )
    const log = await run(client, getRequest(server.origin))
    t.equal(log.body.length, bytes - frame)
    if (log.pieces.length === 1) t.equal(client.readStats().idle, 0)
    t.match(await run(client, getRequest(server.origin)), { body: 'own' })
  })

  t.test('unasked bytes on an unused connection close it', async (t) => {
    const client = clientFor(t)
    const server = await replyingServer(t, () => answer('ok'))
    await run(client, getRequest(server.origin))
    t.equal(client.readStats().idle, 1)
    for (const socket of server.sockets) socket.write(answer('smuggled'))
    await until(() => client.readStats().open === 0)
    t.match(await run(client, getRequest(server.origin)), { body: 'ok' })
  })

  t.test('an early answer ends the call, but its connection is not used again', async (t) => {
    const client = clientFor(t)
    const server = await serverFor(t, (socket) => {
      socket.once('readable', () => socket.write('HTTP/1.1 413 Too Large\r\ncontent-length: 3\r\n\r\nbig'))
    })
    const body = Buffer.alloc(32 * 1024 * 1024)
    const log = await run(client, postRequest(server.origin, body))
    t.match(log, { status: 413, body: 'big', ended: true })
    t.equal(client.readStats().open, 0)
  })
})

t.test('stale connection', async (t) => {
  t.test('a connection closed by the server while unused is dropped; the next call opens one', async (t) => {
    const client = clientFor(t)
    const server = await replyingServer(t, () => answer('ok'))
    await run(client, getRequest(server.origin))
    for (const socket of server.sockets) socket.end()
    await until(() => client.readStats().open === 0)
    t.match(await run(client, getRequest(server.origin)), { body: 'ok', failure: null })
    t.equal(server.accepted(), 2)
  })

  t.test('one reset by the server while unused is dropped too', async (t) => {
    const client = clientFor(t)
    const server = await replyingServer(t, () => answer('ok'))
    await run(client, getRequest(server.origin))
    for (const socket of server.sockets) socket.resetAndDestroy()
    await until(() => client.readStats().open === 0)
    t.match(await run(client, getRequest(server.origin)), { body: 'ok', failure: null })
  })

  t.test(
    'found dead by the very first write: another connection takes the call, nobody notices',
    async (t) => {
      const client = clientFor(t)
      const server = await replyingServer(t, () => answer('ok'))
      await run(client, getRequest(server.origin))
      const { promise, resolve } = Promise.withResolvers<void>()
      for (const socket of server.sockets) {
        socket.once('close', resolve)
        socket.resetAndDestroy()
      }
      // In the same turn of the event loop: the reset lies in the kernel, this process has not seen it.
      const handler = new LoggingHandler()
      client.send(getRequest(server.origin), handler)
      await promise
      t.match(await handler.finished, { body: 'ok', failure: null })
      t.equal(server.accepted(), 2)
    },
  )

  t.test('closed by the server just as a call is sent: reported as sent and reused', async (t) => {
    const client = clientFor(t)
    let requests = 0
    const server = await serverFor(t, (socket) => {
      readRequests(socket, () => {
        if (requests++ === 0) socket.write(answer('ok'))
        else socket.end()
      })
    })
    await run(client, getRequest(server.origin))
    const { failure } = await run(client, getRequest(server.origin))
    t.match(failure, { kind: 'closed', sent: true, headReceived: false, reused: true })
    t.equal(requests, 2, 'not sent again by the client')
  })

  t.test('closed by the server without an answer on a fresh connection: not reused', async (t) => {
    const client = clientFor(t)
    const server = await serverFor(t, (socket) => readRequests(socket, () => socket.end()))
    const { failure } = await run(client, getRequest(server.origin))
    t.match(failure, { kind: 'closed', sent: true, headReceived: false, reused: false })
  })

  t.test('a call that wants its own connection takes none that was kept, and leaves it behind', async (t) => {
    const client = clientFor(t)
    const server = await replyingServer(t, () => answer('ok'))
    await run(client, getRequest(server.origin))
    t.match(await run(client, { ...getRequest(server.origin), onFreshConnection: true }), { body: 'ok' })
    t.equal(server.accepted(), 2)
    await run(client, getRequest(server.origin))
    t.equal(server.accepted(), 2)
    t.equal(client.readStats().idle, 2)
  })
})

t.test('broken connection', async (t) => {
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
        t.equal(client.readStats().inFlight, 0)
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
      for (const { failure } of await Promise.all(calls))
        if (failure?.kind !== 'connect') t.fail('not refused')
    }
    t.ok(client.readStats().origins <= MAX_REMEMBERED_ORIGINS)
    t.equal(client.readStats().open, 0)
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
    t.match(client.readStats(), { open: 0, inFlight: 0 })
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
})

t.test('exhausted', async (t) => {
  // What this machine has run out of is distinguished from what the upstream refuses.
  const errorOf = (code: string, syscall = 'connect') => Object.assign(new Error(code), { code, syscall })

  for (const [code, kind] of [
    ['EMFILE', 'exhausted'],
    ['ENFILE', 'exhausted'],
    ['ENOBUFS', 'exhausted'],
    ['EADDRNOTAVAIL', 'exhausted'],
    ['ECONNREFUSED', 'connect'],
    ['EHOSTUNREACH', 'connect'],
  ] as const)
    t.equal(classifyConnectError(errorOf(code), false), kind, code)

  t.equal(classifyConnectError(errorOf('ENOTFOUND', 'getaddrinfo'), false), 'dns')
  t.equal(classifyConnectError(errorOf('EPROTO'), true), 'tls')
  const mixed = new AggregateError([errorOf('EMFILE'), errorOf('ECONNREFUSED')])
  t.equal(classifyConnectError(mixed, false), 'connect', 'one of its addresses was reached for')
  t.equal(
    classifyConnectError(new AggregateError([errorOf('EMFILE'), errorOf('EMFILE')]), false),
    'exhausted',
  )
})

t.test('descriptors exhausted', async (t) => {
  // A process whose clients have taken every file it may open still reaches its upstreams, with files held back.
  const MAX_OPEN_FILES = 100
  const CALLS = RESERVED_DESCRIPTORS + 20

  const PROGRAM = fileURLToPath(new URL('call-without-files.ts', import.meta.url))

  async function callsThere(baseUrl: string): Promise<Ends> {
    const node = [process.execPath, PROGRAM, baseUrl, String(CALLS)]
    const limited = ['-c', `ulimit -n ${MAX_OPEN_FILES}; exec "$@"`, 'sh', ...node]
    return JSON.parse(await text(execFile('sh', limited, { timeout: 60_000 }).stdout!))
  }

  // A name is looked up, which takes files too.
  for (const host of ['127.0.0.1', 'localhost'])
    t.test(host, async (t) => {
      const server = await replyingServer(t, () => answer('ok'))
      const { first, crowd, last } = await callsThere(`http://${host}:${server.origin.port}`)
      t.equal(first, 'answered')
      const count = (wanted: string) => crowd.filter((end) => end === wanted).length
      const answered = count('answered')
      // More than there are files held back, when the first have ended before the last have looked up the name.
      t.ok(answered > 0, `${answered} with the files held back`)
      t.equal(answered + count('exhausted'), CALLS, 'the others get the reason')
      t.equal(last, 'answered', 'what was given back serves again')
    })
})

t.test('name server away', async (t) => {
  // An upstream reached before is reached again while its name cannot be looked up; one never reached is not.
  const realLookup = dns.lookup

  function takeNamesAway(): void {
    const failing = (name: string, _options: object, told: (error: Error) => void) => {
      const cause = { code: 'EAI_AGAIN', syscall: 'getaddrinfo' }
      process.nextTick(told, Object.assign(new Error(`getaddrinfo EAI_AGAIN ${name}`), cause))
    }
    dns.lookup = failing as unknown as typeof dns.lookup
  }

  t.test('no name can be looked up', async (t) => {
    t.teardown(() => {
      dns.lookup = realLookup
    })
    const client = clientFor(t, { maxIdlePerOrigin: 0 })
    const { origin } = await replyingServer(t, () => answer('reached'))
    const named = getRequest({ ...origin, host: 'localhost' })
    t.match(await run(client, named), { body: 'reached' })
    takeNamesAway()
    t.match(await run(client, named), { body: 'reached' })
    const elsewhere = { ...origin, key: 'http://elsewhere', host: 'elsewhere' }
    t.match((await run(client, getRequest(elsewhere))).failure, { kind: 'dns', sent: false })
  })
})
