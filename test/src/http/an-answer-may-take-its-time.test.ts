/** The server closes a connection on which it waits for bytes. It must not do so to one that waits for its answer. */
import { setTimeout as after } from 'node:timers/promises'
import { delay, from, map, switchMap } from 'rxjs'
import t from 'tap'
import type { Handler } from '../../../src/http/handler.ts'
import { clientOn, head, isWhole, serve, until, whole } from './support.ts'

/** Ten seconds without a byte, and four until the server looks again. */
const SLOW_ANSWER_MS = 15_000
const FORM_LIMITS = { maxFields: 1, maxFieldBytes: 1024, maxFiles: 1 }

const chunk = (text: string): string => `${text.length.toString(16)}\r\n${text}\r\n`
const LAST_CHUNK = '0\r\n\r\n'
const CHUNKED = 'transfer-encoding: chunked'
const BODY = 'x'.repeat(20_000)

t.test('a request that comes whole while its key is looked up, or while nobody reads it', async (t) => {
  const gate = Promise.withResolvers<void>()
  let begun = 0
  const handler: Handler = ({ body }) => {
    begun++
    return whole(`${body.length} bytes`).pipe(delay(SLOW_ANSWER_MS))
  }
  const slow = Object.assign(handler, { admit: () => gate.promise })
  /** Reads a form more slowly than it comes. */
  const read: Handler = ({ form }) => {
    let bytes = 0
    const reading = form!.read(FORM_LIMITS, async ({ content }) => {
      for await (const piece of content) {
        bytes += piece.length
        await after(100)
      }
    })
    return from(reading).pipe(
      map(() => bytes),
      switchMap((length) => whole(`${length} bytes`)),
      delay(SLOW_ANSWER_MS),
    )
  }
  const { port } = await serve(t, {
    'POST /slow': slow,
    'POST /form': { handler: read, maxFormBytes: 1024 * 1024 },
  })
  const form = [
    '--b\r\ncontent-disposition: form-data; name="f"; filename="f"\r\n\r\n',
    ...Array<string>(60).fill('x'.repeat(8000)),
    '\r\n--b--\r\n',
  ]
  const requests = [
    head('POST /slow', 'content-length: 20000') + BODY,
    head('POST /slow', CHUNKED) + chunk(BODY) + LAST_CHUNK,
    head('POST /form', 'content-type: multipart/form-data; boundary=b', CHUNKED) +
      form.map(chunk).join('') +
      LAST_CHUNK,
  ]
  const raws = requests.map((request) => clientOn(t, port).send(request))
  await until(() => begun === 2)
  gate.resolve()
  const texts = await Promise.all(raws.map((raw) => raw.until(isWhole)))
  t.same(
    texts.map((text) => text.slice(text.lastIndexOf('\n') + 1)),
    ['20000 bytes', '20000 bytes', '480000 bytes'],
  )
})
