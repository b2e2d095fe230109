/**
 * Fields that choose model, route, price or account past the gateway, and ids of objects that are stored at the upstream,
 * are refused in every protocol, by the name of the field.
 */
import t, { type Test } from 'tap'
import { CHAT_PROTOCOLS, type ChatProtocol } from '../../../../schemas/config/catalog.ts'
import type { Failure } from '../../../../schemas/failure.ts'
import { PRICED_FIELDS, STORED_STATE_FIELDS } from '../../../../src/protocols/request/foreign-fields.ts'
import { ROUTING_FIELDS, SERVER_FEATURES } from '../../../../src/protocols/request/routing-fields.ts'
import { chatWith, PLAIN_REQUESTS, readBody } from './plain-requests.ts'

const fault = (field: string) => ({
  code: 'invalid_request',
  message: new RegExp(`Field '${field.replace(/[[\].]/g, '\\$&')}' is not valid: `),
})
const isRefused = (t: Test, protocol: ChatProtocol, more: object, field: string) =>
  t.throws(() => chatWith(protocol, more), fault(field), `${protocol} ${JSON.stringify(more)}`)
const passes = (t: Test, protocol: ChatProtocol, more: object) =>
  t.doesNotThrow(() => chatWith(protocol, more), `${protocol} ${JSON.stringify(more)}`)

t.test('fields of aggregators, whichever the channel', async (t) => {
  const named = [
    ...['models', 'provider', 'route', 'transforms', 'plugins', 'fallbacks', 'extra_body', 'extra_headers'],
    ...['api_base', 'base_url', 'api_key', 'custom_llm_provider', 'litellm_params', 'litellm_metadata'],
    ...['virtual_key', 'targets', 'providerOptions', 'preset', 'data_sources', 'search_parameters'],
    ...['compound_custom', 'kv_transfer_params', 'lora_path'],
  ]
  const listed = new Set(Object.values(ROUTING_FIELDS).flat())
  for (const name of named) t.ok(listed.has(name), name)
  for (const protocol of CHAT_PROTOCOLS)
    for (const name of listed) {
      for (const value of [['dear'], 'dear', { order: ['x'] }, 1, true, ''])
        isRefused(t, protocol, { [name]: value }, name)
      passes(t, protocol, { [name]: null })
    }
})

t.test('features that an upstream charges for, and that have a price as tools alone', async (t) => {
  const read: Readonly<Partial<Record<ChatProtocol, string>>> = {
    'chat-completions': 'web_search_options',
    messages: 'mcp_servers',
  }
  const named = [
    'enable_search',
    'web_search',
    'web_plugin',
    'web_search_options',
    'mcp_servers',
    'connectors',
  ]
  const listed = new Set(Object.values(SERVER_FEATURES).flat())
  for (const name of named) t.ok(listed.has(name), name)
  for (const protocol of CHAT_PROTOCOLS)
    for (const name of listed) {
      passes(t, protocol, { [name]: null })
      if (name === read[protocol]) continue
      for (const value of [true, {}, { enable: true }, ['web'], 'on', 1])
        isRefused(t, protocol, { [name]: value }, name)
      if (/_/.test(name)) isRefused(t, protocol, { [name.toUpperCase()]: true }, name.toUpperCase())
    }
  t.same(chatWith('chat-completions', { web_search_options: {} }).builtInTools, ['web_search'])
  t.same(chatWith('messages', { mcp_servers: [{ url: 'https://a.example' }] }).builtInTools, ['mcp'])
})

t.test('what a proxy keeps in the metadata', async (t) => {
  for (const protocol of CHAT_PROTOCOLS) {
    for (const name of ['user_api_key', 'user_api_key_team_id', 'litellm_parent', 'model_group', 'api_base'])
      isRefused(t, protocol, { metadata: { [name]: 'x' } }, 'metadata')
    isRefused(t, protocol, { metadata: { tags: ['paid'] } }, 'metadata')
    passes(t, protocol, { metadata: { user_id: 'u', tags: 'a,b', model: 'mine', session: '1' } })
  }
})

/** The fields that change the price, with values that no model can have a price for: each is refused. */
const DEAR: Readonly<Record<ChatProtocol, Readonly<Record<string, readonly unknown[]>>>> = {
  'chat-completions': {
    service_tier: ['Priority', 7],
    prediction: [{ type: 'content', content: 'x' }],
    speed: ['fast'],
  },
  responses: { service_tier: [{}], prediction: [{}], speed: ['fast'] },
  messages: {
    service_tier: [['priority']],
    ...{ speed: ['fast'], inference_geo: ['us'], compaction: [{ type: 'auto' }] },
    fallback_credit_token: ['fct_1', { token: 'fct_1', mode: 'best_effort' }],
    billing_policy: [{ type: 'billing_policy', bill_to: 'user_profile' }],
  },
  'generate-content': { serviceTier: ['SERVICE_TIER_FLEX'], service_tier: [1] },
}
/** Fields whose values a model can have a price for: the call says what it asks for, and the model decides. */
const TIERS: Readonly<Record<ChatProtocol, readonly string[]>> = {
  'chat-completions': ['service_tier'],
  responses: ['service_tier'],
  messages: ['service_tier'],
  'generate-content': ['serviceTier', 'service_tier'],
}
const USUAL: Readonly<Record<ChatProtocol, readonly object[]>> = {
  'chat-completions': [{ service_tier: 'auto' }, { service_tier: 'default' }, { prediction: null }],
  responses: [{ service_tier: 'auto' }, { service_tier: 'default' }],
  messages: [{ service_tier: 'auto' }, { service_tier: 'standard_only' }, { speed: 'standard' }],
  'generate-content': [{ serviceTier: 'standard' }, { serviceTier: 'unspecified' }, { service_tier: null }],
}

t.test('fields that change the price', async (t) => {
  for (const protocol of CHAT_PROTOCOLS) {
    t.same(Object.keys(PRICED_FIELDS[protocol]), Object.keys(DEAR[protocol]), 'the list is this one')
    for (const [name, values] of Object.entries(DEAR[protocol]))
      for (const value of values) isRefused(t, protocol, { [name]: value }, name)
    for (const more of USUAL[protocol]) {
      passes(t, protocol, more)
      t.equal(chatWith(protocol, more).serviceTier, undefined)
    }
    for (const name of TIERS[protocol])
      for (const tier of ['priority', 'flex', 'scale'])
        t.equal(chatWith(protocol, { [name]: tier }).serviceTier, tier, `${protocol} ${name} ${tier}`)
  }
})

t.test('fields that choose the model behind the gateway’s back', async (t) => {
  for (const model of ['models/dear', 'dear', 7, { id: 'm' }])
    isRefused(t, 'generate-content', { model }, 'model')
  for (const model of ['m', 'models/m', null]) passes(t, 'generate-content', { model })
  for (const config of ['generationConfig', 'generation_config'])
    for (const name of ['routingConfig', 'routing_config', 'modelSelectionConfig', 'model_config'])
      isRefused(t, 'generate-content', { [config]: { [name]: {} } }, `${config}.${name}`)
  isRefused(t, 'responses', { tools: [{ type: 'image_generation', model: 'gpt-image-9' }] }, 'tools[0].model')
})

const FOUND_BY_GATEWAY = new Set(['previous_response_id', 'conversation', 'background'])

t.test('stored state, by a field of its own', async (t) => {
  for (const protocol of CHAT_PROTOCOLS)
    for (const name of STORED_STATE_FIELDS) {
      const value = name === 'background' ? true : 'x_1'
      // Of these the gateway knows which channel has them.
      if (protocol === 'responses' && FOUND_BY_GATEWAY.has(name)) passes(t, protocol, { [name]: value })
      else isRefused(t, protocol, { [name]: value }, name)
      passes(t, protocol, { [name]: null })
    }
  isRefused(t, 'responses', { prompt: { id: 'pmpt_1' } }, 'prompt')
  isRefused(t, 'messages', { container: 'container_1' }, 'container')
  isRefused(t, 'messages', { container: { skills: [{ type: 'custom', skill_id: 's' }] } }, 'container')
  const previous = { previous_message_id: 'msg_1' }
  isRefused(t, 'messages', { diagnostics: previous }, 'diagnostics.previous_message_id')
  for (const diagnostics of [null, {}, { previous_message_id: null }]) passes(t, 'messages', { diagnostics })
  isRefused(t, 'generate-content', { modelArmorConfig: { promptTemplateName: 'x' } }, 'modelArmorConfig')
  for (const name of ['outputConfig', 'output_config', 'OutputConfig'])
    isRefused(t, 'generate-content', { [name]: { outputUriPrefix: 'gs://bucket/x' } }, name)
  isRefused(t, 'chat-completions', { audio: { format: 'mp3', voice: { id: 'voice_1' } } }, 'audio')
  passes(t, 'chat-completions', { audio: { format: 'mp3', voice: 'alloy' } })
  for (const protocol of CHAT_PROTOCOLS)
    for (const store of [true, false]) passes(t, protocol, { store, background: false })
})

t.test('a thread is refused as its vendor refuses one that it cannot make', async (t) => {
  for (const thread of [{ type: 'create' }, { type: 'continue', previous_message_id: 'msg_1' }, 'msg_1']) {
    isRefused(t, 'messages', { thread }, 'thread')
    const { details } = t.throws(() => chatWith('messages', { thread })) as unknown as Failure
    t.same(details, { error_code: 'thread_unsupported_request', unsupported: ['thread'] })
  }
  passes(t, 'messages', { thread: null })
  isRefused(t, 'messages', { Thread: { type: 'create' } }, 'Thread')
})

const FILE = { type: 'file', file_id: 'file_1' }
const user = (content: unknown) => ({
  messages: [
    { role: 'user', content: 'hi' },
    { role: 'user', content },
  ],
})
const items = (...given: object[]) => ({ input: [{ role: 'user', content: 'hi' }, ...given] })
const parts = (...given: object[]) => ({
  contents: [
    { role: 'user', parts: [{ text: 'hi' }] },
    { role: 'user', parts: given },
  ],
})

t.test('ids of stored objects, wherever an upstream reads them', async (t) => {
  const cases: readonly (readonly [ChatProtocol, object, string])[] = [
    [
      'chat-completions',
      user([
        { type: 'text', text: 'x' },
        { type: 'file', file: { file_id: 'file-1' } },
      ]),
      'messages[1].content[1].file.file_id',
    ],
    [
      'chat-completions',
      { messages: [{ role: 'assistant', content: null, audio: { id: 'audio_1' } }] },
      'messages[0].audio.id',
    ],
    [
      'chat-completions',
      { tools: [{ type: 'file_search', vector_store_ids: ['vs_1'] }] },
      'tools[0].vector_store_ids',
    ],
    ['messages', user([{ type: 'image', source: FILE }]), 'messages[1].content[0].source.file_id'],
    ['messages', user([{ type: 'document', source: FILE }]), 'messages[1].content[0].source.file_id'],
    [
      'messages',
      user([{ type: 'tool_result', tool_use_id: 't', content: [{ type: 'image', source: FILE }] }]),
      'messages[1].content[0].content[0].source.file_id',
    ],
    ['messages', user([{ type: 'container_upload', file_id: 'file_1' }]), 'messages[1].content[0].type'],
    ['messages', { system: [{ type: 'document', source: FILE }] }, 'system[0].source.file_id'],
    ['responses', items({ type: 'item_reference', id: 'msg_1' }), 'input[1].type'],
    [
      'responses',
      items({ role: 'user', content: [{ type: 'input_file', file_id: 'file-1' }] }),
      'input[1].content[0].file_id',
    ],
    [
      'responses',
      items({ role: 'user', content: [{ type: 'input_image', file_id: 'file-1' }] }),
      'input[1].content[0].file_id',
    ],
    [
      'responses',
      items({ type: 'function_call_output', call_id: 'c', output: [{ type: 'input_file', file_id: 'f' }] }),
      'input[1].output[0].file_id',
    ],
    [
      'responses',
      items({ type: 'computer_call_output', call_id: 'c', output: { file_id: 'f' } }),
      'input[1].output.file_id',
    ],
    ['responses', items({ type: 'image_generation_call', id: 'ig_1' }), 'input[1].result'],
    [
      'responses',
      items({ type: 'shell_call', environment: { type: 'container_reference', container_id: 'c' } }),
      'input[1].environment.type',
    ],
    ['responses', { tools: [{ type: 'file_search', vector_store_ids: ['v'] }] }, 'tools[0].vector_store_ids'],
    ['responses', { tools: [{ type: 'code_interpreter', container: 'cntr_1' }] }, 'tools[0].container'],
    [
      'responses',
      { tools: [{ type: 'code_interpreter', container: { type: 'auto', file_ids: ['f'] } }] },
      'tools[0].container.file_ids',
    ],
    [
      'responses',
      { tools: [{ type: 'image_generation', input_image_mask: { file_id: 'f' } }] },
      'tools[0].input_image_mask.file_id',
    ],
    ...(['fileUri', 'file_uri'] as const).flatMap((uri) =>
      (['fileData', 'file_data'] as const).map(
        (data) =>
          [
            'generate-content',
            parts({ text: 'x' }, { [data]: { [uri]: 'https://files.example/v1beta/files/1' } }),
            `contents[1].parts[1].${data}.${uri}`,
          ] as const,
      ),
    ),
    [
      'generate-content',
      parts({ functionResponse: { name: 'f', response: {}, parts: [{ fileData: { fileUri: 'u' } }] } }),
      'contents[1].parts[0].functionResponse.parts[0].fileData.fileUri',
    ],
    [
      'generate-content',
      { systemInstruction: { parts: [{ fileData: { fileUri: 'u' } }] } },
      'systemInstruction.parts[0].fileData.fileUri',
    ],
    [
      'generate-content',
      { tools: [{ fileSearch: { fileSearchStoreNames: ['s'] } }] },
      'tools[0].fileSearch.fileSearchStoreNames',
    ],
  ]
  for (const [protocol, more, field] of cases) isRefused(t, protocol, more, field)
})

t.test('settings of tools that refer to what is stored, or change the price', async (t) => {
  const inTool = (protocol: ChatProtocol, tool: object, field: string) =>
    isRefused(t, protocol, { tools: [tool] }, `tools[0].${field}`)
  const interpreter = (container: unknown) => ({ type: 'code_interpreter', container })
  const shell = (environment: object) => ({ type: 'shell', environment })
  for (const protocol of ['responses', 'chat-completions'] as const) {
    inTool(protocol, interpreter('cntr_1'), 'container')
    inTool(protocol, interpreter({ type: 'auto', memory_limit: '4g' }), 'container.memory_limit')
    for (const memory_limit of [null, '1g'])
      passes(t, protocol, { tools: [interpreter({ type: 'auto', memory_limit })] })
  }
  inTool('responses', shell({ type: 'container_auto', memory_limit: '64g' }), 'environment.memory_limit')
  inTool('responses', { type: 'mcp', server_label: 's', tunnel_id: 'tunnel_1' }, 'tunnel_id')
  const secret = { authConfig: { apiKeyConfig: { apiKeySecret: 'projects/p/secrets/s/versions/1' } } }
  inTool('generate-content', { googleMaps: secret }, 'googleMaps.authConfig.apiKeyConfig.apiKeySecret')
  for (const store of ['vertexAiSearch', 'vertex_ai_search', 'vertexRagStore'])
    inTool('generate-content', { retrieval: { [store]: { engine: 'e' } } }, `retrieval.${store}`)
})

t.test('an id that is the client’s own, or tells of an answer, passes', async (t) => {
  const schema = { type: 'object', properties: { file_id: { type: 'string' }, fileUri: {}, container: 'x' } }
  const own = { file_id: 'mine', fileUri: 'mine', vector_store_ids: ['mine'], type: 'item_reference' }
  passes(t, 'chat-completions', {
    ...user([{ type: 'file', file: { file_data: 'data:,x', filename: 'x', file_id: null } }]),
    tools: [{ type: 'function', function: { name: 'f', parameters: schema } }],
    response_format: { type: 'json_schema', json_schema: { name: 's', schema } },
  })
  passes(t, 'messages', {
    messages: [
      { role: 'assistant', content: [{ type: 'tool_use', id: 't', name: 'f', input: own }] },
      { role: 'user', content: [{ type: 'text', text: 'x', citations: [{ file_id: 'f' }] }] },
      { role: 'user', content: [{ type: 'image', source: { type: 'base64', data: '', media_type: 'x' } }] },
    ],
    tools: [{ name: 'f', input_schema: schema }],
  })
  passes(t, 'responses', {
    ...items(
      { role: 'assistant', content: [{ type: 'output_text', text: 'x', annotations: [{ file_id: 'f' }] }] },
      { type: 'function_call', call_id: 'c', name: 'f', arguments: JSON.stringify(own) },
      { type: 'function_call_output', call_id: 'c', output: JSON.stringify(own) },
      { type: 'image_generation_call', id: 'ig_1', result: 'aGk=' },
      { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'x' },
      { type: 'code_interpreter_call', id: 'ci_1', container_id: 'cntr_1', code: '1' },
      { role: 'user', content: [{ type: 'input_file', file_url: 'https://a.example/a.pdf' }] },
    ),
    tools: [
      { type: 'function', name: 'f', parameters: schema },
      { type: 'code_interpreter', container: { type: 'auto', file_ids: [] } },
    ],
    text: { format: { type: 'json_schema', name: 's', schema } },
  })
  passes(t, 'generate-content', {
    ...parts(
      { functionCall: { name: 'f', args: own } },
      { functionResponse: { name: 'f', response: own } },
      { inlineData: { mimeType: 'image/png', data: 'aGk=' } },
    ),
    tools: [{ functionDeclarations: [{ name: 'f', parametersJsonSchema: schema, response: schema }] }],
    generationConfig: { responseJsonSchema: schema },
  })
})

t.test('no way of writing the name hides it', async (t) => {
  const escaped = (text: string) => text.replace('file_id', 'file\\u005fid').replace('models', '\\u006dodels')
  const withFile = (protocol: ChatProtocol, more: object) =>
    escaped(JSON.stringify({ ...PLAIN_REQUESTS[protocol], ...more }))
  const hidden: readonly (readonly [ChatProtocol, object])[] = [
    ['chat-completions', user([{ type: 'file', file: { file_id: 'f' } }])],
    ['messages', user([{ type: 'image', source: FILE }])],
    ['responses', items({ role: 'user', content: [{ type: 'input_file', file_id: 'f' }] })],
    ...CHAT_PROTOCOLS.map((protocol) => [protocol, { models: ['dear'] }] as const),
  ]
  for (const [protocol, more] of hidden)
    t.throws(() => readBody(protocol, withFile(protocol, more)), { code: 'invalid_request' }, protocol)
})
