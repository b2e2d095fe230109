/** A JSON body may be large by the files that it carries inline; its text has a smaller limit. */
import t from 'tap'
import { type ArrivingBody, hasTextBeyond } from '../../../src/core/media/inline-files.ts'
import { ask, clientLimits, clientOn, head, isWhole, serve, statusOf, until, whole } from './support.ts'

const MIB = 1024 * 1024
const picture = (bytes: number) => `data:image/png;base64,${Buffer.alloc(bytes * 0.75, 7).toString('base64')}`
const body = (text: string, file: string) =>
  JSON.stringify({ messages: [{ content: [{ text }, { image_url: { url: file } }] }] })

/** Measures a text that comes in pieces of `pieceBytes`, with a step or several for each. */
function isBeyond(text: string, bytes: number, pieceBytes = text.length): boolean {
  const whole = Buffer.from(text)
  const body: ArrivingBody = { bytes: whole.subarray(0, pieceBytes), isWhole: pieceBytes >= whole.length }
  const measuring = hasTextBeyond(body, bytes)
  for (;;) {
    const { done, value } = measuring.next()
    if (done) return value
    const length = body.bytes.length + pieceBytes
    // Copied, as a body that grows is.
    body.bytes = Buffer.from(whole.subarray(0, length))
    body.isWhole = length >= whole.length
  }
}

t.test('strings of base64 are files, everything else is text', async (t) => {
  const isText = (text: string, bytes: number) => {
    for (const pieceBytes of [text.length, 100_003, 4096, 999])
      for (const [limit, expected] of [
        [bytes - 1, true],
        [bytes, false],
      ] as const)
        t.equal(isBeyond(text, limit, pieceBytes), expected, `${bytes} of ${limit} by ${pieceBytes}`)
  }
  const text = 'a b '.repeat(10_000)
  isText(body(text, ''), body(text, '').length)
  isText(body(text, picture(MIB)), body(text, '').length - 2)
  isText(body(text, picture(MIB).replaceAll('/', '\\/')), body(text, '').length + 'base64'.length - 8)
  isText(`{"a":"${'x'.repeat(4000)}"}`, 4008)
  isText(`{"a":"${'x!'.repeat(4000)}"}`, 8008)
  isText(`{"a":"${'x'.repeat(9000)}`, 5)
  isText(body(text, `${picture(MIB)} `), body(text, picture(MIB)).length + 1)
})

t.test('a server refuses too much text, and takes as much with files', async (t) => {
  const { port, seen } = await serve(t, {
    'POST /echo': ({ body }: { body: Buffer }) => whole(String(body.length)),
  })
  const send = async (content: string) =>
    ask(t, port, `${head('POST /echo', `content-length: ${content.length}`)}${content}`, isWhole)
  const large = body('hi', picture(12 * MIB))
  t.match(await send(large), new RegExp(`\\r\\n\\r\\n${large.length}$`))
  const refused = await send(body('a b '.repeat(3 * MIB), picture(MIB)))
  t.equal(statusOf(refused), 413)
  t.match(refused, 'larger than 10 MiB without the files that it carries inline')
  t.equal(seen.length, 1)
})

t.test('too much text is not kept, and is refused when the client has sent all', async (t) => {
  const clients = clientLimits({ maxBufferedBytes: 64 * MIB })
  const { port, seen, server } = await serve(t, { 'POST /echo': () => whole('never') }, clients)
  const half = '{"text":"a b"},'.repeat(MIB)
  const chunk = `${half.length.toString(16)}\r\n${half}\r\n`
  for (const [framing, first, second] of [
    [`content-length: ${2 * half.length}`, half, half],
    ['transfer-encoding: chunked', chunk, `${chunk}0\r\n\r\n`],
  ] as const) {
    const client = clientOn(t, port)
    client.send(`${head('POST /echo', framing, 'connection: close')}${first}`)
    await until(() => server.inFlight === 1 && clients.bufferedBytes > 0)
    await until(() => clients.bufferedBytes === 0)
    t.equal(client.text, '')
    client.send(second)
    await client.gone
    t.equal(statusOf(client.text), 413, framing)
    t.match(client.text, 'larger than 10 MiB without the files that it carries inline')
  }
  t.equal(seen.length, 0)
})
