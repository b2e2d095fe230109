/** A JSON body may be large by the files that it carries inline; its text has a smaller limit. */
import t from 'tap'
import { hasTextBeyond } from '../../../src/core/media/inline-files.ts'
import { ask, head, isWhole, serve, statusOf, whole } from './support.ts'

const MIB = 1024 * 1024
const picture = (bytes: number) => `data:image/png;base64,${Buffer.alloc(bytes * 0.75, 7).toString('base64')}`
const body = (text: string, file: string) =>
  JSON.stringify({ messages: [{ content: [{ text }, { image_url: { url: file } }] }] })

function isBeyond(text: string, bytes: number): boolean {
  const measuring = hasTextBeyond(Buffer.from(text), bytes)
  for (;;) {
    const { done, value } = measuring.next()
    if (done) return value
  }
}

t.test('strings of base64 are files, everything else is text', async (t) => {
  const isText = (text: string, bytes: number) => {
    t.ok(isBeyond(text, bytes - 1), `more than ${bytes - 1}`)
    t.notOk(isBeyond(text, bytes), `no more than ${bytes}`)
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
