/** The messages protocol spoken natively: what is read of a request, and that nothing but the model's id changes in it. */
import t from 'tap'
import { Failure } from '../../../../schemas/failure.ts'
import { messagesDialect, messagesNative } from '../../../../src/protocols/messages/dialect.ts'
import { weighed } from '../chat-completions/reference.ts'
import { encodeOptions } from '../encode-options.ts'

const OPTIONS = encodeOptions({ upstreamModel: 'opus-9', outputCeiling: 8192 })
const VALID = { model: 'sonata', max_tokens: 100, messages: [{ role: 'user', content: 'Hi' }] }

const readText = (body: string, path = '/v1/messages') =>
  messagesDialect.read({ path, query: '', body: Buffer.from(body) })
const read = (more: object = {}) => readText(JSON.stringify({ ...VALID, ...more }))

t.test('what the pipeline has to know of a request', async (t) => {
  t.match(read(), {
    model: 'sonata',
    stream: false,
    outputLimit: 100,
    choices: 1,
    builtInTools: { length: 0 },
  })
  t.match(read({ stream: true, max_tokens: 7 }), { stream: true, outputLimit: 7 })
})

t.test('3: the estimate counts the bytes of messages and system as they were sent', async (t) => {
  const messages = '[ {"role":"user", "content":"Gr\\u00fcße 👩‍👩‍👧"} ]'
  const body = (system: string) => `{"max_tokens":5 ,"messages": ${messages} ,"model":"m"${system}}`
  const bytes = Buffer.byteLength(messages)
  t.equal(readText(body('')).promptBytes, bytes)
  t.equal(readText(body(',"system": "äb"')).promptBytes, bytes + '"äb"'.length + 1)
  const blocks = '[{"type":"text", "text":"be brief"}]'
  t.equal(readText(body(`,"system":${blocks}`)).promptBytes, bytes + blocks.length)
})

t.test('the upstream’s own search is a built-in tool, other tools are not', async (t) => {
  const own = { name: 'web_search', input_schema: { type: 'object' } }
  t.same(read({ tools: [own, { type: 'bash_20250124', name: 'bash' }] }).builtInTools, [])
  const search = [
    { type: 'web_search_20250305', name: 'web_search' },
    own,
    { type: 'web_search_20260209', name: 'b' },
  ]
  t.same(read({ tools: search }).builtInTools, ['web_search'])
})

t.test('a summary of the prompt is seen among the edits that the client asks for', async (t) => {
  const edits = (...types: string[]) => ({
    context_management: {
      edits: types.map((type) => ({ type, trigger: { type: 'input_tokens', value: 50_000 } })),
    },
  })
  t.equal(read(edits('clear_tool_uses_20250919', 'compact_20260112')).compacts, true)
  for (const more of [{}, edits(), edits('clear_thinking_20251015'), { context_management: null }])
    t.equal(read(more).compacts, undefined)
})

const FIELDS: ReadonlyArray<readonly [string, object]> = [
  ['model', { model: undefined }],
  ['model', { model: '' }],
  ['max_tokens', { max_tokens: undefined }],
  ['max_tokens', { max_tokens: 0 }],
  ['max_tokens', { max_tokens: 1.5 }],
  ['max_tokens', { max_tokens: '5' }],
  ['messages', { messages: undefined }],
  ['messages', { messages: [] }],
  ['messages[0].role', { messages: [{ role: 'tool', content: 'x' }] }],
  ['messages[1].content', { messages: [...VALID.messages, { role: 'system', content: 5 }] }],
  ['messages[0].content', { messages: [{ role: 'user' }] }],
  ['messages[0].content[1].type', { messages: [{ role: 'user', content: [{ type: 'text' }, {}] }] }],
  ['system', { system: 5 }],
  ['stream', { stream: 'yes' }],
  ['tools', { tools: {} }],
  ['tools[0].input_schema', { tools: [{ name: 'f' }] }],
  ['tools[0].name', { tools: [{ type: 'custom', input_schema: {} }] }],
  ['tool_choice.type', { tool_choice: { type: 'sometimes' } }],
  ['tool_choice.name', { tool_choice: { type: 'tool' } }],
]
for (const [field, more] of FIELDS)
  t.test(`refused, naming ${field}: ${JSON.stringify(more)}`, async (t) => {
    const error = t.throws(() => read(more)) as unknown as Failure
    t.ok(error instanceof Failure)
    t.equal(error.code, 'invalid_request')
    t.ok(error.message.startsWith(`Field '${field}' is not valid: `), error.message)
  })

t.test('a body that is no JSON object is refused', async (t) => {
  for (const body of ['', '{', '[]', 'null', '"x"'])
    t.throws(() => readText(body), { code: 'invalid_request' }, body)
})

t.test('a field that stands twice is refused: two readers could believe different ones', async (t) => {
  const twice = '{"model":"a","max_tokens":1,"messages":[{"role":"user","content":"x"}],"model":"b"}'
  t.throws(() => readText(twice), { code: 'invalid_request', message: /'model'/ })
})

t.test('known and unknown fields are let through', async (t) => {
  const tools = [
    { name: 'f', description: 'd', input_schema: { type: 'object', $defs: {} }, cache_control: {} },
  ]
  for (const more of [
    { system: 'be brief', temperature: 0.5, tools, tool_choice: { type: 'tool', name: 'f' }, stream: false },
    { tool_choice: { type: 'any', disable_parallel_tool_use: true }, tools },
    { thinking: { type: 'enabled', budget_tokens: 1024 }, metadata: { user_id: 'u' }, mcp_servers: [] },
    {
      messages: [
        { role: 'user', content: [{ type: 'text', text: 'x' }] },
        { role: 'assistant', content: [] },
      ],
    },
  ])
    t.doesNotThrow(() => read(more), JSON.stringify(more))
})

t.test('a system message within the conversation passes as it is, and counts', async (t) => {
  const said = [
    '{"role":"system","content":"Be brief."}',
    '{"role": "system", "content": [{"type":"text","text":"Be brief."}], "clear_at":"next_user_message"}',
    '{"role":"system","output_config":{"effort":"low"}}',
    '{"role":"system","content":null,"output_config":{"effort":"low"}}',
  ]
  for (const message of said) {
    const messages = `[{"role":"user","content":"Hi"},${message},{"role":"assistant","content":"Yes?"}]`
    const body = `{"model":"sonata","max_tokens":9,"messages":${messages}}`
    const call = readText(body)
    t.equal(call.promptBytes, messages.length)
    const { body: sent } = messagesNative.encodeRequest(call, { ...OPTIONS, upstreamModel: 'sonata' })
    t.equal(sent.toString(), body)
  }
  const search = { type: 'tool_definition', definition: { type: 'web_search_20260318', name: 'web_search' } }
  const added = { role: 'system', content: [{ type: 'tool_addition', tool: search }] }
  t.same(read({ messages: [...VALID.messages, added] }).builtInTools, ['web_search'])
})

t.test('native: no byte of the body changes but the model’s id', async (t) => {
  const odd =
    ' { "stream" :true,"max_tokens":1e1, "model" : "sonata" ,\n"messages":[{"role":"user","content":"\\u00e4"}],"x":1.0}\n'
  const wire = (upstreamModel: string) =>
    messagesNative.encodeRequest(readText(odd), { ...OPTIONS, upstreamModel }).body.toString()
  t.equal(wire('sonata'), odd)
  t.equal(wire('opus "9"'), odd.replace('"sonata"', '"opus \\"9\\""'))
  t.same(messagesNative.encodeRequest(readText(odd), OPTIONS).dropped, [])
})

t.test('tokens are counted without a limit; the body passes as it is', async (t) => {
  const body = '{"model":"sonata","messages":[{"role":"user","content":"Hi"}]}'
  const call = readText(body, '/v1/messages/count_tokens')
  t.equal(call.outputLimit, null)
  t.equal(messagesNative.encodeRequest(call, { ...OPTIONS, upstreamModel: 'sonata' }).body.toString(), body)
  t.throws(() => readText(body), { message: /max_tokens/ })
})

t.test('a whole answer passes as it came, and is metered', async (t) => {
  const message = {
    id: 'msg_1',
    type: 'message',
    content: [
      { type: 'thinking', thinking: 'Hm.', signature: 'c2ln' },
      { type: 'text', text: 'Grüße "😀"', citations: [{ text: 'not said' }] },
      { type: 'tool_use', id: 't', name: 'f', input: { a: 1 } },
    ],
    stop_reason: 'tool_use',
    usage: {
      input_tokens: 3,
      cache_read_input_tokens: 4,
      output_tokens: 5,
      server_tool_use: { web_search_requests: 2 },
    },
  }
  const body = Buffer.from(JSON.stringify(message, null, 2))
  const answer = messagesNative.readWhole(read(), body)
  t.equal(answer.body, body)
  t.match(answer, {
    isAnswer: true,
    metered: {
      usage: { prompt: 7, cached: 4, cacheWrite: 0, output: 5, reasoning: 0, serverToolCalls: 2 },
      charactersSinceUsage: 0,
    },
  })
  const { usage: _usage, ...silent } = message
  const { metered } = messagesNative.readWhole(read(), Buffer.from(JSON.stringify(silent)))
  const said = 'Hm.'.length + weighed('Grüße "😀"') + '{"a":1}'.length
  t.match(metered, { usage: null, characters: said, charactersSinceUsage: said })
})

t.test('a whole answer that is an error in spite of its status is one', async (t) => {
  const error = { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } }
  for (const body of [error, { error: { message: 'no' } }])
    t.notOk(messagesNative.readWhole(read(), Buffer.from(JSON.stringify(body))).isAnswer)
})
