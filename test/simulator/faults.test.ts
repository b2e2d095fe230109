import { once } from 'node:events'
import t from 'tap'
import {
  call,
  callsOf,
  chatBody,
  chatRequest,
  chunksOf,
  dataOf,
  lastCallThat,
  open,
  type RawAnswer,
  simulatorFor,
} from './support.ts'

const { url } = await simulatorFor(t)

const STREAM = { stream: true }

/** What a stream without a fault says: the faults below are compared with it. */
async function wholeStream(url: string): Promise<Buffer> {
  return (await call(url, chatBody('sim', STREAM))).body
}

t.test('reset:N gives N bytes of the body and then a TCP reset, wherever that is', async (t) => {
  const whole = await wholeStream(url)
  const positions = Array.from({ length: 100 }, (_, index) => index * 7)
  const resetAt = (bytes: number) => call(url, chatBody(`sim@fault=reset:${bytes}`, STREAM))
  for (const [index, answer] of (await Promise.all(positions.map(resetAt))).entries()) {
    t.equal(answer.status, 200)
    t.same(answer.body, whole.subarray(0, index * 7), `${index * 7} bytes`)
    t.equal(answer.complete, false)
    t.equal(answer.ending, 'reset')
  }
  t.equal((await callsOf(url)).filter((record) => record.state === 'faulted').length, 100)
})

t.test('reset:head resets before any byte', async (t) => {
  const answer = await call(url, chatBody('sim@fault=reset:head'))
  t.same(answer.wire, Buffer.alloc(0))
  t.equal(answer.ending, 'reset')
})

t.test('truncate:N ends as HTTP wants it, without an end mark', async (t) => {
  const whole = await wholeStream(url)
  for (const bytes of [0, 1, 307, 1000]) {
    const answer = await call(url, chatBody(`sim@fault=truncate:${bytes}`, STREAM))
    t.same(answer.body, whole.subarray(0, bytes))
    t.equal(answer.complete, true)
    t.equal(answer.ending, 'end')
  }
  const inOnePiece = await call(url, chatBody('sim@fault=truncate:50'))
  t.equal(inOnePiece.body.length, 50)
  t.equal(inOnePiece.complete, true)
  t.match(await lastCallThat(url, (record) => record.state !== 'running'), { state: 'faulted' })
})

t.test('cut:N closes inside a chunk that was announced', async (t) => {
  const whole = await wholeStream(url)
  const firstEvent = whole.indexOf('\n\n') + 2
  for (const bytes of [0, 1, firstEvent - 1, firstEvent, firstEvent + 1, 1000]) {
    const answer = await call(url, chatBody(`sim@fault=cut:${bytes}`, STREAM))
    t.same(answer.body, whole.subarray(0, bytes), `${bytes} bytes`)
    t.equal(answer.complete, false)
    t.equal(answer.ending, 'end')
  }
  const atTheEnd = await call(url, chatBody(`sim@fault=cut:${whole.length}`, STREAM))
  t.same(atTheEnd.body, whole)
  t.equal(atTheEnd.complete, false)
  const inOnePiece = await call(url, chatBody('sim@fault=cut:50'))
  t.equal(inOnePiece.body.length, 50)
  t.equal(inOnePiece.complete, false)
})

t.test('a byte fault beyond the end leaves the answer whole', async (t) => {
  const whole = await wholeStream(url)
  for (const kind of ['reset', 'truncate', 'cut', 'hang']) {
    const answer = await call(url, chatBody(`sim@fault=${kind}:1000000`, STREAM))
    t.same(answer.body, whole, kind)
    t.equal(answer.complete, true, kind)
    t.match((await callsOf(url)).at(-1), { state: 'completed' })
  }
})

t.test('status:N answers that status with an error body; 429 says when to come back', async (t) => {
  const answerTo = async (status: number) => {
    const answer = await call(url, chatBody(`sim@fault=status:${status}`, STREAM))
    t.equal(answer.status, status)
    return { ...answer, error: JSON.parse(answer.body.toString()).error as Record<string, unknown> }
  }
  const limited = await answerTo(429)
  t.match(limited.head, /retry-after: 1/)
  t.match(limited.error, { type: 'requests', param: null, code: 'rate_limit_exceeded' })
  for (const status of [500, 502, 503, 599]) t.match((await answerTo(status)).error, { type: 'server_error' })
  for (const status of [400, 403, 422])
    t.match((await answerTo(status)).error, { type: 'invalid_request_error' })
  t.match((await answerTo(200)).error, { message: String })
  t.notMatch((await answerTo(500)).head, /retry-after/)
})

t.test('stream_error sends an error event, first or after N tokens, and no end mark', async (t) => {
  const events = async (fault: string) => {
    const answer = await call(url, chatBody(`sim@tokens=5,fault=${fault}`, STREAM))
    t.equal(answer.status, 200)
    t.equal(answer.complete, true)
    return dataOf(answer.body).map((data) => (data === '[DONE]' ? data : Object.keys(JSON.parse(data))[0]))
  }
  t.same(await events('stream_error'), ['error'])
  t.same(await events('stream_error:2'), ['id', 'id', 'id', 'error'])
  t.same(await events('stream_error:99'), ['id', 'id', 'id', 'id', 'id', 'id', 'id', '[DONE]'])
  const inOnePiece = await call(url, chatBody('sim@fault=stream_error'))
  t.equal(inOnePiece.status, 200)
  t.match(JSON.parse(inOnePiece.body.toString()), { error: { type: 'server_error' } })
})

t.test('no_stream_options refuses that field and nothing else', async (t) => {
  const model = 'sim@fault=no_stream_options'
  const refused = await call(url, chatBody(model, { ...STREAM, stream_options: { include_usage: true } }))
  t.equal(refused.status, 400)
  t.match(JSON.parse(refused.body.toString()), {
    error: { type: 'invalid_request_error', param: 'stream_options', message: /stream_options/ },
  })
  t.match((await callsOf(url)).at(-1), { state: 'faulted' })
  const served = await call(url, chatBody(model, STREAM))
  t.equal(dataOf(served.body).at(-1), '[DONE]')
  t.match((await callsOf(url)).at(-1), { state: 'completed' })
})

t.test('no_done leaves out the end mark alone', async (t) => {
  const answer = await call(url, chatBody('sim@fault=no_done', STREAM))
  t.equal(answer.complete, true)
  t.equal(dataOf(answer.body).includes('[DONE]'), false)
  t.equal(chunksOf(answer.body).at(-1)?.choices[0]?.finish_reason, 'stop')
})

t.test('refuse closes the connection, by the header before the body is read', async (t) => {
  const { url } = await simulatorFor(t)
  const empty = (answer: RawAnswer) => t.same(answer.wire, Buffer.alloc(0))
  empty(await call(url, chatBody('sim@fault=refuse')))
  const head = `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nx-simulate: fault=refuse\r\n`
  const socket = open(url, `${head}content-length: 1000000\r\n\r\n`)
  socket.on('error', () => {})
  await once(socket, 'close')
  t.match(await callsOf(url), [
    { state: 'faulted', model: 'sim@fault=refuse' },
    { state: 'faulted', model: null, body_bytes: 0 },
  ])
})

t.test('hang never answers, hang:N stops there, and both notice the caller leaving', async (t) => {
  const silent = open(url, chatRequest(chatBody('sim@fault=hang', STREAM)))
  await lastCallThat(url, (record) => record.state === 'running' && record.model !== null)
  silent.destroy()
  await lastCallThat(url, (record) => record.state === 'client_closed')

  const stuck = open(url, chatRequest(chatBody('sim@fault=hang:40', STREAM)))
  let received = ''
  while (!/\r\n\r\n[0-9a-f]+\r\ndata: .{34}/.test(received))
    received += String((await once(stuck, 'data'))[0])
  t.match(await lastCallThat(url, () => true), { state: 'running' })
  stuck.destroy()
  t.match(await lastCallThat(url, (record) => record.state === 'client_closed'), { closed_at: String })
})

t.test('times=K strikes the first K requests with exactly these directives', async (t) => {
  const statusOf = async (model: string, headers: Record<string, string> = {}) =>
    (await call(url, chatBody(model), headers)).status
  const twice = 'sim@fault=status:503,times=2'
  t.same([await statusOf(twice), await statusOf(twice), await statusOf(twice)], [503, 503, 200])
  t.equal(await statusOf(`${twice},tag=another`), 503)
  const header = { 'x-simulate': 'fault=refuse,times=1' }
  t.same([await statusOf('sim', header), await statusOf('sim', header)], [0, 200])
  await fetch(`${url}/simulator/calls`, { method: 'DELETE' })
  t.equal(await statusOf(twice), 503, 'clearing the calls begins the count again')
})
