/** WebSockets of the server: upgrades, messages and the memory that they take. */
import { Buffer } from 'node:buffer'
import { randomBytes } from 'node:crypto'
import { connect as openTcp } from 'node:net'
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

const [CONTINUED, TEXT, BINARY, CLOSE, PING] = [0, 1, 2, 8, 9] as const
const FINAL = 0x80
const MASKED = 0x80

/** Returns a frame as clients send it, masked. */
function makeFrame(kind: number, content: Buffer, isFinal = true): Buffer {
  const length = Buffer.alloc(content.length < 126 ? 0 : content.length < 65_536 ? 2 : 8)
  if (length.length === 2) length.writeUInt16BE(content.length)
  if (length.length === 8) length.writeBigUInt64BE(BigInt(content.length))
  const short = length.length === 0 ? content.length : length.length === 2 ? 126 : 127
  const mask = randomBytes(4)
  const masked = content.map((byte, at) => byte ^ mask[at % 4]!)
  return Buffer.concat([Buffer.from([kind | (isFinal ? FINAL : 0), MASKED | short]), length, mask, masked])
}

/** Returns the frames of one message, cut into pieces of this size. */
const cutIntoFrames = (message: Buffer, bytes: number): Buffer[] =>
  Array.from({ length: Math.ceil(message.length / bytes) }, (_, at) => {
    const isLast = (at + 1) * bytes >= message.length
    return makeFrame(at === 0 ? TEXT : CONTINUED, message.subarray(at * bytes, (at + 1) * bytes), isLast)
  })

/** Opens a WebSocket whose frames are written by hand. */
async function openByHand(t: Test, port: number) {
  const socket = openTcp(port, HOST)
  t.teardown(() => socket.destroy())
  const client = { write: (bytes: Buffer) => socket.write(bytes), received: '', isClosed: false }
  socket.on('data', (piece) => {
    client.received += piece.toString('latin1')
  })
  socket.on('error', () => undefined)
  socket.on('close', () => {
    client.isClosed = true
  })
  socket.write(
    `GET /talk HTTP/1.1\r\nhost: ${HOST}\r\nconnection: upgrade\r\nupgrade: websocket\r\n` +
      'sec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n',
  )
  await until(() => client.received.includes('\r\n\r\n'))
  return client
}

t.test('frames', async (t) => {
  const listBodies = ({ requests }: Echo) => requests.map(({ body }) => Buffer.from(body!))
  const story = Buffer.from('wörd 😀 '.repeat(500_000))

  t.test('a message may come in one frame or in many, of any length', async (t) => {
    for (const bytes of [story.length, 64 * 1024, 1_000_003]) {
      const { port, sessions } = await open(t)
      const client = await openByHand(t, port)
      for (const frame of cutIntoFrames(story, bytes)) client.write(frame)
      await until(() => sessions[0]?.requests.length === 1)
      t.ok(listBodies(sessions[0]!)[0]!.equals(story), `${bytes} bytes each`)
    }
  })

  t.test('frames are cut inside of characters, with pings between them', async (t) => {
    const { port, sessions } = await open(t)
    const client = await openByHand(t, port)
    const message = Buffer.from('ö😀é')
    for (const frame of cutIntoFrames(message, 1)) {
      client.write(frame)
      client.write(makeFrame(PING, Buffer.from('are you there?')))
    }
    await until(() => sessions[0]?.requests.length === 1)
    t.ok(listBodies(sessions[0]!)[0]!.equals(message))
    await until(() => client.received.includes('are you there?'))
  })

  t.test('frames arrive a byte at a time, and may be binary', async (t) => {
    const { port, sessions } = await open(t)
    const client = await openByHand(t, port)
    for (const kind of [TEXT, BINARY])
      for (const byte of makeFrame(kind, Buffer.from('hello'))) client.write(Buffer.from([byte]))
    await until(() => sessions[0]?.requests.length === 2)
    t.same(listBodies(sessions[0]!).map(String), ['hello', 'hello'])
  })

  t.test('what is no message closes the connection without a request', async (t) => {
    const tooLong = Buffer.alloc(33 * MIB, 'x')
    for (const frames of [
      cutIntoFrames(tooLong, MIB),
      [makeFrame(TEXT, Buffer.from([0xc3, 0x28]))],
      [makeFrame(CONTINUED, Buffer.from('nothing came before'))],
      [makeFrame(TEXT, Buffer.from('one'), false), makeFrame(TEXT, Buffer.from('another'))],
    ]) {
      const { port, sessions } = await open(t)
      const client = await openByHand(t, port)
      for (const frame of frames) client.write(frame)
      await until(() => client.isClosed || sessions[0]!.isClosed)
      t.equal(sessions[0]!.requests.length, 0)
    }
  })

  t.test('a client that leaves in the middle of a message leaves no request', async (t) => {
    const { port, sessions, server } = await open(t)
    const client = await openByHand(t, port)
    client.write(cutIntoFrames(story, MIB)[0]!)
    client.write(makeFrame(CLOSE, Buffer.from([0x03, 0xe8])))
    await until(() => sessions[0]!.isClosed)
    t.equal(sessions[0]!.requests.length, 0)
    t.equal(server.socketCount, 0)
  })
})

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
