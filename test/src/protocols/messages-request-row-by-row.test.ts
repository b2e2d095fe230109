/** Translation, "Request, to `messages`": each row of the table has its test. */
import t, { type Test } from 'tap'
import { Failure } from '../../../schemas/failure.ts'
import type { ChatCall, WireOptions } from '../../../src/protocols/dialect.ts'
import { chatCall, TO_MESSAGES } from './messages-streams.ts'

const CEILING = 8192
const OPTIONS: WireOptions = {
  upstreamModel: 'opus-9',
  outputCeiling: CEILING,
  outputLimitField: 'max_tokens',
  askUsage: true,
  fetched: new Map(),
}
const HI = { role: 'user', content: 'Hi' }
const PNG = 'iVBORw0KGgo='

function sent(body: object, call: Partial<ChatCall> = {}, options: Partial<WireOptions> = {}) {
  const wire = TO_MESSAGES.wire(chatCall({ messages: [HI], ...body }, { stream: false, ...call }), {
    ...OPTIONS,
    ...options,
  })
  return { ...JSON.parse(wire.body.toString()), dropped: wire.dropped }
}

function refused(t: Test, body: object, message: RegExp): void {
  const found = t.throws(() => sent(body)) as unknown as Failure
  t.ok(found instanceof Failure)
  t.equal(found.code, 'invalid_request')
  t.match(found.message, message)
}

const text = (text: string) => ({ type: 'text', text })
const user = (...content: object[]) => ({ role: 'user', content })
const assistant = (...content: object[]) => ({ role: 'assistant', content })
const call = (id: string, name: string, args: string) => ({
  id,
  type: 'function',
  function: { name, arguments: args },
})
const use = (id: string, name: string, input: object = {}) => ({ type: 'tool_use', id, name, input })
const result = (id: string, content: unknown) => ({ type: 'tool_result', tool_use_id: id, content })
const tool = (id: string, content: unknown) => ({ role: 'tool', tool_call_id: id, content })
const lookUp = { type: 'function', function: { name: 'look_up' } }
const lookedUp = { name: 'look_up', input_schema: { type: 'object', properties: {} } }

t.test('the model is the upstream’s, the stream the client’s, and no other field appears', async (t) => {
  const expected = { model: 'opus-9', max_tokens: CEILING, messages: [user(text('Hi'))], dropped: [] }
  t.strictSame(sent({ metadata: { a: 1 }, unknown_field: true }), expected)
  t.strictSame(sent({}, { stream: true }), { ...expected, stream: true })
})

t.test('every system and developer message, in order; a cache_control on a part stays', async (t) => {
  const cache_control = { type: 'ephemeral' }
  const { system, messages } = sent({
    messages: [
      { role: 'system', content: 'one' },
      HI,
      { role: 'developer', content: [text('two'), { ...text('three'), cache_control }] },
      { role: 'system', content: ' ' },
      { role: 'user', content: [{ ...text('cached'), cache_control }] },
      { role: 'system', content: 'four', cache_control },
    ],
  })
  t.strictSame(system, [
    text('one'),
    text('two'),
    { ...text('three'), cache_control },
    { ...text('four'), cache_control },
  ])
  t.strictSame(messages, [user(text('Hi'), { ...text('cached'), cache_control })])
})

t.test('empty text blocks removed; neighbours of one role merged', async (t) => {
  const { messages } = sent({
    messages: [
      { role: 'user', content: '' },
      { role: 'user', content: [text('a'), text(''), text('\n')] },
      { role: 'assistant', content: '' },
      { role: 'user', content: 'b' },
      { role: 'assistant', content: 'c' },
      { role: 'assistant', content: [text('d'), { type: 'refusal', refusal: 'no' }] },
      HI,
    ],
  })
  t.strictSame(messages, [
    user(text('a'), text('b')),
    assistant(text('c'), text('d'), text('no')),
    user(text('Hi')),
  ])
})

t.test('the first message is a user’s', async (t) => {
  t.strictSame(sent({ messages: [{ role: 'assistant', content: 'Welcome.' }, HI] }).messages, [
    user(text('.')),
    assistant(text('Welcome.')),
    user(text('Hi')),
  ])
  t.strictSame(sent({ messages: [{ role: 'system', content: 'alone' }] }).messages, [user(text('.'))])
})

t.test('an answer to be gone on with ends without white space', async (t) => {
  const { messages } = sent({ messages: [HI, { role: 'assistant', content: 'The answer is: ' }] })
  t.strictSame(messages[1], assistant(text('The answer is:')))
})

t.test('image_url with a data URI: jpeg, png, gif, webp as base64; PDF becomes a document', async (t) => {
  const image = (url: string) => ({ type: 'image_url', image_url: { url, detail: 'high' } })
  const block = (type: string, media_type: string) => ({
    type,
    source: { type: 'base64', media_type, data: PNG },
  })
  for (const type of ['image/jpeg', 'image/png', 'image/gif', 'image/webp'])
    t.strictSame(
      sent({ messages: [{ role: 'user', content: [image(`data:${type};base64,${PNG}`)] }] }).messages,
      [user(block('image', type))],
    )
  const others = [
    image(`data:IMAGE/JPG;charset=utf-8;base64,${PNG}`),
    { type: 'image_url', image_url: `data:image/png;base64,${PNG}`, cache_control: { type: 'ephemeral' } },
    image(`data:application/pdf;base64,${PNG}`),
    { type: 'file', file: { filename: 'a.pdf', file_data: `data:application/pdf;base64,${PNG}` } },
  ]
  t.strictSame(sent({ messages: [{ role: 'user', content: others }] }).messages, [
    user(
      block('image', 'image/jpeg'),
      { ...block('image', 'image/png'), cache_control: { type: 'ephemeral' } },
      block('document', 'application/pdf'),
      { ...block('document', 'application/pdf'), title: 'a.pdf' },
    ),
  ])
  for (const url of [
    'data:image/tiff;base64,AA',
    'data:image/png,AA',
    'data:;base64,AA',
    'ftp://example.org/a',
  ])
    refused(
      t,
      { messages: [{ role: 'user', content: [image(url)] }] },
      /^Field 'messages\[0\]\.content\[0\]\.image_url\.url'/,
    )
})

t.test('image_url with http(s): source url', async (t) => {
  const url = 'https://example.org/a.png'
  const call = chatCall({
    messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url } }] }],
  })
  t.same(TO_MESSAGES.urlsToFetch(call), [])
  t.strictSame(JSON.parse(TO_MESSAGES.wire(call, OPTIONS).body.toString()).messages, [
    user({ type: 'image', source: { type: 'url', url } }),
  ])
})

t.test('assistant with tool_calls: text first, then tool_use with parsed input; "" is {}', async (t) => {
  const asked = {
    role: 'assistant',
    content: 'Looking.',
    tool_calls: [
      call('a', 'look_up', '{"q":"ä","n":[1]}'),
      call('b', 'look_up', ''),
      call('c', 'look_up', 'null'),
    ],
  }
  const { messages } = sent({ messages: [HI, asked], tools: [lookUp] })
  t.strictSame(
    messages[1],
    assistant(
      text('Looking.'),
      use('a', 'look_up', { q: 'ä', n: [1] }),
      use('b', 'look_up'),
      use('c', 'look_up'),
    ),
  )
  for (const args of ['{"q":', '[1]', '"text"', '5']) {
    const bad = { role: 'assistant', content: null, tool_calls: [call('a', 'look_up', args)] }
    refused(t, { messages: [HI, bad] }, /^Field 'messages\[1\]\.tool_calls\[0\]\.function\.arguments'/)
  }
})

t.test('signed thinking blocks lead the turn', async (t) => {
  const thought = { type: 'thinking', thinking: 'Hm.', signature: 'c2ln' }
  const sealed = { type: 'redacted_thinking', data: 'c2VhbGVk' }
  const { messages } = sent({
    messages: [
      HI,
      {
        role: 'assistant',
        content: 'Looking.',
        reasoning_content: 'Hm.',
        tool_calls: [call('a', 'look_up', '{}')],
        thinking_blocks: [thought, { type: 'thinking', thinking: 'never signed' }, sealed],
      },
      tool('a', 'found'),
      { role: 'assistant', content: [text('Found it.'), thought] },
    ],
  })
  t.strictSame(messages[1], assistant(thought, sealed, text('Looking.'), use('a', 'look_up')))
  t.strictSame(messages[3], assistant(thought, text('Found it.')))
})

t.test('a run of tool messages: one user message, its tool_result blocks before anything else', async (t) => {
  const asked = {
    role: 'assistant',
    tool_calls: [call('a', 'f', ''), call('b', 'f', ''), call('c', 'f', '')],
  }
  const { messages } = sent({
    messages: [
      HI,
      asked,
      tool('a', 'A'),
      { role: 'user', content: 'so?' },
      tool('b', [text('B')]),
      tool('c', ''),
    ],
  })
  t.strictSame(messages.slice(2), [
    user(result('a', 'A'), result('b', [text('B')]), { type: 'tool_result', tool_use_id: 'c' }, text('so?')),
  ])
})

t.test('an id that the upstream would refuse is renamed at both ends of a call', async (t) => {
  const asked = { role: 'assistant', tool_calls: [call('functions.f:0', 'f', '')] }
  const { messages } = sent({ messages: [HI, asked, tool('functions.f:0', 'A')] })
  t.match(messages[1].content[0].id, /^[a-zA-Z0-9_-]+$/)
  t.equal(messages[2].content[0].tool_use_id, messages[1].content[0].id)
})

t.test('tools[].function: the schema untouched; none given is an empty object', async (t) => {
  const parameters = {
    type: 'object',
    $defs: { city: { type: 'string', enum: ['Köln'] } },
    properties: { z: { $ref: '#/$defs/city' }, a: { type: ['null', 'integer'] } },
    required: ['z'],
    additionalProperties: false,
  }
  const { tools, dropped } = sent({
    tools: [
      {
        type: 'function',
        function: { name: 'f', description: 'd', parameters },
        cache_control: { type: 'ephemeral' },
      },
      lookUp,
      { type: 'function', function: { name: 'g', parameters: { properties: {} } } },
    ],
  })
  t.strictSame(tools, [
    { name: 'f', description: 'd', input_schema: parameters, cache_control: { type: 'ephemeral' } },
    lookedUp,
    { name: 'g', input_schema: { type: 'object', properties: {} } },
  ])
  t.equal(JSON.stringify(tools[0].input_schema), JSON.stringify(parameters), 'in the same order')
  t.same(dropped, [])
})

t.test('the built-in web_search is the upstream’s own tool', async (t) => {
  const near = { type: 'approximate', approximate: { city: 'Köln', country: 'DE' } }
  t.strictSame(sent({ tools: [{ type: 'web_search' }, { type: 'web_search', user_location: near }] }).tools, [
    { type: 'web_search_20250305', name: 'web_search' },
    {
      type: 'web_search_20250305',
      name: 'web_search',
      user_location: { type: 'approximate', city: 'Köln', country: 'DE' },
    },
  ])
})

t.test('tool_choice auto / required / none / a function', async (t) => {
  const choose = (tool_choice: unknown, more: object = {}) =>
    sent({ tools: [lookUp], tool_choice, ...more }).tool_choice
  t.strictSame(choose('auto'), { type: 'auto' })
  t.strictSame(choose('required'), { type: 'any' })
  t.strictSame(choose('none'), { type: 'none' })
  t.strictSame(choose(lookUp), { type: 'tool', name: 'look_up' })
  t.equal(choose(undefined), undefined)
  t.equal(choose(null), undefined)
  t.equal(choose('auto', { tools: undefined }), undefined, 'without tools there is no choice')
  refused(t, { tools: [lookUp], tool_choice: 'sometimes' }, /^Field 'tool_choice'/)
})

t.test('tool_choice allowed_tools: those tools alone', async (t) => {
  const other = { type: 'function', function: { name: 'other' } }
  const allowed_tools = { mode: 'required', tools: [lookUp] }
  const { tools, tool_choice } = sent({
    tools: [other, lookUp],
    tool_choice: { type: 'allowed_tools', allowed_tools },
  })
  t.strictSame(tools, [lookedUp])
  t.strictSame(tool_choice, { type: 'any' })
})

t.test('parallel_tool_calls false: inside tool_choice, auto if absent, never with none', async (t) => {
  const choose = (tool_choice?: unknown) =>
    sent({ tools: [lookUp], tool_choice, parallel_tool_calls: false }).tool_choice
  t.strictSame(choose(), { type: 'auto', disable_parallel_tool_use: true })
  t.strictSame(choose('required'), { type: 'any', disable_parallel_tool_use: true })
  t.strictSame(choose(lookUp), { type: 'tool', name: 'look_up', disable_parallel_tool_use: true })
  t.strictSame(choose('none'), { type: 'none' })
  t.equal(sent({ tools: [lookUp], parallel_tool_calls: true }).tool_choice, undefined)
  t.equal(sent({ parallel_tool_calls: false }).tool_choice, undefined)
})

t.test('max_tokens: the client’s, else the model’s ceiling', async (t) => {
  t.equal(sent({}, { outputLimit: 77 }).max_tokens, 77)
  t.equal(sent({}, { outputLimit: CEILING + 1 }).max_tokens, CEILING + 1)
  t.equal(sent({}).max_tokens, CEILING)
  t.equal(sent({}, {}, { outputCeiling: null }).max_tokens, 32768, 'required also where no ceiling is known')
})

t.test('stop: stop_sequences, blank-only ones removed', async (t) => {
  t.strictSame(sent({ stop: 'END' }).stop_sequences, ['END'])
  t.match(sent({ stop: ['a', ' ', '\n', ''] }), {
    stop_sequences: ['a'],
    dropped: ['stop (blank sequences)'],
  })
  t.equal(sent({ stop: '\n' }).stop_sequences, undefined)
  t.match(sent({ stop: null }), { stop_sequences: undefined, dropped: [] })
})

t.test('temperature above 1: 1, with a warning; left out when thinking is on', async (t) => {
  t.match(sent({ temperature: 1.4 }), { temperature: 1, dropped: [/^temperature \(/] })
  t.match(sent({ temperature: 0, top_p: 0.5 }), { temperature: 0, top_p: 0.5, dropped: [] })
  t.match(sent({ temperature: 1, top_p: 1 }), { temperature: 1, top_p: undefined, dropped: [] })
  t.match(sent({ temperature: 0.3, top_p: 0.5, reasoning_effort: 'low' }), {
    temperature: undefined,
    top_p: undefined,
    thinking: { type: 'enabled' },
    dropped: [/^temperature \(/, /^top_p \(/],
  })
  t.match(sent({ top_p: 0.96, reasoning_effort: 'low' }), { top_p: 0.96, dropped: [] })
})

t.test('user: metadata.user_id', async (t) => {
  t.strictSame(sent({ user: 'u-1' }).metadata, { user_id: 'u-1' })
  t.strictSame(sent({ safety_identifier: 'u-2' }).metadata, { user_id: 'u-2' })
  t.match(sent({ user: 'x'.repeat(257) }), { metadata: undefined, dropped: [/^user \(/] })
})

t.test('reasoning_effort: a budget of 1024 / 2048 / 4096, at least 1024 and below max_tokens', async (t) => {
  const think = (reasoning_effort: string, outputLimit = 5000, more: object = {}) =>
    sent({ reasoning_effort, ...more }, { outputLimit })
  const budget = (effort: string, limit?: number) => think(effort, limit).thinking?.budget_tokens
  t.same(
    ['minimal', 'low', 'medium', 'high', 'xhigh'].map((effort) => budget(effort)),
    [1024, 1024, 2048, 4096, 4096],
  )
  t.equal(budget('high', 4096), 4095)
  t.equal(budget('high', 1025), 1024)
  t.match(think('high', 1024), { thinking: undefined, max_tokens: 1024, dropped: [/^reasoning_effort \(/] })
  t.match(think('none'), { thinking: undefined, dropped: [] })
  t.match(think('enormous'), { thinking: undefined, dropped: ['reasoning_effort'] })
  const forced = { tools: [lookUp], tool_choice: 'required' }
  t.match(
    think('low', 5000, forced),
    { thinking: undefined, dropped: [/^reasoning_effort \(/] },
    'a forced tool',
  )
})

t.test('a turn that began without signed thinking goes on without it', async (t) => {
  const turn = (more: object) => [
    HI,
    { role: 'assistant', tool_calls: [call('a', 'f', '')], ...more },
    tool('a', 'A'),
  ]
  const think = (messages: object[]) => sent({ messages, reasoning_effort: 'low' })
  t.match(think(turn({})), { thinking: undefined, dropped: [/^reasoning_effort \(/] })
  const signed = { thinking_blocks: [{ type: 'thinking', thinking: 'Hm.', signature: 'c2ln' }] }
  t.match(think(turn(signed)), { thinking: { type: 'enabled' }, dropped: [] })
  const later = [{ role: 'assistant', tool_calls: [call('b', 'f', '')] }, tool('b', 'B')]
  t.match(think([...turn(signed), ...later]), { thinking: { type: 'enabled' } }, 'still the same turn')
  t.match(think([...turn({}), HI]), { thinking: { type: 'enabled' } }, 'the user spoke: a new turn')
  t.match(
    think([HI, { role: 'assistant', content: 'It is' }]),
    { thinking: undefined },
    'an answer already begun',
  )
})

t.test('history holds tool_use but tools is absent: tools declared from the names used', async (t) => {
  const asked = (id: string, name: string) => [
    { role: 'assistant', tool_calls: [call(id, name, '')] },
    tool(id, 'done'),
  ]
  const messages = [HI, ...asked('a', 'look_up'), ...asked('b', 'g'), ...asked('c', 'look_up')]
  for (const tools of [undefined, null, []]) {
    const wire = sent({ messages, tools })
    t.strictSame(wire.tools, [lookedUp, { ...lookedUp, name: 'g' }])
    t.strictSame(wire.tool_choice, { type: 'none' }, 'the client offered none of them')
  }
  t.strictSame(sent({ messages, tools: [lookUp] }).tools, [lookedUp])
})

t.test(
  'drop: response_format, n, seed, logprobs, top_logprobs, logit_bias, penalties, image_generation',
  async (t) => {
    const fields = {
      response_format: { type: 'json_object' },
      n: 2,
      seed: 7,
      logprobs: true,
      top_logprobs: 3,
      logit_bias: { 50256: -100 },
      frequency_penalty: 0.5,
      presence_penalty: 0.5,
    }
    const { dropped, ...wire } = sent({ ...fields, tools: [{ type: 'image_generation' }, lookUp] })
    t.same(dropped, [...Object.keys(fields), 'image_generation'])
    t.strictSame(wire.tools, [lookedUp])
    for (const field of Object.keys(fields)) t.notOk(field in wire, field)
    t.equal(sent({ tools: [{ type: 'image_generation' }] }).tools, undefined)
    t.same(sent({ n: null, seed: null }).dropped, [])
  },
)

t.test('no word of the client’s stands in a warning', async (t) => {
  const { dropped } = sent({
    tools: [{ type: 'x\r\ny: z' }],
    tool_choice: null,
    'evil\r\nfield': 1,
    stop: [' '],
  })
  t.same(dropped, ['tools[0]', 'stop (blank sequences)'])
})

t.test('what cannot be translated is refused with the field’s name', async (t) => {
  refused(t, { messages: [{ role: 'function', name: 'f', content: 'x' }] }, /^Field 'messages\[0\]\.role'/)
  const audio = { type: 'input_audio', input_audio: { data: '', format: 'wav' } }
  refused(
    t,
    { messages: [HI, { role: 'user', content: [audio] }] },
    /^Field 'messages\[1\]\.content\[0\]\.type'/,
  )
  refused(
    t,
    { messages: [{ role: 'user', content: [{ type: 'text' }] }] },
    /^Field 'messages\[0\]\.content\[0\]\.text'/,
  )
  refused(t, { messages: [{ role: 'tool', content: 'x' }] }, /^Field 'messages\[0\]\.tool_call_id'/)
  refused(t, { tools: [{ type: 'function' }] }, /^Field 'tools\[0\]\.function'/)
  refused(t, { stop: 7 }, /^Field 'stop'/)
})

t.test('a schema nested beyond what can be printed is refused, not a fault', async (t) => {
  const depth = 100_000
  const deep = `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`
  const body = `{"messages":[{"role":"user","content":"Hi"}],"tools":[{"type":"function","function":{"name":"f","parameters":${deep}}}]}`
  const source = { body: Buffer.from(body), request: {} }
  t.throws(() => TO_MESSAGES.wire(chatCall({}, { source }), OPTIONS), { code: 'invalid_request' })
})
