/** Each row has its test, streamed and whole. See docs/translation.md, "The answer". */
import t from 'tap'
import { begin, chunks, delta, deltas, ended, event, START, STOP, stop, whole } from './answers.ts'
import { CREATED_SECONDS, chatCall, MODEL, TO_MESSAGES, translatedStream } from './streams.ts'

t.test('the body is a chat.completion under the name that the client called', async (t) => {
  const { value, isAnswer, metered } = whole({ content: [{ type: 'text', text: 'Hi.' }] })
  t.strictSame(value, {
    id: 'msg_1',
    object: 'chat.completion',
    created: CREATED_SECONDS,
    model: MODEL,
    choices: [
      {
        index: 0,
        message: { role: 'assistant', content: 'Hi.', refusal: null },
        logprobs: null,
        finish_reason: 'stop',
      },
    ],
    usage: {
      prompt_tokens: 10,
      completion_tokens: 4,
      total_tokens: 14,
      prompt_tokens_details: { cached_tokens: 0 },
      completion_tokens_details: { reasoning_tokens: 0 },
    },
  })
  t.match({ isAnswer, metered }, { isAnswer: true, metered: { characters: 3, charactersSinceUsage: 0 } })
})

t.test('text blocks: concatenated into content; null when there are only tools', async (t) => {
  const texts = ['a', 'b'].map((text) => ({ type: 'text', text }))
  const tool = { type: 'tool_use', id: 't', name: 'f', input: {} }
  t.equal(whole({ content: texts }).value.choices[0].message.content, 'ab')
  t.equal(whole({ content: [tool] }).value.choices[0].message.content, null)
  t.equal(whole({ content: [...texts, tool] }).value.choices[0].message.content, 'ab')
  t.equal(whole({ content: [] }).value.choices[0].message.content, '')
})

t.test('tool_use: tool_calls[], arguments as a JSON string', async (t) => {
  const content = [
    { type: 'server_tool_use', id: 's', name: 'web_search', input: { query: 'not the client’s' } },
    { type: 'tool_use', id: 't1', name: 'f', input: { city: 'Köln' } },
    { type: 'tool_use', id: 't2', name: 'g', input: {} },
  ]
  t.strictSame(whole({ content, stop_reason: 'tool_use' }).value.choices[0].message.tool_calls, [
    { id: 't1', type: 'function', function: { name: 'f', arguments: '{"city":"Köln"}' } },
    { id: 't2', type: 'function', function: { name: 'g', arguments: '{}' } },
  ])
})

t.test('thinking: reasoning_content; its signature kept so that the next turn can carry it', async (t) => {
  const thinking = { type: 'thinking', thinking: 'Hm.', signature: 'c2ln' }
  const sealed = { type: 'redacted_thinking', data: 'c2VhbGVk' }
  const unsigned = { type: 'thinking', thinking: ' So.' }
  const { message } = whole({ content: [thinking, sealed, unsigned, { type: 'text', text: 'Yes.' }] }).value
    .choices[0]
  t.match(message, { content: 'Yes.', reasoning_content: 'Hm. So.' })
  t.strictSame(message.thinking_blocks, [thinking, sealed])
  t.notOk('thinking_blocks' in whole({ content: [unsigned] }).value.choices[0].message)
})

const REASONS = {
  end_turn: 'stop',
  stop_sequence: 'stop',
  pause_turn: 'stop',
  compaction: 'stop',
  'a reason nobody knows': 'stop',
  constructor: 'stop',
  max_tokens: 'length',
  model_context_window_exceeded: 'length',
  tool_use: 'tool_calls',
  refusal: 'content_filter',
}
for (const [reason, expected] of Object.entries(REASONS))
  t.test(`${reason}: ${expected}`, async (t) => {
    t.equal(whole({ content: [], stop_reason: reason }).value.choices[0].finish_reason, expected)
    const finishes = chunks(START, ended(reason), STOP).flatMap(
      (chunk) => chunk.choices?.[0]?.finish_reason ?? [],
    )
    t.same(finishes, [expected])
  })

t.test('usage: prompt_tokens are input, cache read and creation; cached_tokens are cache read', async (t) => {
  const usage = {
    input_tokens: 1,
    cache_read_input_tokens: 20,
    cache_creation_input_tokens: 300,
    output_tokens: 4000,
  }
  const expected = {
    prompt_tokens: 321,
    completion_tokens: 4000,
    total_tokens: 4321,
    prompt_tokens_details: { cached_tokens: 20, cache_write_tokens: 300 },
    completion_tokens_details: { reasoning_tokens: 0 },
  }
  t.strictSame(whole({ content: [], usage }).value.usage, expected)
  t.strictSame(chunks(START, ended('end_turn', usage), STOP).at(-2).usage, expected)
})

t.test('usage that was not reported is not printed as 0', async (t) => {
  const { value, metered } = whole({ content: [{ type: 'text', text: 'Hi.' }], usage: {} })
  t.notOk('usage' in value)
  t.match(metered, { usage: null, characters: 3, charactersSinceUsage: 3 })
  const printed = chunks(START, { type: 'message_delta', delta: {} }, STOP)
  t.same(
    printed.filter((chunk) => chunk.usage),
    [],
  )
})

t.test('message_start gives the role chunk', async (t) => {
  const [first, ...more] = chunks(START)
  t.match(first, {
    id: 'msg_1',
    object: 'chat.completion.chunk',
    created: CREATED_SECONDS,
    model: MODEL,
    choices: [{ index: 0, delta: { role: 'assistant' }, finish_reason: null }],
    usage: null,
  })
  t.same(more, [])
})

t.test('a tool’s index counts tools, not blocks; one without arguments gives "{}" at its stop', async (t) => {
  const found = deltas(
    chunks(
      START,
      begin(0, { type: 'text', text: '' }),
      delta(0, { type: 'text_delta', text: 'Looking.' }),
      stop(0),
      begin(1, { type: 'tool_use', id: 't1', name: 'f', input: {} }),
      begin(2, { type: 'tool_use', id: 't2', name: 'g', input: {} }),
      delta(2, { type: 'input_json_delta', partial_json: '{"b"' }),
      delta(1, { type: 'input_json_delta', partial_json: '' }),
      stop(1),
      delta(2, { type: 'input_json_delta', partial_json: ':1}' }),
      stop(2),
    ),
  )
  const named = (index: number, id: string, name: string) => ({
    tool_calls: [{ index, id, type: 'function', function: { name, arguments: '' } }],
  })
  const piece = (index: number, json: string) => ({ tool_calls: [{ index, function: { arguments: json } }] })
  t.strictSame(found.slice(1), [
    { content: 'Looking.' },
    named(0, 't1', 'f'),
    named(1, 't2', 'g'),
    piece(1, '{"b"'),
    piece(0, '{}'),
    piece(1, ':1}'),
  ])
})

t.test('arguments that come in one piece with the block are kept', async (t) => {
  const block = { type: 'tool_use', id: 't', name: 'f', input: { a: [1] } }
  const last = deltas(chunks(START, begin(0, block), stop(0))).at(-1)
  t.strictSame(last, { tool_calls: [{ index: 0, function: { arguments: '{"a":[1]}' } }] })
})

t.test('text_delta and thinking_delta give content and reasoning_content', async (t) => {
  const found = deltas(
    chunks(
      START,
      delta(0, { type: 'thinking_delta', thinking: 'Hm.' }),
      delta(1, { type: 'text_delta', text: 'Yes "so"\n\u2028' }),
      delta(1, { type: 'text_delta', text: '' }),
      delta(1, { type: 'citations_delta', citation: { cited_text: 'no' } }),
    ),
  )
  t.strictSame(found.slice(1), [{ reasoning_content: 'Hm.' }, { content: 'Yes "so"\n\u2028' }])
})

t.test('message_stop gives the finish chunk, the usage chunk if asked, and [DONE]', async (t) => {
  const before = chunks(START, ended('end_turn'))
  t.equal(before.length, 1, 'nothing finishes before it is certain')
  const [finish, usage, done, ...more] = chunks(START, ended('end_turn'), STOP).slice(1)
  t.match(finish, { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }], usage: null })
  t.match(usage, { choices: { length: 0 }, usage: { total_tokens: 14 } })
  t.equal(usage.choices.length, 0)
  t.equal(done, '[DONE]')
  t.same(more, [])
})

t.test('a client that did not ask for usage sees no usage at all', async (t) => {
  for (const stream_options of [undefined, null, {}, { include_usage: false }]) {
    const source = { body: Buffer.from('{}'), request: { stream_options } }
    const stream = TO_MESSAGES.openStream(chatCall({}, { source }))
    const out = Buffer.concat(
      [START, ended('end_turn'), STOP].map((data) => stream.push(event(data)) ?? Buffer.alloc(0)),
    )
    t.notMatch(out.toString(), /usage/)
    t.ok(out.toString().endsWith('data: [DONE]\n\n'))
    t.equal(stream.usage?.output, 4, 'it is counted all the same')
  }
})

t.test('ping and unknown events are skipped', async (t) => {
  const found = chunks(
    { type: 'ping' },
    START,
    { type: 'ping' },
    { type: 'unheard_of', text: 'x' },
    delta(0, { type: 'x' }),
  )
  t.equal(found.length, 1)
})

t.test('an error event or an early end: nothing more is sent, no [DONE]', async (t) => {
  const error = { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } }
  const text = delta(0, { type: 'text_delta', text: 'Half' })
  const complete = [ended('end_turn'), STOP]
  for (const broken of [
    chunks(START, text),
    chunks(START, text, error, ...complete),
    chunks(START, text, ended('end_turn')),
  ]) {
    t.equal(broken.length, 2)
    t.same(
      broken.map((chunk) => chunk.choices[0].finish_reason),
      [null, null],
    )
  }
  const stream = translatedStream()
  stream.push(event(START))
  t.equal(stream.push(Buffer.from('event: content_block_delta\ndata: {"type":\n\n')), null, 'what is no JSON')
  t.equal(stream.push(event(STOP)), null)
  t.equal(stream.isComplete, false)
})

t.test('what the upstream sends after the end counts for nothing', async (t) => {
  const late = delta(0, { type: 'text_delta', text: 'late' })
  t.equal(chunks(START, STOP, late, ended('max_tokens'), STOP).at(-1), '[DONE]')
  t.equal(chunks(START, STOP, late, STOP).filter((chunk) => chunk === '[DONE]').length, 1)
})

t.test('a whole body that is an error, or no message at all, is passed on as one', async (t) => {
  for (const body of [
    '{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}',
    '{"error":{"message":"no"}}',
    '{"choices":[]}',
    '<html>',
    '',
  ]) {
    const answer = TO_MESSAGES.readWhole(chatCall(), Buffer.from(body))
    t.match(answer, { isAnswer: false, metered: { usage: null, characters: 0 } }, body)
    t.equal(answer.body.toString(), body)
  }
})
