/** The channel's key inside a 200 is masked for the client, whole and streamed, in every protocol. */
import t from 'tap'
import type { ChatProtocol } from '../../../schemas/config/catalog.ts'
import { clientCall, DONE, event, FINISH, RunningCall, usageChunk, word } from './forward-support.ts'

const KEY = 'key-of-only'
const MASKED = '[secret]'

const WHOLE: Readonly<Record<ChatProtocol, (text: string) => object>> = {
  'chat-completions': (content) => ({ choices: [{ index: 0, message: { role: 'assistant', content } }] }),
  messages: (text) => ({ type: 'message', content: [{ type: 'text', text }], stop_reason: 'end_turn' }),
  'generate-content': (text) => ({ candidates: [{ content: { parts: [{ text }] }, finishReason: 'STOP' }] }),
  responses: (text) => ({
    status: 'completed',
    output: [{ type: 'message', content: [{ type: 'output_text', text }] }],
  }),
}
const STREAMED: Readonly<Record<ChatProtocol, (text: string) => string>> = {
  'chat-completions': (text) => word(text) + FINISH + usageChunk(1, 1) + DONE,
  messages: (text) =>
    [
      { type: 'message_start', message: { usage: { input_tokens: 1, output_tokens: 1 } } },
      { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } },
      { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 2 } },
      { type: 'message_stop' },
    ]
      .map((data) => `event: ${data.type}\n${event(data)}`)
      .join(''),
  'generate-content': (text) =>
    event({ candidates: [{ content: { parts: [{ text }] }, finishReason: 'STOP' }] }),
  responses: (text) =>
    [
      { type: 'response.created', response: { id: 'r' } },
      { type: 'response.output_text.delta', delta: text },
      { type: 'response.completed', response: { usage: { input_tokens: 1, output_tokens: 1 } } },
    ]
      .map((data) => `event: ${data.type}\n${event(data)}`)
      .join(''),
}
const PROTOCOLS = Object.keys(WHOLE) as ChatProtocol[]

for (const protocol of PROTOCOLS) {
  t.test(`${protocol}: whole`, async (t) => {
    const call = new RunningCall({ client: clientCall(protocol, 'hi', false), upstream: protocol })
    const body = WHOLE[protocol](`my key is ${KEY}, so`)
    call.attempt.answer(body)
    t.equal(call.sent, JSON.stringify(body).replace(KEY, MASKED))
    t.match(call.settlement, { status: 'success' })
  })

  t.test(`${protocol}: streamed, split at each byte of the key`, async (t) => {
    const text = STREAMED[protocol](`my key is ${KEY}, so`)
    // Without the option the client gets the usage chunk as well.
    const more = protocol === 'chat-completions' ? { stream_options: { include_usage: true } } : {}
    const at = text.indexOf(KEY)
    for (let cut = at - 1; cut <= at + KEY.length + 1; cut++) {
      const call = new RunningCall({ client: clientCall(protocol, 'hi', true, more), upstream: protocol })
      call.attempt.head()
      call.attempt.data(text.slice(0, cut))
      call.attempt.data(text.slice(cut))
      call.attempt.end()
      t.equal(call.sent, text.replace(KEY, MASKED), `cut at ${cut - at}`)
      t.match(call.settlement, { status: 'success' })
    }
  })
}

t.test('in a translated answer too', async (t) => {
  for (const stream of [false, true]) {
    const call = new RunningCall({
      client: clientCall('chat-completions', 'hi', stream),
      upstream: 'messages',
    })
    if (stream) call.attempt.stream(STREAMED.messages(KEY))
    else call.attempt.answer(WHOLE.messages(KEY))
    t.match(call.sent, MASKED)
    t.notMatch(call.sent, KEY)
  }
})

t.test('what waits for the rest of a key goes out when the stream ends, or breaks', async (t) => {
  for (const end of ['end', 'break'] as const) {
    const call = new RunningCall({ client: clientCall('messages', 'hi', true), upstream: 'messages' })
    const [start = '', delta = ''] = STREAMED.messages('x').split(/(?<=\n\n)/)
    const text = `${start}${delta}data: key-of`
    call.attempt.head()
    call.attempt.data(text)
    if (end === 'end') call.attempt.end()
    else call.attempt.fail('reset', { headReceived: true })
    t.equal(call.sent, text, end)
  }
})
