/** A client that sends requests on one connection and reads no answer costs little, whatever it asks for. */
import { connect } from 'node:net'
import { concat, of, throwError } from 'rxjs'
import t, { type Test } from 'tap'
import { Failure } from '../../../schemas/failure.ts'
import type { Handler, Reply } from '../../../src/http/handler.ts'
import { clientOn, HOST, head, RawClient, serve, until, whole } from './support.ts'

const MIB = 1024 * 1024
/** What two kernels hold of a connection whose client does not read; more than any setting of tests allows. */
const KERNEL_BYTES = 32 * MIB
/** Far above what is unsent of a connection before it is closed. */
const REPLY_BYTES = 1024
/** Requests of one connection, more than would ever be answered. */
const REQUESTS = 200_000
const PAGE = Buffer.alloc(MIB, 0x61)

/** Sends one request again and again, in pieces, reads nothing meanwhile, and waits for the end of the connection. */
async function sendUnread(t: Test, port: number, request: string): Promise<void> {
  const socket = connect({ port, host: HOST })
  t.teardown(() => socket.destroy())
  socket.on('error', () => undefined)
  const many = Buffer.from(request.repeat(100))
  for (let sent = 0; sent < REQUESTS && !socket.destroyed; sent += 100) {
    socket.write(many)
    // A socket that is not read learns of its end by writing.
    await new Promise((resolve) => setImmediate(resolve))
  }
  socket.resume()
  await until(() => socket.destroyed)
}

const cases: ReadonlyArray<readonly [name: string, line: string, handler: Handler, replyBytes: number]> = [
  ['a large page', 'GET /page', () => whole(PAGE), MIB],
  ['a small answer', 'GET /page', () => whole('x'.repeat(REPLY_BYTES)), REPLY_BYTES],
  ['the head of a page', 'HEAD /page', () => whole(PAGE), 512],
  ['no content', 'GET /page', () => of<Reply>({ type: 'full', status: 204, headers: [], body: '' }), 512],
  ['nothing new', 'GET /page', () => of<Reply>({ type: 'full', status: 304, headers: [], body: '' }), 512],
  ['a refusal that ends the connection', 'GET /page', () => throwError(blocked), 1024],
  ['a redirect', 'GET /page', () => of<Reply>({ type: 'full', status: 302, headers: [], body: '' }), 512],
  ['a stream', 'GET /page', () => streamed(), MIB],
  ['an error', 'GET /page', () => whole('no', 404), 512],
]

const blocked = () => new Failure('rate_limit_exceeded', 'Too many.', { headers: [['connection', 'close']] })

const streamed = () =>
  concat(
    of<Reply>({ type: 'head', status: 200, headers: [], flow: null }),
    of<Reply>({ type: 'data', bytes: PAGE }),
  )

for (const [name, line, handler, replyBytes] of cases)
  t.test(`${name}, asked for without reading`, async (t) => {
    const { port, seen, server } = await serve(t, { 'GET /page': handler })
    await sendUnread(t, port, head(line))
    t.ok(seen.length >= 1)
    t.ok(seen.length * replyBytes < KERNEL_BYTES, `${seen.length} answers`)
    await until(() => server.inFlight === 0)
  })

t.test('preflights', async (t) => {
  const { port, server } = await serve(t, {})
  await sendUnread(t, port, head('OPTIONS /page'))
  await until(() => server.inFlight === 0)
})

t.test('many requests at once on one connection take one turn no longer than a few do', async (t) => {
  const { port, seen } = await serve(t, { 'GET /page': () => whole('x') })
  const client = clientOn(t, port)
  await client.send(head('GET /page').repeat(1000)).gone
  t.ok(seen.length >= 64 && seen.length < 1000, `${seen.length} answered`)
  const few = clientOn(t, port)
  few.send(head('GET /page').repeat(20))
  await few.until((text) => text.split('HTTP/1.1 200').length > 20)
})

t.test('a page is sent whole to a client that reads late, from bytes that all replies share', async (t) => {
  const { port } = await serve(t, { 'GET /page': () => whole(PAGE), 'GET /other': () => whole('other') })
  const clients = Array.from({ length: 20 }, () => new RawClient(port))
  for (const { socket } of clients) socket.pause()
  const before = process.memoryUsage().rss
  for (const client of clients) client.send(head('GET /page'))
  await new Promise((resolve) => setTimeout(resolve, 50))
  t.ok(process.memoryUsage().rss - before < 20 * MIB)
  for (const client of clients) {
    client.socket.resume()
    const isWhole = (text: string) => text.endsWith(`\r\n\r\n${PAGE}`)
    t.ok(isWhole(await client.until(isWhole)))
    client.received = Buffer.alloc(0)
    client.send(head('GET /other'))
    t.match(await client.until((text) => text.endsWith('other')), '200 OK', 'and the connection goes on')
    client.socket.destroy()
  }
})
