/** The head of a request may be as long as proxies make it, and may come in pieces that are cut anywhere. */
import t from 'tap'
import { MAX_HEAD_BYTES } from '../../../src/http/head-limit.ts'
import { ask, clientOn, head, isWhole, RawClient, serve, statusOf, whole } from './support.ts'

const ECHO = {
  'POST /echo': ({
    header,
    query,
    body,
  }: {
    header: (name: string) => string
    query: string
    body: Buffer
  }) => whole(`${header('x-api-key').length} ${query} ${body}`),
}

/** Other header lines of this many bytes together, each as long as a cookie may be. */
function lines(bytes: number): string[] {
  const LINE_BYTES = 4096
  return Array.from({ length: Math.ceil(bytes / LINE_BYTES) }, (_, index) => {
    const name = `cookie-${index}: `
    return name + 'c'.repeat(Math.min(LINE_BYTES, bytes - index * LINE_BYTES) - name.length)
  })
}

t.test('32 KB of headers are served, in one line or in many, whole or in pieces', async (t) => {
  const { port } = await serve(t, ECHO)
  const bytes = 32 * 1024
  const requests = [
    head('POST /echo?q', `x: ${'x'.repeat(bytes)}`, 'x-api-key: abc', 'content-length: 2'),
    head('POST /echo?q', 'x-api-key: abc', ...lines(bytes), 'content-length: 2'),
    head(
      `POST /echo?q`,
      `traceparent: ${'t'.repeat(bytes / 2)}`,
      ...lines(bytes / 2),
      'x-api-key: abc',
      'content-length: 2',
    ),
  ]
  for (const request of requests) {
    t.match(await ask(t, port, `${request}ok`, isWhole), /\r\n\r\n3 q ok$/)
    const client = clientOn(t, port)
    client.socket.setNoDelay(true)
    for (let at = 0; at < request.length; at += 10_000) {
      client.send(request.slice(at, at + 10_000))
      await new Promise((resolve) => setTimeout(resolve, 2))
    }
    t.match(await client.send('ok').until(isWhole), /\r\n\r\n3 q ok$/)
  }
})

t.test('a head over the limit is refused by the server itself, and the connection closed', async (t) => {
  const { port, seen } = await serve(t, ECHO)
  t.equal(statusOf(await ask(t, port, head('POST /echo', ...lines(MAX_HEAD_BYTES)))), 431)
  t.equal(statusOf(await ask(t, port, head('POST /echo', ...Array(98).fill('x: a')))), 431, 'too many lines')
  t.equal(seen.length, 0)
})

t.test('97 header lines are served', async (t) => {
  const { port } = await serve(t, ECHO)
  const fields = ['x-api-key: abc', 'content-length: 2', ...Array(94).fill('x: a')]
  t.match(await ask(t, port, `${head('POST /echo', ...fields)}ok`, isWhole), /\r\n\r\n3 {2}ok$/)
})

const passOfTheEventLoop = () => new Promise((resolve) => setImmediate(resolve))

t.test('a request is served wherever it is cut, but at the version in its first line', async (t) => {
  const { port, seen } = await serve(t, ECHO)
  const request = `${head('POST /echo?question=1', 'x-api-key: abc', 'content-length: 2')}ok`
  const refused: number[] = []
  let client: RawClient | null = null
  let opened = 0
  t.teardown(() => client?.socket.destroy())
  for (let at = 1; at < request.length; at++) {
    if (client === null) {
      opened++
      client = new RawClient(port)
      client.socket.setNoDelay(true)
      await client.send(request).until(isWhole)
    }
    client.received = Buffer.alloc(0)
    client.send(request.slice(0, at))
    // The server runs in this process: it has read the first piece when the second is sent.
    for (let pass = 0; pass < 3; pass++) await passOfTheEventLoop()
    const text = await client.send(request.slice(at)).until(isWhole)
    if (statusOf(text) === 200) t.match(text, /\r\n\r\n3 question=1 ok$/, `cut after ${at}`)
    else {
      refused.push(at)
      client.socket.destroy()
      client = null
    }
  }
  // The packaged server cannot read these; `docs/operating.md` says what to do about it.
  const version = request.indexOf('HTTP/1.1')
  const known = ['POST '.length, ...Array.from('HTTP/1.1\r', (_, index) => version + index), version + 9]
  t.strictSame(refused, known)
  const cuts = request.length - 1
  t.equal(seen.length, opened + cuts - known.length, 'a refused one reaches no pipeline')
})
