/** Translation, "Request, to `generate-content`": each row of the table has its test. */
import t, { type Test } from 'tap'
import { Failure } from '../../../schemas/failure.ts'
import type { ChatCall, WireOptions } from '../../../src/protocols/dialect.ts'
import { TO_GENERATE_CONTENT } from './generate-content-streams.ts'
import { chatCall } from './messages-streams.ts'

const OPTIONS: WireOptions = {
  upstreamModel: 'gemini-2.5-flash',
  outputCeiling: null,
  outputLimitField: 'max_tokens',
  askUsage: true,
  fetched: new Map(),
}
const REDUCED = { upstreamModel: 'gemini-2.0-flash' }
const HI = { role: 'user', content: 'Hi' }
const PNG = 'iVBORw0KGgo='

function sent(body: object, options: Partial<WireOptions> = {}, call: Partial<ChatCall> = {}) {
  const wire = TO_GENERATE_CONTENT.wire(chatCall({ messages: [HI], ...body }, call), {
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

const contentsOf = (...messages: object[]) => sent({ messages }).contents
const configOf = (body: object, options: Partial<WireOptions> = {}) => sent(body, options).generationConfig
const text = (text: string) => ({ type: 'text', text })
const user = (...parts: object[]) => ({ role: 'user', parts })
const model = (...parts: object[]) => ({ role: 'model', parts })
const call = (id: string, name: string, args = '{}', more: object = {}) => ({
  id,
  type: 'function',
  function: { name, arguments: args },
  ...more,
})
const assistant = (...tool_calls: object[]) => ({ role: 'assistant', content: null, tool_calls })
const tool = (id: string, content: unknown) => ({ role: 'tool', tool_call_id: id, content })
const functionCall = (name: string, args: object = {}) => ({ functionCall: { name, args } })
const functionResponse = (name: string, response: object) => ({ functionResponse: { name, response } })
const offer = (name: string, more: object = {}) => ({ type: 'function', function: { name, ...more } })

t.test('nothing but what was asked is sent: model and stream stand in the path', async (t) => {
  t.strictSame(sent({ model: 'x', stream: true, stream_options: {}, metadata: { a: '1' }, unknown: true }), {
    contents: [user({ text: 'Hi' })],
    dropped: [],
  })
})

t.test('every system and developer message: all of them, in order', async (t) => {
  const { systemInstruction, contents } = sent({
    messages: [
      { role: 'system', content: 'one' },
      HI,
      { role: 'developer', content: [text('two'), text(''), text('three')] },
      { role: 'system', content: '' },
    ],
  })
  t.strictSame(systemInstruction, { parts: [{ text: 'one' }, { text: 'two' }, { text: 'three' }] })
  t.strictSame(contents, [user({ text: 'Hi' })])
})

t.test('assistant / user / tool: neighbours merged, empty texts left out', async (t) => {
  const contents = contentsOf(
    HI,
    { role: 'user', content: [text(''), text('there')] },
    { role: 'assistant', content: 'A' },
    { role: 'assistant', content: [text('B'), { type: 'refusal', refusal: 'no' }] },
    { role: 'assistant', content: '' },
    { role: 'user', content: 'C' },
  )
  t.strictSame(contents, [
    user({ text: 'Hi' }, { text: 'there' }),
    model({ text: 'A' }, { text: 'B' }, { text: 'no' }),
    user({ text: 'C' }),
  ])
})

t.test('contents never empty, and no call first', async (t) => {
  const unsaid = user({ text: '.' })
  t.strictSame(contentsOf({ role: 'system', content: 'x' }), [unsaid])
  t.strictSame(contentsOf({ role: 'user', content: '' }), [unsaid])
  const called = contentsOf(assistant(call('1', 'a')), tool('1', 'x'))
  t.strictSame(called, [unsaid, model(functionCall('a')), user(functionResponse('a', { output: 'x' }))])
})

t.test('tool_calls: functionCall {name, args}, text before them', async (t) => {
  const contents = contentsOf(
    HI,
    {
      role: 'assistant',
      content: 'Let me see.',
      reasoning_content: 'Hm',
      thinking_blocks: [{ type: 'thinking', thinking: 'Hm', signature: 's' }],
      tool_calls: [call('1', 'a', '{"x":[1,null,"ü"]}'), call('2', 'b', ''), call('3', 'c', 'null')],
    },
    tool('1', 'r'),
    tool('2', 'r'),
    tool('3', 'r'),
  )
  t.strictSame(
    contents[1],
    model(
      { text: 'Let me see.' },
      functionCall('a', { x: [1, null, 'ü'] }),
      functionCall('b'),
      functionCall('c'),
    ),
  )
  for (const args of ['{', '[]', '1', '"x"'])
    refused(
      t,
      { messages: [HI, assistant(call('1', 'a', args))] },
      /'messages\[1\].tool_calls\[0\].function.arguments'/,
    )
})

t.test('thoughtSignature on the first call of a parallel group, from the previous turn', async (t) => {
  const signed = (thought_signature: unknown) => ({ extra_content: { google: { thought_signature } } })
  const messages = [
    HI,
    assistant(call('1', 'a', '{}', signed('c2ln')), call('2', 'b')),
    tool('1', 'x'),
    tool('2', 'x'),
  ]
  const expected = model({ ...functionCall('a'), thoughtSignature: 'c2ln' }, functionCall('b'))
  for (const upstreamModel of ['gemini-2.5-pro', 'gemini-3-pro-preview', 'other'])
    t.strictSame(sent({ messages }, { upstreamModel }).contents[1], expected, upstreamModel)
  const lost = [
    HI,
    assistant(call('1', 'a', '{}', signed(7)), call('2', 'b')),
    tool('1', 'x'),
    tool('2', 'x'),
  ]
  t.strictSame(sent({ messages: lost }).contents[1], model(functionCall('a'), functionCall('b')))
  t.strictSame(
    sent({ messages: lost }, { upstreamModel: 'models/gemini-3-flash' }).contents[1],
    model({ ...functionCall('a'), thoughtSignature: 'skip_thought_signature_validator' }, functionCall('b')),
    'where a missing one is refused, the vendor’s own stand-in',
  )
})

t.test('tool message: the name looked up by tool_call_id, the latest call of that id', async (t) => {
  const contents = contentsOf(
    HI,
    assistant(call('same', 'first')),
    tool('same', 'x'),
    assistant(call('same', 'second')),
    tool('same', 'y'),
  )
  t.strictSame(contents[2], user(functionResponse('first', { output: 'x' })))
  t.strictSame(contents[4], user(functionResponse('second', { output: 'y' })))
  refused(t, { messages: [HI, tool('nobody', 'x')] }, /'messages\[1\].tool_call_id'/)
})

t.test('tool message: a string is wrapped in an object, the text of an object is that object', async (t) => {
  const responseOf = (content: unknown) =>
    contentsOf(HI, assistant(call('1', 'a')), tool('1', content))[2].parts[0].functionResponse.response
  t.strictSame(responseOf('18 °C'), { output: '18 °C' })
  t.strictSame(responseOf([text('18'), text(' °C')]), { output: '18 °C' })
  t.strictSame(responseOf(''), { output: '' })
  t.strictSame(responseOf(null), { output: '' })
  t.strictSame(responseOf(' {"t": 18, "__proto__": 1}'), JSON.parse('{"t":18,"__proto__":1}'))
  for (const other of ['[1]', '18', 'null', '"x"', '{"t":', '{"id":12345678901234567890}'])
    t.strictSame(responseOf(other), { output: other })
})

t.test('tool messages: in the order of the calls, before anything else of the turn', async (t) => {
  const contents = contentsOf(
    HI,
    assistant(call('1', 'a'), call('2', 'b'), call('3', 'c')),
    tool('3', 'z'),
    tool('1', 'x'),
    { role: 'user', content: 'well?' },
    tool('2', 'y'),
  )
  t.strictSame(
    contents[2],
    user(
      functionResponse('a', { output: 'x' }),
      functionResponse('b', { output: 'y' }),
      functionResponse('c', { output: 'z' }),
      { text: 'well?' },
    ),
  )
})

t.test('image data: becomes inlineData; so does a file', async (t) => {
  const image = (url: string) => ({ type: 'image_url', image_url: { url } })
  const inline = (mimeType: string) => ({ inlineData: { mimeType, data: PNG } })
  const content = [
    text('what?'),
    image(`data:image/png;base64,${PNG}`),
    image(`data:IMAGE/JPG;charset=x;base64,${PNG}`),
    { type: 'image_url', image_url: `data:image/webp;base64,${PNG}` },
    { type: 'file', file: { filename: 'a.pdf', file_data: `data:application/pdf;base64,${PNG}` } },
  ]
  const types = ['image/png', 'image/jpeg', 'image/webp', 'application/pdf']
  t.strictSame(contentsOf({ role: 'user', content }), [user({ text: 'what?' }, ...types.map(inline))])
  t.strictSame(
    contentsOf(
      HI,
      assistant(call('1', 'draw')),
      tool('1', [text('done'), image(`data:image/png;base64,${PNG}`)]),
    )[2],
    user(functionResponse('draw', { output: 'done' }), inline('image/png')),
    'from a tool too',
  )
  for (const url of ['data:image/png,abc', 'data:;base64,abc', 'data:nothing'])
    refused(
      t,
      { messages: [{ role: 'user', content: [image(url)] }] },
      /'messages\[0\].content\[0\].image_url.url'/,
    )
  const audio = { type: 'input_audio', input_audio: { data: '', format: 'mp3' } }
  refused(t, { messages: [{ role: 'user', content: [audio] }] }, /'messages\[0\].content\[0\]/)
})

t.test('image http(s): fetched by the gateway and inlined', async (t) => {
  const url = 'https://example.org/a.png'
  const image = (url: string) => ({ type: 'image_url', image_url: { url } })
  const body = {
    messages: [
      {
        role: 'user',
        content: [image(url), image('HTTP://example.org/b'), image(`data:image/png;base64,${PNG}`)],
      },
      { role: 'user', content: [image(url)] },
    ],
  }
  t.strictSame(TO_GENERATE_CONTENT.urlsToFetch(chatCall(body)), [url, 'HTTP://example.org/b'])
  t.strictSame(TO_GENERATE_CONTENT.urlsToFetch(chatCall({ messages: [HI] })), [])
  const fetched = new Map([
    [url, { mediaType: 'image/png', base64: 'QQ==' }],
    ['HTTP://example.org/b', { mediaType: 'image/jpeg', base64: 'Qg==' }],
  ])
  const a = { inlineData: { mimeType: 'image/png', data: 'QQ==' } }
  const b = { inlineData: { mimeType: 'image/jpeg', data: 'Qg==' } }
  const c = { inlineData: { mimeType: 'image/png', data: PNG } }
  t.strictSame(sent(body, { fetched }).contents, [user(a, b, c, a)])
  refused(t, body, /'messages\[0\].content\[0\].image_url.url'.*fetched/)
  for (const bad of [
    'ftp://example.org/a',
    'file:///etc/passwd',
    '/a.png',
    '',
    `https://e.org/${'a'.repeat(2048)}`,
  ]) {
    const call = chatCall({ messages: [{ role: 'user', content: [image(bad)] }] })
    t.throws(() => TO_GENERATE_CONTENT.urlsToFetch(call), {
      code: 'invalid_request',
      message: /image_url.url/,
    })
  }
})

t.test(
  'tools: one tool with all functionDeclarations, the schema as JSON Schema where the model takes it',
  async (t) => {
    const parameters = {
      type: 'object',
      properties: { a: { $ref: '#/$defs/A' } },
      additionalProperties: false,
      $defs: { A: { const: 1 } },
    }
    const { tools, dropped } = sent({
      tools: [
        offer('a', { description: 'does', parameters, strict: true }),
        offer('b'),
        offer('c', { parameters: {} }),
      ],
    })
    t.strictSame(tools, [
      {
        functionDeclarations: [
          { name: 'a', description: 'does', parametersJsonSchema: parameters },
          { name: 'b' },
          { name: 'c' },
        ],
      },
    ])
    t.strictSame(dropped, ['strict'])
    refused(t, { tools: [{ type: 'function' }] }, /'tools\[0\].function'/)
  },
)

t.test('tools: else reduced to the subset', async (t) => {
  const parameters = {
    type: 'object',
    properties: {
      ref: { $ref: '#/$defs/A' },
      all: { allOf: [{ type: 'string' }, { minLength: 2 }] },
      only: { const: 'x' },
      maybe: { anyOf: [{ type: 'string' }, { type: 'null' }] },
    },
    required: ['ref'],
    additionalProperties: false,
    $defs: { A: { type: 'integer', exclusiveMinimum: 0 } },
  }
  const offered = [
    offer('a', { parameters }),
    offer('b', { parameters: { type: 'object', additionalProperties: true } }),
  ]
  t.strictSame(sent({ tools: offered }, REDUCED).tools, [
    {
      functionDeclarations: [
        {
          name: 'a',
          parameters: {
            type: 'OBJECT',
            properties: {
              ref: { type: 'INTEGER', minimum: 1 },
              all: { type: 'STRING', minLength: 2 },
              only: { type: 'STRING', enum: ['x'] },
              maybe: { type: 'STRING', nullable: true },
            },
            required: ['ref'],
          },
        },
        { name: 'b' },
      ],
    },
  ])
})

t.test('which models take JSON Schema', async (t) => {
  const parameters = { type: 'object', properties: { a: { type: 'string' } } }
  const takes = (upstreamModel: string): boolean =>
    'parametersJsonSchema' in
    sent({ tools: [offer('a', { parameters })] }, { upstreamModel }).tools[0].functionDeclarations[0]
  const newer = [
    ...['gemini-2.5-flash-lite', 'models/gemini-2.5-pro', 'gemini-3-pro-preview', 'gemini-3.1-flash'],
    ...['gemini-flash-latest', 'something-else', 'gemini-10-pro'],
  ]
  const older = [
    'gemini-2.0-flash',
    'gemini-2.0-flash-001',
    'gemini-1.5-pro-002',
    'google/gemini-1.5-flash-8b',
    'gemma-3-27b-it',
  ]
  for (const name of newer) t.ok(takes(name), name)
  for (const name of older) t.notOk(takes(name), name)
})

t.test('tool_choice auto / none / required / a function', async (t) => {
  const tools = [offer('a'), offer('b')]
  const config = (tool_choice: unknown) => sent({ tools, tool_choice }).toolConfig?.functionCallingConfig
  t.strictSame(config('auto'), { mode: 'AUTO' })
  t.strictSame(config('none'), { mode: 'NONE' })
  t.strictSame(config('required'), { mode: 'ANY' })
  t.strictSame(config({ type: 'function', function: { name: 'b' } }), {
    mode: 'ANY',
    allowedFunctionNames: ['b'],
  })
  t.strictSame(config(undefined), undefined)
  t.strictSame(config(null), undefined)
  t.notOk('toolConfig' in sent({ tool_choice: 'none' }), 'a choice among none is refused upstream')
  for (const [mode, expected] of [
    ['auto', 'AUTO'],
    ['required', 'ANY'],
  ]) {
    const tool_choice = { type: 'allowed_tools', allowed_tools: { mode, tools: [offer('b')] } }
    const { tools: offered, toolConfig } = sent({ tools, tool_choice })
    t.strictSame(toolConfig.functionCallingConfig, { mode: expected })
    t.strictSame(offered, [{ functionDeclarations: [{ name: 'b' }] }])
  }
  refused(t, { tools, tool_choice: 'any' }, /'tool_choice'/)
})

t.test('max_tokens, stop, n, seed, temperature, top_p, penalties in generationConfig', async (t) => {
  const body = {
    temperature: 1.7,
    top_p: 0.5,
    n: 3,
    seed: 42,
    stop: ['a', 'b'],
    presence_penalty: -1,
    frequency_penalty: 1.5,
  }
  t.strictSame(sent(body, {}, { outputLimit: 77 }), {
    contents: [user({ text: 'Hi' })],
    generationConfig: {
      maxOutputTokens: 77,
      temperature: 1.7,
      topP: 0.5,
      candidateCount: 3,
      seed: 42,
      presencePenalty: -1,
      frequencyPenalty: 1.5,
      stopSequences: ['a', 'b'],
    },
    dropped: [],
  })
  t.strictSame(configOf({ n: 1, stop: 'x', seed: 2 ** 31 + 5 }), { seed: 5, stopSequences: ['x'] })
  const nothing = {
    temperature: null,
    top_p: null,
    n: null,
    seed: null,
    stop: null,
    response_format: null,
    tools: null,
  }
  t.strictSame(sent(nothing), { contents: [user({ text: 'Hi' })], dropped: [] })
  refused(t, { top_p: 'x' }, /'top_p'/)
  refused(t, { seed: 1.5 }, /'seed'/)
})

t.test('max_tokens: the client’s, else the model’s ceiling, else none', async (t) => {
  t.strictSame(configOf({}, { outputCeiling: 8192 }), { maxOutputTokens: 8192 })
  t.strictSame(sent({}, { outputCeiling: 8192 }, { outputLimit: 5 }).generationConfig, { maxOutputTokens: 5 })
  t.strictSame(configOf({}), undefined)
})

t.test('stop: at most 5, none empty, and what is left out is named', async (t) => {
  const { generationConfig, dropped } = sent({ stop: ['a', '', 'b', 'c', 'd', 'e', 'f', 'g'] })
  t.strictSame(generationConfig, { stopSequences: ['a', 'b', 'c', 'd', 'e'] })
  t.equal(dropped.length, 2)
  for (const name of dropped) t.match(name, /^stop \(/)
  t.strictSame(sent({ stop: '' }).dropped, ['stop (empty sequences)'])
})

t.test('response_format json_object / json_schema', async (t) => {
  const json = { responseMimeType: 'application/json' }
  const schema = {
    type: 'object',
    properties: { a: { type: ['integer', 'null'] } },
    additionalProperties: false,
  }
  const response_format = { type: 'json_schema', json_schema: { name: 'x', strict: true, schema } }
  t.strictSame(configOf({ response_format: { type: 'json_object' } }), json)
  t.strictSame(configOf({ response_format }), { ...json, responseJsonSchema: schema })
  t.strictSame(configOf({ response_format: { type: 'json_schema', json_schema: { name: 'x' } } }), json)
  t.strictSame(configOf({ response_format: { type: 'text' } }), undefined)
  t.strictSame(configOf({ response_format }, REDUCED), {
    ...json,
    responseSchema: { type: 'OBJECT', properties: { a: { type: 'INTEGER', nullable: true } } },
  })
  refused(t, { response_format: { type: 'grammar' } }, /'response_format/)
})

t.test(
  'reasoning_effort: thinkingBudget, or thinkingLevel where the model takes that; never both',
  async (t) => {
    const thinking = (reasoning_effort: string, upstreamModel: string) =>
      configOf({ reasoning_effort }, { upstreamModel })?.thinkingConfig
    const rows: readonly (readonly [model: string, effort: string, expected: object])[] = [
      ['gemini-2.5-flash', 'low', { thinkingBudget: 1024 }],
      ['gemini-2.5-flash', 'medium', { thinkingBudget: 8192 }],
      ['gemini-2.5-flash', 'high', { thinkingBudget: 24_576 }],
      ['gemini-2.5-flash', 'none', { thinkingBudget: 0 }],
      ['gemini-2.5-pro', 'none', { thinkingBudget: 128 }],
      ['gemini-flash-latest', 'minimal', { thinkingBudget: 1024 }],
      ['gemini-3-flash-preview', 'none', { thinkingLevel: 'minimal' }],
      ['gemini-3-flash-preview', 'minimal', { thinkingLevel: 'minimal' }],
      ['gemini-3-flash-preview', 'medium', { thinkingLevel: 'medium' }],
      ['gemini-3-pro-preview', 'minimal', { thinkingLevel: 'low' }],
      ['gemini-3-pro-preview', 'medium', { thinkingLevel: 'high' }],
      ['gemini-3.1-pro', 'medium', { thinkingLevel: 'medium' }],
      ['gemini-3.1-pro', 'xhigh', { thinkingLevel: 'high' }],
    ]
    for (const [name, effort, expected] of rows) {
      const shown = effort === 'none' ? {} : { includeThoughts: true }
      t.strictSame(thinking(effort, name), { ...expected, ...shown }, `${name}, ${effort}`)
    }
    t.strictSame(
      sent({ reasoning_effort: 'low' }, REDUCED).dropped,
      ['reasoning_effort'],
      'a model that does not think',
    )
    t.strictSame(sent({ reasoning_effort: 'none' }, REDUCED).dropped, [])
    t.strictSame(sent({ reasoning_effort: 'toString' }), {
      contents: [user({ text: 'Hi' })],
      dropped: ['reasoning_effort'],
    })
  },
)

t.test('drop: logit_bias, user, parallel_tool_calls, the image_generation tool', async (t) => {
  const body = {
    logit_bias: { 5: 1 },
    user: 'u',
    parallel_tool_calls: false,
    logprobs: true,
    tools: [{ type: 'image_generation' }, { type: 'mystery' }],
  }
  t.strictSame(sent(body), {
    contents: [user({ text: 'Hi' })],
    dropped: ['logit_bias', 'user', 'parallel_tool_calls', 'logprobs', 'image_generation', 'tools[1]'],
  })
  t.strictSame(sent({ logit_bias: null, user: null, parallel_tool_calls: null }).dropped, [])
})

t.test('web_search becomes the upstream’s own search', async (t) => {
  t.strictSame(sent({ tools: [{ type: 'web_search' }, offer('a')], tool_choice: 'auto' }), {
    contents: [user({ text: 'Hi' })],
    tools: [{ functionDeclarations: [{ name: 'a' }] }, { googleSearch: {} }],
    toolConfig: { functionCallingConfig: { mode: 'AUTO' } },
    dropped: [],
  })
})

t.test('what cannot be printed again is refused', async (t) => {
  const depth = 20_000
  const deep = '['.repeat(depth) + ']'.repeat(depth)
  t.throws(() => JSON.stringify(JSON.parse(deep)), RangeError)
  const tool = `{"type":"function","function":{"name":"a","parameters":{"properties":{"a":${deep}}}}}`
  const body = Buffer.from(`{"messages":[{"role":"user","content":"x"}],"tools":[${tool}]}`)
  const call = chatCall({}, { source: { body, request: {} } })
  t.throws(() => TO_GENERATE_CONTENT.wire(call, OPTIONS), { code: 'invalid_request', message: /nested/ })
})
