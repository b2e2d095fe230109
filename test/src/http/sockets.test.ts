/** WebSockets of the server: upgrades, messages and the memory that they take. */
import { EMPTY, map, of, throwError, timer } from 'rxjs'
import t, { type Test } from 'tap'
import { WebSocket } from 'undici'
import { Failure } from '../../../schemas/failure.ts'
import type { FullReply, GatewayRequest, Reply, SocketSession } from '../../../src/http/handler.ts'
import type { Route } from '../../../src/http/router.ts'
import { clientLimits, HOST, serve, until } from './support.ts'

const MIB = 1024 * 1024
const HOUR_MS = 3_600_000

/** Echoes each message, once released. */
class Echo implements SocketSession {
  readonly expired = 'expired'
  readonly requests: GatewayRequest[] = []
  keptBytes = 0
  isClosed = false
  forget(): void {
    this.keptBytes = 0
  }
  close(): void {
    this.isClosed = true
  }
  printRefusal({ status }: FullReply): string {
    return `refused ${status}`
  }
  read(body: Buffer) {
    const handler = (request: GatewayRequest) => {
      this.requests.push(request)
      if (body.includes('refuse')) return throwError(() => new Failure('invalid_request', 'no'))
      if (body.includes('wait')) return timer(HOUR_MS).pipe(map(() => whole(body)))
      return of(whole(body))
    }
    return {
      ...{ method: 'POST', handler, body },
      openReply: (send: (message: string) => void) => ({
        data: (bytes: Uint8Array) => send(`${bytes.length}`),
        end: () => send('end'),
        fail: ({ status }: FullReply) => send(`failed ${status}`),
      }),
    }
  }
}
const whole = (body: string | Buffer): Reply => ({ type: 'full', status: 200, headers: [], body })

async function open(t: Test, { limits = clientLimits(), isLate = false, maxMs = HOUR_MS } = {}) {
  const sessions: Echo[] = []
  const accept = (): Reply => {
    const session = new Echo()
    sessions.push(session)
    return { type: 'full', status: 101, headers: [['x-left', '1']], body: '', session }
  }
  const route: Route = {
    handler: () => (isLate ? timer(1).pipe(map(accept)) : of(accept())),
    maxSocketMs: () => maxMs,
  }
  const { server, port } = await serve(t, { 'GET /talk': route, 'POST /talk': () => EMPTY }, limits)
  const connect = async () => {
    const socket = new WebSocket(`ws://${HOST}:${port}/talk?a=b`, { headers: { 'idempotency-key': 'k' } })
    const client = { socket, received: [] as string[], code: 0 }
    socket.addEventListener('message', ({ data }) => client.received.push(data))
    socket.addEventListener('close', ({ code }) => {
      client.code = code
    })
    t.teardown(() => socket.close())
    await new Promise((resolve) => socket.addEventListener('open', resolve))
    return client
  }
  return { server, port, sessions, connect }
}

t.test('websockets', async (t) => {
  for (const isLate of [false, true])
    t.test(`each message is a request, accepted ${isLate ? 'late' : 'at once'}`, async (t) => {
      const { server, sessions, connect } = await open(t, { isLate })
      const clients = await Promise.all(Array.from({ length: 20 }, connect))
      for (const { socket } of clients) for (const text of ['a', 'refuse', 'ccc']) socket.send(text)
      for (const client of clients) {
        await until(() => client.received.length === 5)
        t.strictSame(client.received, ['1', 'end', 'failed 400', '3', 'end'])
      }
      t.equal(server.socketCount, 20)
      t.equal(server.inFlight, 0)
      const [request] = sessions[0]!.requests
      t.match(request, { method: 'POST', path: '/talk', query: 'a=b', requestId: /^req_/ })
      t.equal(request?.header('idempotency-key'), '')
      t.equal(request?.hasHeader('idempotency-key'), false)
      t.equal(request?.address?.(), HOST)
      for (const { socket } of clients) socket.close()
      await until(() => sessions.every(({ isClosed }) => isClosed))
      t.equal(server.socketCount, 0)
    })

  t.test('any other request finds no route', async (t) => {
    const { port } = await open(t)
    const response = await fetch(`http://${HOST}:${port}/talk`)
    t.equal(response.status, 405)
    t.equal(response.headers.get('allow'), 'POST')
  })

  t.test('messages count as bodies do, and so does what a session keeps', async (t) => {
    const limits = clientLimits({ maxBufferedBytes: 2 * MIB })
    const { sessions, connect } = await open(t, { limits })
    const client = await connect()
    client.socket.send('x'.repeat(3 * MIB))
    await until(() => client.received.length === 1)
    t.strictSame(client.received, ['refused 503'])
    sessions[0]!.keptBytes = MIB
    client.socket.send('x')
    await until(() => client.received.length === 3)
    t.equal(limits.bufferedBytes, MIB)
    sessions[0]!.keptBytes = 3 * MIB
    client.socket.send('x')
    await until(() => client.received.length === 5)
    t.equal(sessions[0]!.keptBytes, 0, 'what there is no room for is forgotten')
    client.socket.close()
    await until(() => sessions[0]!.isClosed)
    t.equal(limits.bufferedBytes, 0)
  })

  t.test('a message that is longer than any body closes the connection', async (t) => {
    const { connect, sessions } = await open(t)
    const client = await connect()
    client.socket.send(Buffer.alloc(32 * MIB + 1, 'x').toString())
    await until(() => client.code !== 0)
    t.equal(sessions[0]!.requests.length, 0)
  })

  t.test('a client that leaves ends its call', async (t) => {
    const { server, connect } = await open(t)
    const client = await connect()
    client.socket.send('wait')
    await until(() => server.inFlight === 1)
    client.socket.close()
    await until(() => server.inFlight === 0)
    t.equal(server.socketCount, 0)
  })

  t.test('a connection ends with its time, and in a drain once its call is over', async (t) => {
    const short = await open(t, { maxMs: 20 })
    const expired = await short.connect()
    await until(() => expired.code !== 0)
    t.strictSame([expired.received, expired.code], [['expired'], 1000])
    const { server, connect } = await open(t)
    const [idle, busy] = [await connect(), await connect()]
    busy.socket.send('wait')
    await until(() => server.inFlight === 1)
    server.drain()
    await until(() => idle.code !== 0)
    t.strictSame([idle.code, busy.code], [1001, 0])
    server.close()
    await until(() => busy.code !== 0)
    t.equal(server.inFlight, 0)
  })
})
