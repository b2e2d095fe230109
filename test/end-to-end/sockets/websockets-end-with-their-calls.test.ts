/**
 * How connections and their calls end: killed, drained, too old, or not read. See docs/failure-modes.md, "Streams".
 */
import { readFileSync } from 'node:fs'
import { connect as connectTcp, type Socket } from 'node:net'
import t from 'tap'
import type { Teardown } from '../../support/engines.ts'
import { eventually, startService, type TestService, until } from '../../support/service.ts'
import { childrenOf } from '../chaos/processes.ts'
import { configOf, simulated } from '../protocols/support.ts'
import { checkCharges, rowOf, upstreamCalls } from '../support.ts'
import { askUpgrade, connect, type SocketClient } from './support.ts'

const LARGE_TOKENS = 100_000
const WEBSOCKET_SECONDS = 2
const CONFIG = configOf({ plain: {}, slow: {}, endless: {}, large: { max_output_tokens: LARGE_TOKENS } }, [
  simulated('responses', {
    plain: 'sim-plain@tokens=4',
    slow: 'sim-slow@tokens=120,tps=40',
    endless: 'sim-endless@tokens=2000,tps=20',
    large: `sim-large@tokens=${LARGE_TOKENS}`,
  }),
])
const STEADY_LOOKS = 4
/** The header of a frame with more bytes than two bytes count. */
const LONG_HEADER_BYTES = 8
/** The largest body. */
const MAX_BODY_BYTES = 32 * 1024 * 1024
const PIECE = ' '.repeat(64_000)

const hasBegun = ({ received }: SocketClient): boolean =>
  received.some(({ type }) => type === 'response.output_text.delta')
const ask = (model: string) => ({ model, input: 'hi', store: false })
const isReady = async ({ baseUrl }: TestService) => (await fetch(`${baseUrl}/readyz`)).status === 200

t.test('connections and their calls', async (t) => {
  const service = await startService(t, { config: CONFIG })

  await t.test('a drain lets the call end, and closes what is idle', async (t) => {
    const { key } = await service.newKey('1000000')
    const [busy, idle] = [await connect(t, service, key), await connect(t, service, key)]
    t.match(await idle.create(ask('plain')).last(), { type: 'response.completed' })
    busy.create(ask('slow')).create(ask('plain'))
    await until('it says something', () => hasBegun(busy))
    const stopped = service.stop('SIGTERM')
    t.match(await idle.untilClosed(), { code: 1001 })
    t.equal((await askUpgrade(service, { authorization: `Bearer ${key}` })).status, 503)
    t.match(await busy.last(), { type: 'response.completed' })
    t.match(await busy.last(), { type: 'error', status: 503, error: { code: 'service_unavailable' } })
    t.match(await busy.untilClosed(), { code: 1001 })
    t.equal(await stopped, 0)
    await service.start()
    await checkCharges(t, service, key, 2)
  })

  await t.test('a drain that is cut interrupts the call', async (t) => {
    const { key } = await service.newKey('1000000')
    const client = await connect(t, service, key)
    client.create(ask('endless'))
    await until('it says something', () => hasBegun(client))
    const first = service.stop('SIGTERM')
    await until('it is not ready', async () => !(await isReady(service)))
    await service.stop('SIGTERM')
    t.equal(await first, 0)
    await client.untilClosed()
    await service.start()
    t.match(await checkCharges(t, service, key, 1), [{ status: 'interrupted' }])
  })

  await t.test('a service that is killed leaves one row for each call', async (t) => {
    const { key } = await service.newKey('1000000')
    const [client, other] = [await connect(t, service, key), await connect(t, service, key)]
    t.match(await other.create(ask('plain')).last(), { type: 'response.completed' })
    client.create(ask('endless'))
    await until('it says something', () => hasBegun(client))
    await service.kill()
    await client.untilClosed()
    await service.start()
    t.match(await checkCharges(t, service, key, 2), [
      { status: 'interrupted', cost: '0' },
      { status: 'success' },
    ])
  })

  await t.test('a client that does not read pauses the upstream', async (t) => {
    const { key } = await service.newKey('10000000')
    const socket = await connectRaw(t, service, key)
    const [gateway] = childrenOf(service.pid(), 'gateway')
    const before = residentBytes(gateway!)
    socket.write(frame(JSON.stringify({ type: 'response.create', ...ask('large') })))
    const paused = await eventually('the upstream is called', async () =>
      (await upstreamCalls(service)).findLast(({ model }) => model?.startsWith('sim-large')),
    )
    const tokens = await sentOnceSteady(service, paused!.request_id!)
    t.ok(tokens < LARGE_TOKENS, `the upstream is paused at ${tokens} tokens`)
    const growth = residentBytes(gateway!) - before
    t.ok(growth < MAX_GROWTH_BYTES, `the gateway holds ${growth} bytes more`)
    const counted = countFrames(socket)
    t.ok((await counted) > LARGE_TOKENS, 'reading on, it gets every event')
    t.match(await rowOf(service, key, paused!.request_id!), {
      status: 'success',
      output_tokens: LARGE_TOKENS,
    })
    await checkCharges(t, service, key, 1)
  })

  await t.test(
    'an unfinished message may be as long as the largest body; beyond that the connection closes',
    async (t) => {
      const { key } = await service.newKey('1000000')
      const body = JSON.stringify({ type: 'response.create', ...ask('plain') })
      const socket = await connectRaw(t, service, key)
      const closed = new Promise((resolve) => socket.once('close', resolve))
      socket.write(frame(body, BEGINNING))
      for (let sent = 0; sent < MAX_BODY_BYTES; sent += PIECE.length) socket.write(frame(PIECE, CONTINUATION))
      socket.resume()
      await closed
      const other = await connectRaw(t, service, key)
      other.write(frame(body, BEGINNING))
      other.write(frame(PIECE, CONTINUATION))
      other.write(frame(' ', END))
      t.ok((await countFrames(other)) > 0, 'a message that ends in time makes a call')
      await checkCharges(t, service, key, 1)
    },
  )
})

t.test('a connection ends with its time, after its call', async (t) => {
  const limits = { websocket_seconds: WEBSOCKET_SECONDS }
  const service = await startService(t, { config: JSON.stringify({ ...JSON.parse(CONFIG), limits }) })
  const { key } = await service.newKey('1000000')
  const [busy, idle] = [await connect(t, service, key), await connect(t, service, key)]
  busy.create(ask('slow'))
  const expired = { type: 'error', status: 400, error: { code: 'websocket_connection_limit_reached' } }
  t.match(await idle.last(), expired)
  t.match(await idle.untilClosed(), { code: 1000 })
  t.match(await busy.last(), { type: 'response.completed' })
  t.match(await busy.last(), expired)
  t.match(await busy.untilClosed(), { code: 1000 })
  await checkCharges(t, service, key, 1)
})

const MAX_GROWTH_BYTES = 24 * 1024 * 1024
const residentBytes = (pid: number): number =>
  Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024

/** Opens a WebSocket whose frames the test writes itself. */
async function connectRaw(t: Teardown, { baseUrl }: TestService, key: string): Promise<Socket> {
  const { hostname, port } = new URL(baseUrl)
  const socket = connectTcp({ host: hostname, port: Number(port) })
  socket.on('error', () => socket.destroy())
  t.teardown(() => socket.destroy())
  socket.write(
    [
      'GET /v1/responses HTTP/1.1',
      `host: ${hostname}`,
      `authorization: Bearer ${key}`,
      'connection: upgrade',
      'upgrade: websocket',
      'sec-websocket-version: 13',
      'sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n',
    ].join('\r\n'),
  )
  // The head may arrive in several pieces.
  let head = ''
  socket.on('data', (piece) => {
    head += piece
  })
  await until('the upgrade is answered', () => head.endsWith('\r\n\r\n'))
  socket.removeAllListeners('data').pause()
  if (!head.startsWith('HTTP/1.1 101 ')) throw new Error(head)
  return socket
}

/** First bytes of frames: of a whole text message, and of the first fragment of one. */
const WHOLE = 0x81
const BEGINNING = 0x01
const CONTINUATION = 0x00
const END = 0x80

/** A client frame with a mask of zeros. */
function frame(text: string, opening = WHOLE): Buffer {
  const payload = Buffer.from(text)
  const head = Buffer.from([opening, 0x80 | 126, payload.length >> 8, payload.length & 0xff, 0, 0, 0, 0])
  return Buffer.concat([head.subarray(0, LONG_HEADER_BYTES), payload])
}

/** Tokens that the upstream has sent, once that is not changing any more. */
async function sentOnceSteady(service: TestService, requestId: string): Promise<number> {
  let last = -1
  let looks = 0
  const steady = await eventually('the upstream is paused', async () => {
    const [call] = await upstreamCalls(service, requestId)
    const sent = call!.output_tokens
    looks = sent === last ? looks + 1 : 0
    last = sent
    return looks >= STEADY_LOOKS ? sent : undefined
  })
  return steady!
}

/** Counts the messages up to the one that ends the response. */
async function countFrames(socket: NodeJS.ReadableStream): Promise<number> {
  let count = 0
  let rest = Buffer.alloc(0)
  for await (const piece of socket) {
    rest = Buffer.concat([rest, piece as Buffer])
    for (;;) {
      const short = (rest[1] ?? 0) & 0x7f
      const headBytes = short < 126 ? 2 : short === 126 ? 4 : 10
      if (rest.length < headBytes) break
      const length =
        short < 126 ? short : short === 126 ? rest.readUInt16BE(2) : Number(rest.readBigUInt64BE(2))
      if (rest.length < headBytes + length) break
      count++
      if (rest.subarray(headBytes, headBytes + 40).includes('response.completed')) return count
      rest = rest.subarray(headBytes + length)
    }
  }
  throw new Error(`the connection was closed after ${count} messages`)
}
