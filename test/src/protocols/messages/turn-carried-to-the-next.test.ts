/**
 * A turn without its thinking is 400 on the next one. What the vendor signed comes back whole, whether a client
 * keeps the whole body, joins the deltas itself, or echoes what an SDK put together.
 */
import { ChatCompletionStream } from 'openai/lib/ChatCompletionStream'
import t from 'tap'
import { sent, tool } from './request.ts'
import { chatCall, MESSAGES_STREAMS, runInPieces, TO_MESSAGES, translatedStream } from './streams.ts'

/** The assistant's turn of the recorded stream, as its vendor wants it back. */
const TURN = {
  role: 'assistant',
  content: [
    { type: 'thinking', thinking: 'Two cities, two calls.', signature: 'EqQBCgIYAhIkYz==' },
    { type: 'redacted_thinking', data: 'EmwKAhgBEgy3va3pzix' },
    { type: 'text', text: 'Let me look.' },
    { type: 'tool_use', id: 'toolu_01A', name: 'get_weather', input: { city: 'Köln' } },
    { type: 'tool_use', id: 'toolu_01B', name: 'get_time', input: {} },
  ],
}
const CHUNKS = runInPieces(translatedStream(), MESSAGES_STREAMS.get('thinking-and-parallel-tools')!, [])
  .output.toString()
  .split('\n\n')
  .filter((line) => line !== '' && line !== 'data: [DONE]')
  .map((line) => line.slice('data: '.length))

/** What the upstream gets when the client goes on after `message`. */
const nextTurn = (message: object) =>
  sent({
    messages: [
      { role: 'user', content: 'Weather and time?' },
      message,
      tool('toolu_01A', 'rain'),
      tool('toolu_01B', 'noon'),
    ],
    reasoning_effort: 'low',
  })

t.test('echoed from the SDK’s stream', async (t) => {
  const lines = new ReadableStream({
    start(controller) {
      for (const chunk of CHUNKS) controller.enqueue(new TextEncoder().encode(`${chunk}\n`))
      controller.close()
    },
  })
  const message = await ChatCompletionStream.fromReadableStream(lines).finalMessage()
  t.equal(message.content, 'Let me look.')
  const { messages, thinking, dropped } = nextTurn(message)
  t.strictSame(messages[1], TURN)
  t.same([thinking.type, dropped], ['enabled', []], 'and the model may go on thinking')
})

t.test('joined from deltas by hand', async (t) => {
  const message: {
    thinking_blocks: object[]
    tool_calls: { function: { arguments: string } }[]
    content: string
  } = {
    thinking_blocks: [],
    tool_calls: [],
    content: '',
  }
  for (const chunk of CHUNKS) {
    const { content, thinking_blocks, tool_calls } = JSON.parse(chunk).choices[0]?.delta ?? {}
    message.content += content ?? ''
    message.thinking_blocks.push(...(thinking_blocks ?? []))
    for (const { index, ...call } of tool_calls ?? [])
      if (message.tool_calls[index]) message.tool_calls[index].function.arguments += call.function.arguments
      else message.tool_calls[index] = call
  }
  t.strictSame(nextTurn({ role: 'assistant', ...message }).messages[1], TURN)
})

t.test('kept from a whole body', async (t) => {
  const whole = { type: 'message', id: 'msg_1', stop_reason: 'tool_use', usage: {}, ...TURN }
  const { body } = TO_MESSAGES.readWhole(chatCall(), Buffer.from(JSON.stringify(whole)))
  const { message } = JSON.parse(body.toString()).choices[0]
  t.strictSame(nextTurn(message).messages[1], TURN)
})

t.test('lost by the client: the model does not think, and the developer gets a warning', async (t) => {
  const { thinking_blocks: _lost, ...message } = {
    role: 'assistant',
    content: null,
    tool_calls: [{ id: 'toolu_01A', type: 'function', function: { name: 'get_weather', arguments: '{}' } }],
    thinking_blocks: [],
  }
  const { thinking, dropped } = nextTurn(message)
  t.equal(thinking, undefined)
  t.match(dropped, [/^reasoning_effort \(.*thinking_blocks/])
})
