/** A form that breaks a rule is refused as soon as that is known, whatever comes with it. */
import { from, switchMap } from 'rxjs'
import t from 'tap'
import type { Handler } from '../../../src/http/handler.ts'
import { clientOn, head, serve, until, whole } from './support.ts'

const FORM_BYTES = 1024 * 1024
const LIMITS = { maxFields: 2, maxFieldBytes: 1024, maxFiles: 1 }

const read: Handler = ({ form }) =>
  from(
    form!.read(LIMITS, async ({ content }) => {
      for await (const _ of content);
    }),
  ).pipe(switchMap((fields) => whole(`{"fields":${fields.length}}`)))

const part = (disposition: string, content: string): string =>
  `--b\r\ncontent-disposition: form-data${disposition}\r\n\r\n${content}\r\n`
const field = (content: string): string => part('; name="a"', content)
const BEGUN_FILE = '--b\r\ncontent-disposition: form-data; name="f"; filename="f"\r\n\r\nbegins'
const END = '--b--\r\n'

t.test('the answer waits for nothing more of the form', async (t) => {
  const { port, server, unforeseen } = await serve(t, {
    'POST /form': { handler: read, maxFormBytes: FORM_BYTES },
  })
  for (const [form, answer] of [
    [field('x') + field('y') + END, /200.*"fields":2/s],
    [part('', 'x') + END, /400.*A part of the form has no name/s],
    [part('; filename="f"', 'x') + END, /400.*A part of the form has no name/s],
    [part('', 'x') + BEGUN_FILE, /400.*A part of the form has no name/s],
    [field('x').repeat(3) + BEGUN_FILE, /400.*more than 2 fields/s],
    [field('x'.repeat(1025)) + BEGUN_FILE, /400.*longer than 1 KiB/s],
  ] as const) {
    const client = clientOn(t, port)
    const length = form.endsWith(END) ? form.length : FORM_BYTES
    const type = 'content-type: multipart/form-data; boundary=b'
    client.send(head('POST /form', type, `content-length: ${length}`) + form)
    t.match(await client.until((text) => text.includes('}')), answer)
    client.socket.destroy()
  }
  await until(() => server.inFlight === 0)
  t.same(unforeseen, [])
})
