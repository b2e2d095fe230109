/** Each row of the table has its test. See docs/translation.md, "The request". */
import t from 'tap'
import { chatCall } from '../messages/streams.ts'
import { configOf, OPTIONS, offer, REDUCED, refused, sent, user } from './requests.ts'
import { TO_GENERATE_CONTENT } from './streams.ts'

t.test('tools: one tool with all functionDeclarations, a JSON Schema where the model takes it', async (t) => {
  const parameters = {
    type: 'object',
    properties: { a: { $ref: '#/$defs/A' } },
    additionalProperties: false,
    $defs: { A: { const: 1 } },
  }
  const { tools, dropped } = sent({
    tools: [offer('a', { description: 'does', parameters }), offer('b'), offer('c', { parameters: {} })],
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
  t.strictSame(dropped, [])
  refused(t, { tools: [{ type: 'function' }] }, /'tools\[0\].function'/)
})

t.test('strict: calls held to their schemas by the mode VALIDATED', async (t) => {
  const tools = [offer('a', { strict: true }), offer('b')]
  const config = (tool_choice?: unknown) => {
    const { toolConfig, dropped } = sent({ tools, tool_choice })
    t.strictSame(dropped, [])
    return toolConfig.functionCallingConfig
  }
  t.strictSame(config(), { mode: 'VALIDATED' })
  t.strictSame(config('auto'), { mode: 'VALIDATED' })
  t.strictSame(config('required'), { mode: 'ANY' }, 'which holds them to it, too')
  t.strictSame(config(offer('b')), { mode: 'ANY', allowedFunctionNames: ['b'] })
  t.strictSame(config('none'), { mode: 'NONE' })
  t.match(
    sent({ tools }, REDUCED),
    { toolConfig: undefined, dropped: ['strict'] },
    'a model without the mode',
  )
  t.match(sent({ tools, tool_choice: 'auto' }, REDUCED).toolConfig, {
    functionCallingConfig: { mode: 'AUTO' },
  })
})

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
  t.strictSame(sent(body, REDUCED, { outputLimit: 77 }), {
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
  const { presence_penalty, frequency_penalty } = body
  for (const upstreamModel of ['gemini-2.5-pro', 'gemini-3.8-flash', 'gemini-flash-latest']) {
    const current = sent({ presence_penalty, frequency_penalty, seed: 42 }, { upstreamModel })
    t.match(current, { generationConfig: { seed: 42 } })
    t.strictSame(current.dropped, [
      'presence_penalty (this model has no such setting)',
      'frequency_penalty (this model has no such setting)',
    ])
    const zeros = sent({ presence_penalty: 0, frequency_penalty: 0 }, { upstreamModel })
    t.match(zeros, { generationConfig: undefined, dropped: { length: 0 } })
  }
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

t.test('response_format beside tools, where the model takes the two together', async (t) => {
  const response_format = { type: 'json_object' }
  const [functions, search] = [[offer('a')], [{ type: 'web_search' }]]
  const formatOf = (body: object, upstreamModel: string) => {
    const { generationConfig, dropped } = sent({ response_format, ...body }, { upstreamModel })
    return [generationConfig?.responseMimeType, ...dropped]
  }
  for (const upstreamModel of ['gemini-2.0-flash', 'gemini-2.5-pro'])
    for (const tools of [functions, search])
      t.strictSame(formatOf({ tools }, upstreamModel), [
        undefined,
        'response_format (not together with tools for this model)',
      ])
  for (const tools of [functions, search, [...functions, ...search]])
    t.strictSame(formatOf({ tools }, 'gemini-3-flash'), ['application/json'])
  for (const tool_choice of ['required', offer('a')])
    t.strictSame(formatOf({ tools: functions, tool_choice }, 'gemini-3-flash'), [
      undefined,
      'response_format (not together with a forced tool_choice)',
    ])
  t.strictSame(formatOf({ tools: [] }, 'gemini-2.5-pro'), ['application/json'])
})

t.test('top_k, logprobs and top_logprobs in generationConfig', async (t) => {
  t.strictSame(configOf({ top_k: 40 }), { topK: 40 })
  t.strictSame(configOf({ top_k: 0 }), undefined)
  t.strictSame(configOf({ logprobs: true }), { responseLogprobs: true })
  t.strictSame(configOf({ logprobs: true, top_logprobs: 3 }), { responseLogprobs: true, logprobs: 3 })
  t.match(sent({ top_logprobs: 3 }), { generationConfig: undefined, dropped: [/^top_logprobs \(/] })
})

t.test('modalities and audio: responseModalities and speechConfig', async (t) => {
  t.strictSame(configOf({ modalities: ['text', 'image'] }), { responseModalities: ['TEXT', 'IMAGE'] })
  t.strictSame(configOf({ modalities: ['text'] }), undefined)
  const spoken = { modalities: ['text', 'audio'], audio: { voice: 'Kore', format: 'pcm16' } }
  t.strictSame(sent(spoken), {
    contents: [user({ text: 'Hi' })],
    generationConfig: {
      responseModalities: ['AUDIO'],
      speechConfig: { voiceConfig: { prebuiltVoiceConfig: { voiceName: 'Kore' } } },
    },
    dropped: [],
  })
  t.match(sent({ ...spoken, audio: { voice: 'Kore', format: 'mp3' } }), {
    generationConfig: undefined,
    dropped: [/^audio \(.*pcm16/, 'modalities (only text)'],
  })
  t.match(sent({ audio: spoken.audio }), { generationConfig: undefined, dropped: [/^audio \(/] })
  t.match(sent({ modalities: ['smell'] }), { generationConfig: undefined, dropped: ['modalities'] })
})

t.test('legacy functions and function_call', async (t) => {
  t.match(sent({ functions: [{ name: 'a' }], function_call: { name: 'a' } }), {
    tools: [{ functionDeclarations: [{ name: 'a' }] }],
    toolConfig: { functionCallingConfig: { mode: 'ANY', allowedFunctionNames: ['a'] } },
    dropped: { length: 0 },
  })
})

t.test('a choice among no functions is named', async (t) => {
  t.match(sent({ tools: [{ type: 'web_search' }], tool_choice: 'required' }).dropped, [/^tool_choice \(/])
  t.same(sent({ tool_choice: 'none' }).dropped, [])
})

t.test('drop: logit_bias, user, parallel_tool_calls, the image_generation tool', async (t) => {
  const body = {
    logit_bias: { 5: 1 },
    user: 'u',
    parallel_tool_calls: false,
    tools: [{ type: 'image_generation' }, { type: 'mystery' }],
  }
  t.strictSame(sent(body), {
    contents: [user({ text: 'Hi' })],
    dropped: ['logit_bias', 'user', 'parallel_tool_calls', 'image_generation', 'tools[1]'],
  })
  t.strictSame(sent({ logit_bias: null, user: null, parallel_tool_calls: null }).dropped, [])
})

t.test('web_search becomes the upstream’s own search', async (t) => {
  const tools = [{ type: 'web_search' }, offer('a')]
  t.strictSame(sent({ tools, tool_choice: 'auto' }, { upstreamModel: 'gemini-3-flash' }), {
    contents: [user({ text: 'Hi' })],
    tools: [{ functionDeclarations: [{ name: 'a' }] }, { googleSearch: {} }],
    toolConfig: { functionCallingConfig: { mode: 'VALIDATED' }, includeServerSideToolInvocations: true },
    dropped: [],
  })
  const configFor = (body: object, provider?: 'vertex') =>
    sent({ tools, ...body }, { upstreamModel: 'gemini-3.5-flash', provider }).toolConfig
  const shown = { includeServerSideToolInvocations: true }
  t.strictSame(configFor({}), { functionCallingConfig: { mode: 'VALIDATED' }, ...shown })
  t.strictSame(configFor({ tool_choice: 'required' }), { functionCallingConfig: { mode: 'ANY' }, ...shown })
  t.strictSame(
    configFor({}, 'vertex'),
    { functionCallingConfig: { mode: 'VALIDATED' } },
    'which lacks the field',
  )
  for (const upstreamModel of ['gemini-2.5-pro', 'gemini-2.0-flash']) {
    const { tools: offered, dropped } = sent({ tools }, { upstreamModel })
    t.strictSame(offered, [{ functionDeclarations: [{ name: 'a' }] }], 'they refuse the two together')
    t.same(dropped, ['web_search (not together with functions for this model)'])
  }
})

t.test('a tool_choice that leaves out the search leaves it out', async (t) => {
  const search = { type: 'web_search' }
  const chosen = (body: object) => sent(body, { upstreamModel: 'gemini-3-flash' })
  t.strictSame(chosen({ tools: [search], tool_choice: 'none' }), {
    contents: [user({ text: 'Hi' })],
    dropped: [],
  })
  const functions = [{ functionDeclarations: [{ name: 'a' }] }]
  const allowed_tools = { mode: 'auto', tools: [{ type: 'function', function: { name: 'a' } }] }
  for (const tool_choice of ['none', { type: 'allowed_tools', allowed_tools }]) {
    const { tools, dropped } = chosen({ tools: [search, offer('a')], tool_choice })
    t.strictSame([tools, dropped], [functions, []])
  }
})

t.test('a seed of more digits than a float keeps', async (t) => {
  t.equal(configOf({ seed: 2 ** 62 }).seed, 0)
  refused(t, { seed: 1.5 }, /'seed'/)
})

t.test('what cannot be printed again is refused', async (t) => {
  const depth = 20_000
  const deep = '['.repeat(depth) + ']'.repeat(depth)
  t.throws(() => JSON.stringify(JSON.parse(deep)), RangeError)
  const tool = `{"type":"function","function":{"name":"a","parameters":{"properties":{"a":${deep}}}}}`
  const body = Buffer.from(`{"messages":[{"role":"user","content":"x"}],"tools":[${tool}]}`)
  const call = chatCall({}, { source: { body, request: {} } })
  t.throws(() => TO_GENERATE_CONTENT.encodeRequest(call, OPTIONS), {
    code: 'invalid_request',
    message: /deeper than 512 levels/,
  })
})
