/** A request whose body is still coming when the process drains is answered 503; one that is whole is carried out. */
import { from, Subject, switchMap } from 'rxjs'
import t from 'tap'
import { errorReply } from '../../../pipelines/calls/errors.ts'
import type { GatewayRequest, Reply } from '../../../src/http/handler.ts'
import { GatewayServer } from '../../../src/http/server.ts'
import { clientLimits, clientOn, HOST, head, statusOf, until, whole } from './support.ts'

const MIB = 1024 * 1024
const BOUNDARY = 'content-type: multipart/form-data; boundary=b'
const PART = '--b\r\ncontent-disposition: form-data; name="image"; filename="a.png"\r\n\r\nabc'

const readForm = ({ form }: GatewayRequest) =>
  from(
    form!.read({ maxFields: 9, maxFieldBytes: 1000, maxFiles: 9 }, async ({ content }) => {
      for await (const _ of content);
    }),
  ).pipe(switchMap(() => whole('stored')))

t.test('with bodies in every state', async (t) => {
  const running = new Subject<Reply>()
  let forms = 0
  let whole = 0
  const server = new GatewayServer({
    clients: clientLimits(),
    maxTextBytes: () => MIB,
    routes: new Map([
      [
        '/body',
        {
          POST: {
            handler: () => {
              whole++
              return running
            },
          },
        },
      ],
      [
        '/form',
        {
          POST: {
            handler: (request: GatewayRequest) => {
              forms++
              return readForm(request)
            },
            maxFormBytes: MIB,
          },
        },
      ],
    ]),
    renderError: (path, id) => errorReply(path, id, { onUnforeseen: t.error, onInternal: () => undefined }),
  })
  const port = await server.listen(HOST, 0)
  t.teardown(() => server.close())
  const send = (bytes: string) => {
    const client = clientOn(t, port)
    return client.send(bytes)
  }
  const length = 'content-length: 100000'
  const incomplete = {
    'no byte of a short body': head('POST /body', 'content-length: 3'),
    'a piece of a body': `${head('POST /body', length)}abc`,
    'a chunk of a body': `${head('POST /body', 'transfer-encoding: chunked')}3\r\nabc\r\n`,
    'a piece of a form': `${head('POST /form', BOUNDARY, length)}${PART}`,
    'a chunk of a form': `${head('POST /form', BOUNDARY, 'transfer-encoding: chunked')}${PART.length.toString(16)}\r\n${PART}\r\n`,
  }
  const clients = Object.entries(incomplete).map(([name, bytes]) => ({ name, client: send(bytes) }))
  const complete = send(`${head('POST /body', 'content-length: 3')}abc`)
  await until(() => server.inFlight === clients.length + 1 && forms === 2 && whole === 1)
  server.drain()
  for (const { name, client } of clients) {
    const text = await client.until((text) => text.includes('}'))
    t.equal(statusOf(text), 503, name)
    t.match(text, /\r\nretry-after: 1\r\n/, name)
    t.match(text, /does not wait for the rest/, name)
  }
  await until(() => server.inFlight === 1)
  running.next({ type: 'full', status: 200, headers: [], body: 'done' })
  running.complete()
  t.equal(statusOf(await complete.until((text) => text.endsWith('done'))), 200)
  await server.idle()
  t.equal(whole, 1, 'no other pipeline of a body has begun')
})
