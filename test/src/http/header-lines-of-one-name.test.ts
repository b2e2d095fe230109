/** A header that stands on several lines: a list is put together, of anything else the first line counts. */
import { map } from 'rxjs'
import t from 'tap'
import { ask, head, isWhole, serve, whole } from './support.ts'

t.test('lists are joined, other headers are not', async (t) => {
  const { port } = await serve(t, {
    'GET /show': ({ header }) =>
      whole(['anthropic-beta', 'accept', 'x-api-key', 'authorization'].map(header).join('|')),
  })
  const lines = [
    'anthropic-beta: one-2025',
    'x-api-key: first',
    'Accept: text/csv',
    'Anthropic-Beta: two-2025, three-2025',
    'anthropic-beta:',
    'x-api-key: second',
    'accept: application/json',
    'anthropic-beta: four-2025',
  ]
  const text = await ask(t, port, head('GET /show', ...lines), isWhole)
  const body = text.slice(text.indexOf('\r\n\r\n') + 4)
  t.equal(body, 'one-2025, two-2025, three-2025, four-2025|text/csv, application/json|first|')
})

t.test('the request id has a name for each SDK, of one value, which browsers may read', async (t) => {
  const { port } = await serve(t, {
    'GET /own': () => whole(''),
    'GET /replayed': () => whole('').pipe(map((reply) => ({ ...reply, requestId: 'req_of_the_first' }))),
  })
  for (const path of ['/own', '/replayed', '/nowhere']) {
    const text = await ask(t, port, head(`GET ${path}`), isWhole)
    const [, traced] = /\r\nx-gateway-trace: (req_\w+)\r\n/.exec(text) ?? []
    t.match(text, `\r\nx-request-id: ${traced}\r\n`, path)
    t.match(text, `\r\nrequest-id: ${traced}\r\n`, path)
    t.match(text, /\r\naccess-control-expose-headers: x-gateway-trace, x-request-id, request-id,/)
  }
})
