/** Requests whose end could be read in two ways, or that are none, reach no pipeline, and nothing behind them does. */
import t, { type Test } from 'tap'
import { GatewayServer } from '../../../src/http/server.ts'
import {
  ask,
  clientLimits,
  clientOn,
  HOST,
  head,
  isWhole,
  RawClient,
  serve,
  statusOf,
  until,
  whole,
} from './support.ts'

const ECHO = { 'POST /echo': ({ body }: { body: Buffer }) => whole(`got ${body.length}`) }
const SMUGGLED = `${head('POST /echo', 'content-length: 8')}smuggled`

/** Sends the request with another behind it. */
async function refused(t: Test, name: string, request: string): Promise<void> {
  await t.test(name, async (t) => {
    const { port, seen, server } = await serve(t, ECHO)
    const alone = await ask(t, port, Buffer.from(request, 'latin1'))
    t.ok([400, 431, 505].includes(statusOf(alone)), `refused with ${alone.slice(0, 40)}`)
    const text = await ask(t, port, Buffer.from(request + SMUGGLED, 'latin1'))
    t.ok(text.split('HTTP/1.1 ').length <= 2, 'answered once at most')
    t.notMatch(text, /200 OK/)
    t.equal(seen.length, 0)
    t.equal(server.inFlight, 0)
  })
}

const CHUNKED = '3\r\nabc\r\n0\r\n\r\n'

t.test('refused, and the connection closed', async (t) => {
  const post = (...fields: string[]) => head('POST /echo', ...fields)
  await refused(t, 'length and chunks', post('content-length: 3', 'transfer-encoding: chunked') + CHUNKED)
  await refused(t, 'chunks and length', post('transfer-encoding: chunked', 'content-length: 3') + CHUNKED)
  await refused(t, 'two lengths', `${post('content-length: 3', 'content-length: 30')}abc`)
  await refused(t, 'two lengths the other way', `${post('content-length: 30', 'content-length: 3')}abc`)
  await refused(t, 'a list of lengths', `${post('content-length: 3, 3')}abc`)
  for (const length of ['+3', '-1', '0x3', '3.0', '99999999999999999999999', '18446744073709551619'])
    await refused(t, `length ${length}`, `${post(`content-length: ${length}`)}abc`)
  for (const length of ['', ' ', '\t', '\xe9', '\x80\xff'])
    await refused(t, `empty length ${JSON.stringify(length)}`, `${post(`content-length:${length}`)}abc`)
  await refused(t, 'an empty length behind one', `${post('content-length: 3', 'content-length:')}abc`)
  await refused(t, 'an empty coding', `${post('transfer-encoding:')}${CHUNKED}`)
  await refused(
    t,
    'chunked twice',
    `${post('transfer-encoding: chunked', 'transfer-encoding: chunked')}${CHUNKED}`,
  )
  await refused(t, 'two hosts', `${post('host: other', 'content-length: 3')}abc`)
  await refused(t, 'the same host twice', `${post('host: test', 'content-length: 3')}abc`)
  for (const host of [
    'a b',
    'a/b',
    'user@host',
    'a, b',
    'ho\xe9st',
    'a\\b',
    'host:80:80',
    '[::1',
    'host:port',
  ])
    await refused(t, `host ${host}`, `POST /echo HTTP/1.1\r\nhost: ${host}\r\ncontent-length: 3\r\n\r\nabc`)
  for (const coding of ['gzip, chunked', 'xchunked', 'chunked, identity', '"chunked"'])
    await refused(t, `coding ${coding}`, post(`transfer-encoding: ${coding}`) + CHUNKED)
  await refused(t, 'a chunk size that is none', `${post('transfer-encoding: chunked')}zz\r\nabc\r\n0\r\n\r\n`)
  await refused(
    t,
    'a chunk size beyond all',
    `${post('transfer-encoding: chunked')}ffffffffffffffffff\r\nabc`,
  )
  await refused(t, 'no host', 'POST /echo HTTP/1.1\r\ncontent-length: 3\r\n\r\nabc')
  await refused(t, 'lines that end with LF alone', 'POST /echo HTTP/1.1\nhost: x\ncontent-length: 3\n\nabc')
  await refused(t, 'HTTP/1.0', 'POST /echo HTTP/1.0\r\nhost: x\r\ncontent-length: 3\r\n\r\nabc')
  await refused(t, 'headers without end', head('POST /echo', `x: ${'a'.repeat(100_000)}`))
  await refused(t, 'headers without number', head('POST /echo', ...Array(1000).fill('x: a')))
  await refused(t, 'a path without end', head(`POST /${'a'.repeat(100_000)}`))
  await refused(t, 'a TLS greeting', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03')
})

t.test('what the server cannot read at all reaches nothing and hurts no one', async (t) => {
  const { port, seen, server } = await serve(t, ECHO)
  const HOSTILE = [
    'POST /echo HTTP/1.1\r\nhost: x\r\ntransfer-encoding : chunked\r\ncontent-length: 3\r\n\r\nabc',
    'POST /echo HTTP/1.1\r\nhost: x\r\nx: a\r\n folded\r\ncontent-length: 3\r\n\r\nabc',
    'POST /echo HTTP/1.1\r\nhost: x\r\nx: a\0b\r\ncontent-length: 3\r\n\r\nabc',
  ]
  const clients = HOSTILE.map((request) =>
    new RawClient(port).send(Buffer.from(request + SMUGGLED, 'latin1')),
  )
  t.match(await ask(t, port, SMUGGLED, isWhole), /got 8$/, 'others are served meanwhile')
  t.equal(seen.length, 1)
  for (const { socket } of clients) socket.destroy()
  await until(() => server.inFlight === 0)
})

t.test('hosts with and without a port are taken', async (t) => {
  const { port } = await serve(t, ECHO)
  for (const host of ['localhost', 'LOCALHOST:8080', '127.0.0.1:1', '[::1]:80', 'a_b.example.com.', 'x:']) {
    const request = `POST /echo HTTP/1.1\r\nhost: ${host}\r\ncontent-length: 3\r\n\r\nabc`
    t.match(await ask(t, port, request, isWhole), /got 3$/, host)
  }
})

t.test('two lengths that agree are one', async (t) => {
  const { port } = await serve(t, ECHO)
  const text = await ask(
    t,
    port,
    `${head('POST /echo', 'content-length: 3', 'content-length: 3')}abc`,
    isWhole,
  )
  t.match(text, /got 3$/)
})

t.test('chunks are put together, however they are split', async (t) => {
  const { port, seen } = await serve(t, ECHO)
  const client = clientOn(t, port)
  client.socket.setNoDelay(true)
  client.send(head('POST /echo', 'transfer-encoding: chunked'))
  for (const byte of Buffer.from('3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n')) {
    client.send(Buffer.of(byte))
    await new Promise((resolve) => setImmediate(resolve))
  }
  t.match(await client.until(isWhole), /got 5$/)
  t.equal(seen[0]!.body.toString(), 'abcde')
})

t.test('code that renders an error may read the client address', async (t) => {
  const peers: string[] = []
  const server = new GatewayServer({
    routes: new Map(),
    clients: clientLimits(),
    maxTextBytes: () => 1024,
    renderError: (_path, _id, peer) => () => {
      peers.push(peer())
      return { type: 'full', status: 404, headers: [], body: '' }
    },
  })
  const port = await server.listen(HOST, 0)
  t.teardown(() => server.close())
  await ask(t, port, head('GET /nowhere'), isWhole)
  t.same(peers, [HOST])
})
