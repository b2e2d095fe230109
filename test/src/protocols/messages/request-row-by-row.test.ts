/** Each row about tools and parameters has its test. See docs/translation.md, "The request". */
import t from 'tap'
import { CEILING, call, HI, lookedUp, lookUp, refused, sent, tool } from './request.ts'

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
    dropped: ['stop (without its blank sequences)'],
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
  t.match(think('none'), { thinking: { type: 'disabled' }, dropped: { length: 0 } })
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

t.test('top_k: top_k; left out when thinking is on', async (t) => {
  t.match(sent({ top_k: 40 }), { top_k: 40, dropped: { length: 0 } })
  for (const top_k of [0, -1, null]) t.match(sent({ top_k }), { top_k: undefined, dropped: { length: 0 } })
  t.match(sent({ top_k: 40, reasoning_effort: 'low' }), { top_k: undefined, dropped: [/^top_k \(/] })
})

t.test('thinking, reasoning and enable_thinking say what reasoning_effort says', async (t) => {
  const think = (body: object) => {
    const { thinking, dropped } = sent(body, { outputLimit: 5000 })
    return [thinking, ...dropped]
  }
  const budget = (budget_tokens: number, more: object = {}) => ({ type: 'enabled', budget_tokens, ...more })
  const rows: readonly (readonly [body: object, ...expected: unknown[]])[] = [
    [{ thinking: budget(3000) }, budget(3000)],
    [
      { thinking: budget(100) },
      budget(1024),
      'thinking (its budget must be at least 1024 and below max_tokens)',
    ],
    [
      { thinking: budget(9000) },
      budget(4999),
      'thinking (its budget must be at least 1024 and below max_tokens)',
    ],
    [{ thinking: { type: 'enabled' } }, budget(2048)],
    [{ thinking: { type: 'adaptive' } }, { type: 'adaptive' }],
    [{ thinking: { type: 'disabled' } }, { type: 'disabled' }],
    [{ thinking: 'yes' }, undefined, 'thinking'],
    [{ reasoning: { effort: 'high' } }, budget(4096)],
    [{ reasoning: { max_tokens: 1500 } }, budget(1500)],
    [{ reasoning: { effort: 'low', exclude: true } }, budget(1024, { display: 'omitted' })],
    [{ reasoning: { enabled: true } }, budget(2048)],
    [{ reasoning: { enabled: false } }, { type: 'disabled' }],
    [{ reasoning_effort: 'low', include_reasoning: false }, budget(1024, { display: 'omitted' })],
    [{ enable_thinking: true, thinking_budget: 1700 }, budget(1700)],
    [{ thinking_budget: 1700 }, budget(1700)],
    [
      { thinking: budget(3000), reasoning_effort: 'low' },
      budget(3000),
      'reasoning_effort (thinking goes before it)',
    ],
  ]
  for (const [body, ...expected] of rows) t.strictSame(think(body), expected, JSON.stringify(body))
})

const asJson = (schema: object) => ({
  response_format: { type: 'json_schema', json_schema: { name: 'x', description: 'It is x.', schema } },
})
const SCHEMA = { type: 'object', properties: { a: { type: 'string' } }, required: ['a'] }

t.test('response_format json_schema: not by a schema that refers to itself, or elsewhere', async (t) => {
  const node = { type: 'object', properties: { next: { $ref: '#/$defs/node' } } }
  const around = { a: { $ref: '#/$defs/b' }, b: { type: 'array', items: { $ref: '#/$defs/a' } } }
  for (const schema of [
    { ...SCHEMA, $defs: { node }, properties: { first: { $ref: '#/$defs/node' } } },
    { ...SCHEMA, $defs: around },
    { ...SCHEMA, properties: { self: { $ref: '#' } } },
    { ...SCHEMA, properties: { far: { $ref: 'https://example.com/schema.json' } } },
  ])
    t.match(sent(asJson(schema)), {
      output_config: undefined,
      dropped: ['response_format (its schema refers to itself, or to another document)'],
    })
  const chain = { ...SCHEMA, $defs: { a: around.a, b: { type: 'string' } }, properties: { a: around.a } }
  t.match(sent(asJson(chain)), { output_config: { format: { type: 'json_schema' } }, dropped: { length: 0 } })
})

t.test('response_format json_schema: output_config, without what the vendor refuses in it', async (t) => {
  const { output_config, dropped } = sent(asJson(SCHEMA))
  t.strictSame(output_config, {
    format: { type: 'json_schema', schema: { ...SCHEMA, additionalProperties: false } },
  })
  t.same(dropped, [])
  const reduced = sent(
    asJson({
      type: 'object',
      properties: {
        minimum: { type: 'integer', minimum: 1, enum: [1, 2] },
        list: { type: 'array', minItems: 1, maxItems: 3, items: { $ref: '#/$defs/one' } },
        either: {
          oneOf: [
            { type: 'string', format: 'date' },
            { type: 'string', format: 'color' },
          ],
        },
      },
      $defs: { one: { type: 'object', additionalProperties: { type: 'string' } } },
    }),
  )
  t.strictSame(reduced.output_config.format.schema, {
    type: 'object',
    properties: {
      minimum: { type: 'integer', enum: [1, 2] },
      list: { type: 'array', minItems: 1, items: { $ref: '#/$defs/one' } },
      either: { anyOf: [{ type: 'string', format: 'date' }, { type: 'string' }] },
    },
    $defs: { one: { type: 'object', additionalProperties: false } },
    additionalProperties: false,
  })
  t.same(reduced.dropped, [
    'response_format (without limits of its schema that this model cannot be held to)',
  ])
  const deep = Array.from({ length: 200 }).reduce<object>((items) => ({ type: 'array', items }), {})
  refused(t, asJson(deep), /^Field 'response_format\.json_schema\.schema' .* nested too deeply/)
  for (const format of [{ type: 'json_schema' }, { type: 'json_object' }, { type: 'grammar' }])
    t.match(sent({ response_format: format }), { output_config: undefined, dropped: ['response_format'] })
})

t.test('response_format json_schema: a forced tool where the model takes no output_config', async (t) => {
  const old = { upstreamModel: 'claude-sonnet-4-20250514' }
  t.match(sent(asJson(SCHEMA), {}, old), {
    tools: [{ name: 'tollgate_json_answer', description: /It is x\.$/, input_schema: SCHEMA }],
    tool_choice: { type: 'tool', name: 'tollgate_json_answer' },
    output_config: undefined,
    dropped: { length: 0 },
  })
  for (const body of [{ tools: [lookUp] }, { reasoning_effort: 'low' }, asJson({ type: 'array' })]) {
    const { dropped, tool_choice } = sent({ ...asJson(SCHEMA), ...body }, {}, old)
    t.match(dropped, [/^response_format \(/])
    t.equal(tool_choice, undefined)
  }
  const names = [
    'claude-3-7-sonnet-latest',
    'claude-opus-4-1-20250805',
    'claude-2.1',
    'anthropic.claude-3-haiku-v1:0',
  ]
  for (const upstreamModel of names) t.ok(sent(asJson(SCHEMA), {}, { upstreamModel }).tools, upstreamModel)
  for (const upstreamModel of ['claude-sonnet-4-5-20250929', 'claude-opus-4.6', 'claude-opus-5', 'other'])
    t.ok(sent(asJson(SCHEMA), {}, { upstreamModel }).output_config, upstreamModel)
  const taken = { type: 'function', function: { name: 'tollgate_json_answer' } }
  refused(t, { tools: [taken] }, /^Field 'tools\[0\]\.function\.name'/)
})

t.test('metadata.user_id where it fits, and the first of several ids', async (t) => {
  t.match(sent({ metadata: { user_id: 'u-3' } }), { metadata: { user_id: 'u-3' }, dropped: { length: 0 } })
  t.match(sent({ user: 'u-1', safety_identifier: 'u-1' }), {
    metadata: { user_id: 'u-1' },
    dropped: { length: 0 },
  })
  t.match(sent({ user: 'u-1', safety_identifier: 'u-2', metadata: { user_id: 'u-3', a: 'b' } }), {
    metadata: { user_id: 'u-1' },
    dropped: [/^metadata \(/, /^safety_identifier \(/, /^metadata\.user_id \(/],
  })
  t.match(sent({ metadata: { user_id: 7 } }), { metadata: undefined, dropped: [/^metadata\.user_id \(/] })
})

t.test('cache_control of the whole request stays', async (t) => {
  t.strictSame(sent({ cache_control: { type: 'ephemeral' } }).cache_control, { type: 'ephemeral' })
})

t.test('legacy functions and function_call: tools and their choice, one call at a time', async (t) => {
  const functions = [{ name: 'look_up' }]
  t.match(sent({ functions }), {
    tools: [lookedUp],
    tool_choice: { type: 'auto', disable_parallel_tool_use: true },
    dropped: { length: 0 },
  })
  const choose = (function_call: unknown) => sent({ functions, function_call }).tool_choice.type
  t.same([choose('auto'), choose('none'), choose({ name: 'look_up' })], ['auto', 'none', 'tool'])
  t.match(sent({ function_call: { name: 'f' } }).dropped, [/^tool_choice \(/])
  refused(t, { functions: [{}] }, /^Field 'functions\[0\]\.name'/)
})

t.test('a name that a header cannot hold is changed', async (t) => {
  const { dropped } = sent({
    tools: [{ type: 'x\r\ny: z' }],
    tool_choice: null,
    'evil\r\nfield': 1,
    stop: [' '],
  })
  t.same(dropped, ['evil??field', 'tools[0]', 'stop (blank sequences)'])
})
