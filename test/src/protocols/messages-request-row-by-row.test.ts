/** Translation, "Request, to `messages`": each row about tools and parameters has its test. */
import t from 'tap'
import { CEILING, call, HI, lookedUp, lookUp, refused, sent, tool } from './messages-request.ts'

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
  t.match(sent({ stop: null }), { stop_sequences: undefined, dropped: { length: 0 } })
})

t.test('temperature above 1: 1, with a warning; left out when thinking is on', async (t) => {
  t.match(sent({ temperature: 1.4 }), { temperature: 1, dropped: [/^temperature \(/] })
  t.match(sent({ temperature: 0, top_p: 0.5 }), { temperature: 0, top_p: 0.5, dropped: { length: 0 } })
  t.match(sent({ temperature: 1, top_p: 1 }), { temperature: 1, top_p: undefined, dropped: { length: 0 } })
  t.match(sent({ temperature: 0.3, top_p: 0.5, reasoning_effort: 'low' }), {
    temperature: undefined,
    top_p: undefined,
    thinking: { type: 'enabled' },
    dropped: [/^temperature \(/, /^top_p \(/],
  })
  t.match(sent({ top_p: 0.96, reasoning_effort: 'low' }), { top_p: 0.96, dropped: { length: 0 } })
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
  t.match(think('none'), { thinking: undefined, dropped: { length: 0 } })
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
  t.match(think(turn(signed)), { thinking: { type: 'enabled' }, dropped: { length: 0 } })
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
