/** A client that reads slowly gets every byte, and what reads from the upstream is paused meanwhile. */
import { createHash } from 'node:crypto'
import { Observable } from 'rxjs'
import t from 'tap'
import type { Reply } from '../../../src/http/handler.ts'
import { head, RawClient, serve, until } from './support.ts'

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
