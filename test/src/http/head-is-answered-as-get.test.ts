/** HEAD is answered wherever GET is, with the same head and without a body. See docs/api-rules.md, "Every endpoint". */
import { concat, NEVER, Observable, of } from 'rxjs'
import t from 'tap'
import type { Reply } from '../../../src/http/handler.ts'
import { ask, clientOn, head, isWhole, serve, statusOf, whole } from './support.ts'

const streamed: Reply = { type: 'head', status: 200, headers: [['content-type', 'text/csv']], flow: null }
const piece: Reply = { type: 'data', bytes: Buffer.from('never sent') }

/** Returns the fields of a head, without those that differ with each answer. */
const fieldsOf = (text: string): string[] =>
  text
    .slice(0, text.indexOf('\r\n\r\n'))
    .split('\r\n')
    .slice(1)
    .map((line) => line.toLowerCase())
    .filter(
      (line) => !/^(date|x-gateway-trace|x-request-id|request-id|transfer-encoding|connection):/.test(line),
    )
    .sort()

t.test('the head of GET, its content-length included, and no byte behind it', async (t) => {
  const { port, seen } = await serve(t, {
    'GET /text': () => whole('täxt'),
    'GET /refused': () => whole('{}', 402),
    'GET /none': () => of({ type: 'full', status: 204, headers: [], body: '' }),
    'GET /sized': () => concat(of({ ...streamed, length: 10 }, piece)),
  })
  const next = head('GET /text', 'connection: close')
  for (const path of ['/text', '/refused', '/none', '/sized', '/nowhere']) {
    const byGet = await ask(t, port, head(`GET ${path}`), (text) => text.includes('\r\n\r\n'))
    const both = await ask(t, port, head(`HEAD ${path}`) + next)
    const [byHead = '', behind = ''] = both.split(/(?<=\r\n\r\n)/)
    t.equal(statusOf(byHead), statusOf(byGet), path)
    t.same(fieldsOf(byHead), fieldsOf(byGet), path)
    if (!byHead.includes('connection: close\r\n'))
      t.match(behind, /^HTTP\/1\.1 200/, `${path}: the next answer of the connection comes right behind`)
  }
  t.same([...new Set(seen.map(({ method }) => method))], ['GET', 'HEAD'])
})

t.test('a stream is asked for its head alone', async (t) => {
  let isLeft = false
  const endless = new Observable<Reply>((subscriber) => {
    subscriber.add(() => {
      isLeft = true
    })
    return concat(of(streamed, piece), NEVER).subscribe(subscriber)
  })
  const { port, server } = await serve(t, { 'GET /stream': () => endless, 'GET /text': () => whole('text') })
  const text = await clientOn(t, port)
    .send(head('HEAD /stream'))
    .until((text) => text.includes('\r\n\r\n'))
  t.equal(statusOf(text), 200)
  t.match(text, /\r\ncontent-type: text\/csv\r\n/)
  t.notMatch(text, 'never sent')
  t.ok(isLeft)
  t.equal(server.inFlight, 0)
})

t.test('a path without GET takes no HEAD, and says what it takes', async (t) => {
  const { port } = await serve(t, { 'POST /act': () => whole('done'), 'GET /read': () => whole('read') })
  const refused = await ask(t, port, head('HEAD /act'), (text) => text.includes('\r\n\r\n'))
  t.equal(statusOf(refused), 405)
  t.match(refused, /\r\nallow: POST\r\n/)
  t.match(await ask(t, port, head('DELETE /read'), isWhole), /\r\nallow: GET, HEAD\r\n/)
})
