import t from 'tap'
import {
  askMessages,
  eventsOf,
  type Json,
  jsonOf,
  MESSAGES_HEADERS,
  type StreamEvent,
} from './dialects-support.ts'
import { post, simulatorFor } from './support.ts'

const { url } = await simulatorFor(t)

const TOOLS = [
  { name: 'now', input_schema: { type: 'object' } },
  { name: 'weather', input_schema: { type: 'object', properties: { city: { type: 'string' } } } },
]
const THINKING = { thinking: { type: 'enabled', budget_tokens: 1024 } }

t.test('a stream begins a message, its blocks, and ends them', async (t) => {
  const answer = await askMessages(url, '@tokens=2', { stream: true })
  t.match(answer.head, /content-type: text\/event-stream; charset=utf-8/i)
  t.match(answer.head, /request-id: req_[0-9a-f]{24}/)
  const events = eventsOf(answer.body)
  for (const { event, data } of events) t.equal(data.type, event)
  t.same(
    events.map(({ event }) => event),
    [
      ...['message_start', 'content_block_start', 'ping', 'content_block_delta', 'content_block_delta'],
      ...['content_block_stop', 'message_delta', 'message_stop'],
    ],
  )
  const message = events[0]?.data.message
  t.match(message, {
    id: /^msg_[0-9a-f]{24}$/,
    type: 'message',
    role: 'assistant',
    model: 'sim',
    content: { length: 0 },
  })
  t.match(message, { stop_reason: null, stop_sequence: null })
  t.same(Object.keys(message?.usage ?? {}).sort(), [
    ...['cache_creation', 'cache_creation_input_tokens', 'cache_read_input_tokens', 'input_tokens'],
    ...['output_tokens', 'service_tier'],
  ])
  t.equal(message?.usage?.output_tokens, 1, 'a placeholder')
  t.same(events[1]?.data, {
    type: 'content_block_start',
    index: 0,
    content_block: { type: 'text', text: '' },
  })
  t.match(events[3]?.data, { index: 0, delta: { type: 'text_delta', text: String } })
  t.same(events[6]?.data.delta, { stop_reason: 'end_turn', stop_sequence: null })
  t.equal(events[6]?.data.usage?.output_tokens, 2)
})

t.test('whole and streamed say the same', async (t) => {
  const options = { fields: { tools: TOOLS, ...THINKING } }
  for (const directives of ['@tokens=5', '@tool_calls=3', '@reasoning=3,reasoning_sealed', '@tokens=0']) {
    const whole = jsonOf(await askMessages(url, directives, options))
    const streamed = assembled(
      eventsOf((await askMessages(url, directives, { ...options, stream: true })).body),
    )
    t.match(whole, { ...streamed, usage: Object }, directives)
    t.equal(streamed.content.length, whole.content?.length)
  }
})

t.test('a tool without arguments sends an empty piece, others their JSON in pieces', async (t) => {
  const { body } = await askMessages(url, '@tool_calls=2', { stream: true, fields: { tools: TOOLS } })
  const pieces = (index: number) =>
    eventsOf(body)
      .filter(({ event, data }) => event === 'content_block_delta' && Number(data.index) === index)
      .map(({ data }) => data.delta?.partial_json)
  t.same(pieces(0), [''])
  t.equal(pieces(1)[0], '')
  t.match(JSON.parse(pieces(1).join('')), { city: String })
  t.match(jsonOf(await askMessages(url, '@tool_calls=2', { fields: { tools: TOOLS } })), {
    stop_reason: 'tool_use',
    content: [
      { type: 'tool_use', id: /^toolu_/, name: 'now', input: {} },
      { type: 'tool_use', id: /^toolu_/, name: 'weather', input: { city: String } },
    ],
  })
})

t.test('thinking leads, is signed, and may be omitted or sealed', async (t) => {
  const think = async (directives: string, thinking: object) =>
    jsonOf(await askMessages(url, directives, { fields: { thinking } }))
  const on = THINKING.thinking
  t.match(await think('@reasoning=3', on), {
    content: [{ type: 'thinking', thinking: /\S/, signature: /^[\w+/]{80,}/ }, { type: 'text' }],
    usage: { output_tokens: 67, output_tokens_details: { thinking_tokens: 3 } },
  })
  t.match(await think('', { type: 'adaptive', display: 'omitted' }), {
    content: [{ type: 'thinking', thinking: '' }, { type: 'text' }],
    usage: { output_tokens: 64 + 16 },
  })
  t.match(await think('@reasoning=3,reasoning_text=false,reasoning_sealed', { type: 'disabled' }), {
    content: [{ type: 'redacted_thinking', data: String }, { type: 'text' }],
  })
  t.match(await think('', { type: 'disabled' }), { content: [{ type: 'text' }] })
})

t.test('usage counts the cache apart from input, and is reported where the directive wants it', async (t) => {
  const cached = 'prompt_tokens=100,cached=60,cache_write=30,tokens=2'
  const full = { input_tokens: 10, cache_read_input_tokens: 60, cache_creation_input_tokens: 30 }
  t.match(jsonOf(await askMessages(url, `@${cached}`)).usage, { ...full, output_tokens: 2 })
  const told = async (mode: string) => {
    const events = eventsOf((await askMessages(url, `@${cached},usage=${mode}`, { stream: true })).body)
    const start = events[0]?.data.message?.usage
    return [start, ...events.filter(({ event }) => event === 'message_delta').map(({ data }) => data.usage)]
  }
  t.match(await told('asked'), [
    { ...full, output_tokens: 1 },
    { ...full, output_tokens: 2 },
  ])
  t.same(await told('none'), [undefined, undefined])
  const zero = { input_tokens: 0, cache_read_input_tokens: 0, output_tokens: 0 }
  t.match(await told('zero'), [zero, zero])
  t.match(await told('with_finish'), [zero, { ...full, output_tokens: 2 }])
  t.match(await told('early'), [{ ...full, output_tokens: 1 }, { output_tokens: 2 }, { output_tokens: 2 }])
  t.same((await told('early')).slice(1), [{ output_tokens: 2 }, { output_tokens: 2 }])
  t.notOk('usage' in jsonOf(await askMessages(url, '@usage=none')))
})

t.test('an answer ends for the reason that holds', async (t) => {
  const end = async (directives: string, fields: object = {}) =>
    jsonOf(await askMessages(url, directives, { fields }))
  t.match(await end('@tokens=9', { max_tokens: 4 }), {
    stop_reason: 'max_tokens',
    usage: { output_tokens: 4 },
  })
  t.match(await end('@text=to the END', { stop_sequences: ['END'] }), { stop_sequence: 'END' })
})

t.test('tokens are counted without an answer', async (t) => {
  const messages = [{ role: 'user', content: 'How is the river?' }]
  const count = (body: object) =>
    post(
      url,
      '/v1/messages/count_tokens',
      JSON.stringify({ model: 'sim', messages, ...body }),
      MESSAGES_HEADERS,
    )
  const bytes = Buffer.byteLength(JSON.stringify(messages)) + Buffer.byteLength('"Be brief."')
  t.same(jsonOf(await count({ system: 'Be brief.' })), { input_tokens: Math.ceil(bytes / 4) })
  t.same(jsonOf(await count({ model: 'sim@prompt_tokens=9' })), { input_tokens: 9 })
  t.match(jsonOf(await count({ max_tokens: 5 })), { error: { message: /^max_tokens: Extra inputs/ } })
})

t.test('errors have the public shape, with the id of the request', async (t) => {
  const types = { 400: 'invalid_request_error', 403: 'permission_error', 429: 'rate_limit_error' }
  const more = { 500: 'api_error', 502: 'api_error', 504: 'timeout_error', 529: 'overloaded_error' }
  for (const [status, type] of Object.entries({ ...types, ...more })) {
    const answer = await askMessages(url, `@fault=status:${status}`)
    t.equal(answer.status, Number(status))
    t.match(jsonOf(answer), { type: 'error', error: { type, message: String }, request_id: /^req_/ })
  }
  const [failed] = eventsOf((await askMessages(url, '@fault=stream_error', { stream: true })).body)
  t.match(failed, { event: 'error', data: { type: 'error', error: { type: 'api_error' } } })
})

/** The message that the events of a stream add up to. */
function assembled(events: readonly StreamEvent[]) {
  const content: Record<string, unknown>[] = []
  let json = ''
  let ending: Json | undefined
  for (const { event, data } of events) {
    if (event === 'message_delta') {
      ending = data.delta
      continue
    }
    if (event === 'content_block_start') content.push({ ...data.content_block })
    const block = content.at(-1) ?? {}
    for (const [field, piece] of Object.entries(data.delta ?? {})) {
      if (field === 'partial_json') json += piece
      else if (field !== 'type') block[field] = `${block[field] ?? ''}${piece}`
    }
    if (event !== 'content_block_stop' || block.type !== 'tool_use') continue
    block.input = JSON.parse(json || '{}')
    json = ''
  }
  const { usage: _, ...begun } = { ...events[0]?.data.message }
  return { ...begun, ...ending, content }
}
