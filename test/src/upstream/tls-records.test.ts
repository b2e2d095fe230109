import { connect, createServer } from 'node:net'
import t, { type Test } from 'tap'
import { answer, clientFor, until } from './fixture.ts'
import { listen, type RawServer } from './raw-server.ts'
import { getRequest, LoggingHandler, run } from './recorded-calls.ts'
import { startTlsServer, TEST_CA } from './tls-server.ts'

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

t.test('a record left in the read that ended a response is never the answer to the next call', async (t) => {
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
})

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
  t.match(client.stats(), { opened: 1, reused: 10, idle: 1 })
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
  t.match(client.stats(), { opened: 8, reused: 392, inFlight: 0 })
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
  t.match(client.stats(), { open: 0, inFlight: 0 })
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
