/** A JSON body may be large by the files that it carries inline; its text has a smaller limit. */
import t from 'tap'
import { textBytesOf } from '../../../src/core/inline-files.ts'
import { ask, head, isWhole, serve, statusOf, whole } from './support.ts'

const MIB = 1024 * 1024
const picture = (bytes: number) => `data:image/png;base64,${Buffer.alloc(bytes * 0.75, 7).toString('base64')}`
const body = (text: string, file: string) =>
  JSON.stringify({ messages: [{ content: [{ text }, { image_url: { url: file } }] }] })

t.test('strings of base64 are files, everything else is text', async (t) => {
  const text = 'a b '.repeat(10_000)
  t.equal(textBytesOf(Buffer.from(body(text, ''))), body(text, '').length)
  const bytes = textBytesOf(Buffer.from(body(text, picture(MIB))))
  t.equal(bytes, body(text, '').length - 2)
  const escaped = picture(MIB).replaceAll('/', '\\/')
  t.ok(textBytesOf(Buffer.from(`{"a":"${escaped}"}`)) < 100)
  t.equal(textBytesOf(Buffer.from(`{"a":"${'x'.repeat(4000)}"}`)), 4008, 'a short string is text')
  t.equal(textBytesOf(Buffer.from(`{"a":"${'x!'.repeat(4000)}"}`)), 8008)
  t.ok(
    textBytesOf(Buffer.from(`{"a":"${'x'.repeat(9000)}`)) < 10,
    'a string without its end ends with the body',
  )
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
