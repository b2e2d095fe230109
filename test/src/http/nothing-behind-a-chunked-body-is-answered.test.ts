/**
 * The server takes the trailer of a chunked body for another request, and passes over junk between chunks. So nothing
 * that follows such a body on its connection is answered, whatever answers the body itself.
 */
import { Observable, of, timer } from 'rxjs'
import { map } from 'rxjs/operators'
import t from 'tap'
import { Failure } from '../../../schemas/failure.ts'
import type { Reply } from '../../../src/http/handler.ts'
import { ask, clientOn, head, serve, statusOf, until, whole } from './support.ts'

const stream = (): Observable<Reply> =>
  new Observable((client) => {
    client.next({ type: 'head', status: 200, headers: [], flow: null })
    client.next({ type: 'data', bytes: 'said' })
    client.complete()
  })

const ROUTES = {
  'POST /whole': () => whole('whole'),
  'POST /later': () =>
    timer(1).pipe(map(() => ({ type: 'full', status: 200, headers: [], body: 'late' }) as const)),
  'POST /stream': stream,
  'POST /empty': () => of<Reply>({ type: 'head', status: 200, headers: [], flow: null }),
  'POST /refused': () => {
    throw new Failure('invalid_api_key', 'No.')
  },
  'DELETE /gone': () => whole('gone'),
  'POST /second': () => whole('second'),
}
/** Each way in which a reply can end, with the status of it. */
const LINES = {
  'POST /whole': 200,
  'POST /later': 200,
  'POST /stream': 200,
  'POST /empty': 200,
  'POST /refused': 401,
  'POST /nowhere': 404,
  'PUT /whole': 405,
  'DELETE /gone': 200,
} as const

const post = (line: string, ...fields: string[]) => head(line, 'transfer-encoding: chunked', ...fields)
const SECOND = head('POST /second', 'content-length: 0')
/** What may follow the head, and how a careful parser reads it: as one body with a trailer, or as junk. */
const BODIES = {
  'a trailer that is a request': `3\r\nabc\r\n0\r\n${SECOND}`,
  'a request behind the body': `3\r\nabc\r\n0\r\n\r\n${SECOND}`,
  'junk behind a chunk': `3\r\nabcXY0\r\n\r\n${SECOND}`,
  'a chunk extension': `3;x="\r\nabc\r\n0\r\n\r\n${SECOND}`,
  'a size with a sign': `+3\r\nabc\r\n0\r\n\r\n${SECOND}`,
}

t.test('with every byte at once, one answer at most', async (t) => {
  const { port, seen, server } = await serve(t, ROUTES)
  for (const line of Object.keys(LINES))
    for (const [name, body] of Object.entries(BODIES)) {
      const text = await ask(t, port, post(line) + body)
      t.ok(text.split('HTTP/1.1 ').length <= 2, `${line}, ${name}`)
    }
  t.notOk(seen.some(({ path }) => path === '/second'))
  await until(() => server.inFlight === 0)
})

t.test('with the rest later, the whole answer to the chunked request alone, and the end', async (t) => {
  const { port, seen, server } = await serve(t, ROUTES)
  for (const [line, status] of Object.entries(LINES)) {
    const client = clientOn(t, port)
    client.send(`${post(line)}3\r\nabc\r\n0\r\n\r\n`)
    const isWhole = (text: string) =>
      /\r\n0\r\nx-gateway-trace: req_\w+\r\n\r\n$/.test(text) ||
      Number(/content-length: (\d+)/i.exec(text)?.[1] ?? Number.NaN) ===
        text.length - text.indexOf('\r\n\r\n') - 4
    const text = await client.until(isWhole)
    t.ok(isWhole(text), `${line} is answered to the end`)
    t.equal(statusOf(text), status)
    t.equal(text.match(/\r\nconnection: close\r\n/gi)?.length, 1, `${line} says once that it is the last`)
    client.send(SECOND)
    await client.gone
    t.equal(client.text.split('HTTP/1.1 ').length, 2, `${line}: nothing else is answered`)
  }
  t.notOk(seen.some(({ path }) => path === '/second'))
  await until(() => server.inFlight === 0)
})

t.test('a connection whose client waits is closed by the server', async (t) => {
  const { port } = await serve(t, ROUTES)
  for (const line of ['POST /whole', 'POST /stream', 'POST /nowhere'])
    t.equal((await ask(t, port, `${post(line)}0\r\n\r\n`)).split('HTTP/1.1 ').length, 2, line)
})

t.test('an HTTP client reads each answer to chunks as whole', async (t) => {
  const { port } = await serve(t, ROUTES)
  for (const [path, text] of Object.entries({ '/stream': 'said', '/empty': '', '/whole': 'whole' })) {
    const body = new Blob(['abc']).stream()
    const answer = await fetch(`http://127.0.0.1:${port}${path}`, { method: 'POST', body, duplex: 'half' })
    t.equal(await answer.text(), text)
  }
})

t.test('methods without a body take no chunks', async (t) => {
  const { port, seen } = await serve(t, { 'GET /file': () => whole('file'), 'HEAD /file': () => whole('') })
  for (const line of ['GET /file', 'HEAD /file', 'OPTIONS /file']) {
    t.equal(statusOf(await ask(t, port, `${post(line)}0\r\n\r\n`)), 400, line)
    t.notMatch(await ask(t, port, `${post(line)}0\r\n\r\n${SECOND}`), /200 OK/)
  }
  t.equal(seen.length, 0)
})
