import t from 'tap'
import type { Frame } from '../../simulator/answers/sse.ts'
import { type Dialect, jsonAnswer, SimulatedFailure } from '../../simulator/dialect.ts'
import { DIALECTS } from '../../simulator/dialects.ts'
import { startSimulator } from '../../simulator/server.ts'
import { call, chatBody } from './support.ts'

/** A dialect with a model in the path, named events and an error shape of its own. */
const parrot: Dialect = {
  name: 'parrot',
  endpoints: [
    {
      method: 'POST',
      path: /^\/parrot\/([^/]+)\/speak$/,
      open: (request) => {
        if (request.body.length === 0) throw new SimulatedFailure(400, 'invalid_request', 'Say something.')
        return {
          ...{ model: request.path[1] ?? null, stream: request.query.has('stream') },
          directives: [request.headers['x-parrot']],
          answer: (directives) => {
            const tokens = Array.from({ length: directives.tokens ?? 2 }, () => request.body.toString())
            const headers = { 'content-type': 'text/event-stream' }
            if (request.query.has('stream')) return { kind: 'streamed', headers, frames: squawks(tokens) }
            return { ...jsonAnswer(201, { tokens }), tokens: tokens.length }
          },
        }
      },
    },
  ],
  failure: (failure) => jsonAnswer(failure.status, { squawk: failure.message }),
  failureFrame: (failure) => ({ event: 'squawk', data: failure.message, tokens: 0 }),
}

function* squawks(tokens: readonly string[]): Iterator<Frame, void> {
  for (const token of tokens) yield { event: 'word', data: token, tokens: 1 }
  yield { event: 'silence', data: '.', tokens: 0, terminator: true }
}

async function withParrot(t: { teardown(task: () => Promise<void>): void }) {
  const simulator = await startSimulator({ host: '127.0.0.1', port: 0, dialects: [...DIALECTS, parrot] })
  t.teardown(() => simulator.close())
  const speak = (path: string, body: string, headers: Record<string, string> = {}) =>
    fetch(`${simulator.url}/parrot/${path}`, { method: 'POST', body, headers })
  return { ...simulator, speak }
}

t.test('a dialect that is added is spoken beside the others', async (t) => {
  const { url, speak } = await withParrot(t)
  const whole = await speak('grey/speak', 'hello')
  t.equal(whole.status, 201)
  t.same(await whole.json(), { tokens: ['hello', 'hello'] })
  t.equal((await call(url, chatBody('sim'))).status, 200)
})

t.test('it has pace, framing, faults and records without a line of its own', async (t) => {
  const { url, speak } = await withParrot(t)
  const say = async (directives: string) => {
    const response = await speak('grey/speak?stream', 'hi', { 'x-parrot': directives })
    return response.text()
  }
  const words = 'event: word\ndata: hi\n\nevent: word\ndata: hi\n\n'
  t.equal(await say('tps=1000'), `${words}event: silence\ndata: .\n\n`)
  t.equal(await say('fault=no_done'), words)
  t.equal(await say('fault=truncate:11'), 'event: word')
  t.equal(
    await say('tokens=1,sse=crlf+nospace'),
    'event:word\r\ndata:hi\r\n\r\nevent:silence\r\ndata:.\r\n\r\n',
  )
  t.match(await say('fault=stream_error:1'), /^event: word\ndata: hi\n\nevent: squawk\ndata: The server/)
  const calls = (await (await fetch(`${url}/simulator/calls`)).json()) as unknown[]
  t.match(calls.at(-1), { model: 'grey', stream: true, state: 'faulted', output_tokens: 1 })
})

t.test('its failures have its own shape', async (t) => {
  const { speak } = await withParrot(t)
  const refusals: [Response, number, RegExp][] = [
    [await speak('grey/speak', ''), 400, /Say something/],
    [await speak('grey/speak', 'hi', { 'x-parrot': 'speed=1' }), 400, /"speed"/],
    [await speak('grey/speak', 'hi', { 'x-simulate': 'fault=status:503' }), 503, /simulated/],
  ]
  for (const [response, status, squawk] of refusals) {
    t.equal(response.status, status)
    t.match(await response.json(), { squawk })
  }
})
