/** A header that stands on several lines: lists are joined, and two values where one decides are refused. */
import { map } from 'rxjs'
import t from 'tap'
import { readSession, SESSION_HEADERS } from '../../../src/core/routing/session.ts'
import { ask, head, isWhole, serve, statusOf, whole } from './support.ts'

t.test('lists are joined', async (t) => {
  const { port } = await serve(t, {
    'GET /show': ({ header }) => whole(['anthropic-beta', 'accept', 'authorization'].map(header).join('|')),
  })
  const lines = [
    'anthropic-beta: one-2025',
    'Accept: text/csv',
    'Anthropic-Beta: two-2025, three-2025',
    'anthropic-beta:',
    'accept: application/json',
    'anthropic-beta: four-2025',
  ]
  const text = await ask(t, port, head('GET /show', ...lines), isWhole)
  const body = text.slice(text.indexOf('\r\n\r\n') + 4)
  t.equal(body, 'one-2025, two-2025, three-2025, four-2025|text/csv, application/json|')
})

const DECIDING = [
  'authorization',
  'x-api-key',
  'x-goog-api-key',
  'x-partner-api-key',
  'content-type',
  'anthropic-version',
  'vendor-version',
  'mcp-protocol-version',
  'session_id',
  'session-id',
  'conversation_id',
  'conversation-id',
  'x-session-id',
  'range',
  'if-range',
  'origin',
  'cookie',
  'x-csrf-token',
  'stripe-signature',
  'last-event-id',
  'sec-fetch-site',
]

t.test('two values of a header that decides are refused', async (t) => {
  const { port, seen } = await serve(t, { 'POST /echo': ({ body }) => whole(`got ${body.length}`) })
  for (const name of DECIDING) {
    const two = head('POST /echo', `${name}: one`, 'x: y', `${name}: two`, 'content-length: 3')
    const text = await ask(t, port, `${two}abc`, isWhole)
    t.equal(statusOf(text), 400, name)
    t.match(text, `header ${name} twice`)
    t.equal(seen.length, 0)
  }
  for (const name of DECIDING) {
    const equal = head('POST /echo', `${name}: one`, `${name}:`, `${name}: one`, 'content-length: 3')
    t.match(await ask(t, port, `${equal}abc`, isWhole), /got 3$/, `${name}, twice the same`)
  }
})

t.test('a session comes by each of its names, with underscores and with hyphens', async (t) => {
  const { port } = await serve(t, { 'GET /show': ({ header }) => whole(readSession(header)) })
  for (const name of SESSION_HEADERS) {
    const text = await ask(t, port, head('GET /show', `${name}: one`), isWhole)
    t.match(text, /\r\n\r\none$/, name)
  }
  const lines = ['x-session-id: c', 'conversation-id: b', 'session-id: a']
  t.match(
    await ask(t, port, head('GET /show', ...lines), isWhole),
    /\r\n\r\na$/,
    'the first of the list counts',
  )
})

t.test('of a header on which nothing depends the first line counts', async (t) => {
  const { port } = await serve(t, {
    'GET /show': ({ header }) => whole(['user-agent', 'traceparent'].map(header).join('|')),
  })
  const lines = ['user-agent: one', 'user-agent: two', 'traceparent: a', 'traceparent: b']
  t.match(await ask(t, port, head('GET /show', ...lines), isWhole), /one\|a$/)
})

t.test('two Idempotency-Keys are none that a handler can take for one', async (t) => {
  const { port } = await serve(t, {
    'POST /show': ({ header, hasHeader }) =>
      whole(`${hasHeader('idempotency-key')} [${header('idempotency-key')}]`),
  })
  const show = async (...lines: string[]) => {
    const text = await ask(t, port, head('POST /show', ...lines, 'content-length: 0'), isWhole)
    return text.slice(text.indexOf('\r\n\r\n') + 4)
  }
  t.equal(await show('idempotency-key: a', 'idempotency-key: a'), 'true [a, a]')
  t.equal(await show('idempotency-key:', 'idempotency-key: a'), 'true [, a]')
  t.equal(await show('idempotency-key: a', 'idempotency-key:'), 'true [a, ]')
  t.equal(await show('idempotency-key:'), 'true []')
  t.equal(await show(), 'false []')
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
