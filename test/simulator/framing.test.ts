import { once } from 'node:events'
import { createParser } from 'eventsource-parser'
import t from 'tap'
import { call, callsOf, chatBody, chatRequest, dataOf, lastCallThat, open, simulatorFor } from './support.ts'

const { url } = await simulatorFor(t)

const STREAM = { stream: true, stream_options: { include_usage: true } }

/** What a reader of the standard makes of the bytes: each JSON value, and the end mark. */
function eventsOf(body: Buffer): unknown[] {
  const events: unknown[] = []
  const parser = createParser({
    onEvent: ({ data }) => events.push(data === '[DONE]' ? data : JSON.parse(data)),
  })
  parser.feed(body.toString('utf8'))
  return events
}

t.test('every framing says the same events in other bytes', async (t) => {
  const plain = (await call(url, chatBody('sim', STREAM))).body
  const expected = eventsOf(plain)
  t.equal(expected.length, 64 + 4)
  const written = new Map<string, string>()
  for (const sse of ['crlf', 'comments', 'nospace', 'multiline', 'crlf+comments+nospace+multiline']) {
    const { body } = await call(url, chatBody(`sim@sse=${sse}`, STREAM))
    t.same(eventsOf(body), expected, sse)
    t.notSame(body, plain, sse)
    written.set(sse, body.toString('utf8'))
  }
  t.match(written.get('crlf'), /^data: \{.*\}\r\n\r\ndata: /)
  t.match(written.get('comments'), /^:\n: .*\n\ndata: /)
  t.match(written.get('nospace'), /^data:\{/)
  t.match(written.get('multiline'), /^data: \{\ndata: {2}"id"/)
})

t.test('split=N sends N bytes at a time, each its own chunk, between bytes of a character too', async (t) => {
  const simulate = { text: '你好 🚲', split: 1 }
  const answer = await call(url, chatBody('sim', { stream: true, simulate }))
  const plain = await call(url, chatBody('sim', { stream: true, simulate: { text: simulate.text } }))
  t.same(answer.body, plain.body)
  t.equal(answer.wire.toString('latin1').match(/1\r\n.\r\n/gs)?.length, plain.body.length)
  const whole = await call(url, chatBody('sim@split=100'))
  t.equal(whole.complete, true)
  t.same(whole.body, (await call(url, chatBody('sim'))).body)
})

t.test('one write a token', async (t) => {
  const chunksIn = (wire: Buffer) => wire.toString('latin1').match(/(^|\r\n)[0-9a-f]+\r\ndata/g)?.length
  const plain = await call(url, chatBody('sim@tokens=5', STREAM))
  t.equal(chunksIn(plain.wire), 5 + 4)
})

t.test('a paced answer begins while most of it is still to come, and stops with its caller', async (t) => {
  const socket = open(url, chatRequest(chatBody('sim@tps=20,tokens=100000', STREAM)))
  let received = ''
  while (dataOf(Buffer.from(received)).length < 4) received += String((await once(socket, 'data'))[0])
  t.match((await callsOf(url)).at(-1), { state: 'running', stream: true })
  socket.destroy()
  const closed = await lastCallThat(url, (record) => record.state !== 'running')
  t.equal(closed.state, 'client_closed')
  t.ok(closed.output_tokens >= 3 && closed.output_tokens < 100_000)
})

t.test('a caller who leaves before the first byte is noticed', async (t) => {
  for (const stream of [true, false]) {
    const socket = open(url, chatRequest(chatBody('sim@ttft=600000', { stream })))
    await lastCallThat(
      url,
      (record) => record.state === 'running' && record.stream === stream && record.model !== null,
    )
    socket.destroy()
    const closed = await lastCallThat(url, (record) => record.state !== 'running')
    t.match(closed, { state: 'client_closed', output_tokens: 0 })
  }
})

t.test('a caller who does not read stops the writing; reading on brings the rest', async (t) => {
  const tokens = 60_000
  const socket = open(
    url,
    chatRequest(chatBody(`sim@tokens=${tokens}`, { stream: true }), { connection: 'close' }),
  )
  socket.pause()
  let before = -1
  const stalled = await lastCallThat(url, (record) => {
    const same = record.output_tokens > 0 && record.output_tokens === before
    before = record.output_tokens
    return same
  })
  t.ok(stalled.output_tokens < tokens, 'it did not write everything')
  t.equal(stalled.state, 'running')
  let bytes = 0
  socket.on('data', (chunk: Buffer) => {
    bytes += chunk.length
  })
  socket.resume()
  await once(socket, 'close')
  t.ok(bytes > tokens * 100)
  t.match((await callsOf(url)).at(-1), { state: 'completed', output_tokens: tokens })
})
