/** A long reply made piece by piece: whole, or visibly not; and made no further than its client takes it. */
import t from 'tap'
import { pacedReply } from '../../../pipelines/calls/paced.ts'
import { Failure } from '../../../schemas/failure.ts'
import { head, RawClient, serve, until } from './support.ts'

/** How a reply in chunks ends when it is whole. */
const LAST_CHUNK = '\r\n0\r\n\r\n'
const PIECE = 'x'.repeat(64 * 1024)
/** More than two kernels take of a connection that nobody reads from. */
const MANY_PIECES = 512

t.test('a long reply', async (t) => {
  let made = 0
  const signals: AbortSignal[] = []
  const reply = (pieces: (signal: AbortSignal) => AsyncGenerator<string>) => () =>
    pacedReply(async (signal) => {
      signals.push(signal)
      return { headers: [['content-type', 'text/csv']], pieces: pieces(signal) }
    })
  const { port } = await serve(t, {
    'GET /whole': reply(async function* () {
      yield 'one,'
      yield 'two'
    }),
    'GET /broken': reply(async function* () {
      yield 'one,'
      yield 'two'
      throw new Error('the log has gone')
    }),
    'GET /never': () =>
      pacedReply(async () => {
        throw new Failure('service_unavailable', 'Not now.')
      }),
    'GET /many': reply(async function* () {
      for (made = 0; made < MANY_PIECES; made++) yield PIECE
    }),
  })

  await t.test('ends with its mark when it is whole', async (t) => {
    const client = new RawClient(port).send(head('GET /whole'))
    const text = await client.until((received) => received.endsWith(LAST_CHUNK))
    t.match(text, /^HTTP\/1.1 200 OK\r\n[\s\S]*content-type: text\/csv/i)
    client.socket.destroy()
  })

  await t.test('is cut without it when it fails on the way', async (t) => {
    const client = new RawClient(port).send(head('GET /broken'))
    await client.gone
    t.notOk(client.text.endsWith(LAST_CHUNK), 'nobody takes it for the whole')
    await t.rejects(fetch(`http://127.0.0.1:${port}/broken`).then((response) => response.text()))
  })

  await t.test('is an error like any other when it fails before it begins', async (t) => {
    const response = await fetch(`http://127.0.0.1:${port}/never`)
    t.equal(response.status, 503)
    t.match(await response.json(), { error: { code: 'service_unavailable' } })
  })

  await t.test('waits for its client, and is given up when that has left', async (t) => {
    const client = new RawClient(port)
    client.socket.pause()
    client.send(head('GET /many'))
    let last = -1
    await until(() => {
      const rests = made > 0 && made === last
      last = made
      return rests
    })
    t.ok(made < MANY_PIECES, `${made} pieces for nobody`)
    t.notOk(signals.at(-1)!.aborted)
    client.socket.destroy()
    await until(() => signals.at(-1)!.aborted)
    t.ok(made < MANY_PIECES)
  })
})
