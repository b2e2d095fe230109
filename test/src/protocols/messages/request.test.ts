/** Requests of messages: read and translated. */
import { ChatCompletionStream } from 'openai/lib/ChatCompletionStream'
import t from 'tap'
import { Failure } from '../../../../schemas/failure.ts'
import { messagesNative } from '../../../../src/protocols/messages/dialect.ts'
import { readAtPath } from '../../../support/read-at-path.ts'
import { weighed } from '../chat-completions/reference.ts'
import { encodeOptions } from '../encode-options.ts'
import {
  assistant,
  CEILING,
  call,
  HI,
  lookedUp,
  lookUp,
  OPTIONS,
  PNG,
  refused,
  result,
  sent,
  text,
  tool,
  use,
  user,
} from './request.ts'
import { chatCall, MESSAGES_STREAMS, runInPieces, TO_MESSAGES, translatedStream } from './streams.ts'

t.test('dialect', async (t) => {
  // The messages protocol spoken natively: what is read of a request, and that nothing but the model's id changes in it.
  const OPTIONS = encodeOptions({ upstreamModel: 'opus-9', outputCeiling: 8192 })
  const VALID = { model: 'sonata', max_tokens: 100, messages: [{ role: 'user', content: 'Hi' }] }

  const readText = (body: string, path = '/v1/messages') => readAtPath(path, '', Buffer.from(body))
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
      {
        system: 'be brief',
        temperature: 0.5,
        tools,
        tool_choice: { type: 'tool', name: 'f' },
        stream: false,
      },
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
    const search = {
      type: 'tool_definition',
      definition: { type: 'web_search_20260318', name: 'web_search' },
    }
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
})

t.test('conversation row by row', async (t) => {
  // Each row about the conversation has its test. See docs/translation.md, "The request".
  t.test('the model is the upstream’s, the stream the client’s, and no other field appears', async (t) => {
    const expected = { model: 'opus-9', max_tokens: CEILING, messages: [user(text('Hi'))], dropped: [] }
    t.strictSame(sent({ metadata: { a: 1 }, unknown_field: true }), {
      ...expected,
      dropped: ['unknown_field', 'metadata'],
    })
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

  t.test('an answer to be continued ends without white space', async (t) => {
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
    t.strictSame(JSON.parse(TO_MESSAGES.encodeRequest(call, OPTIONS).body.toString()).messages, [
      user({ type: 'image', source: { type: 'url', url } }),
    ])
  })

  t.test('links are fetched and sent in base64 where the upstream fetches none', async (t) => {
    const [picture, document] = ['https://example.org/a.png', 'https://example.org/a.pdf']
    const content = [
      { type: 'image_url', image_url: { url: picture } },
      { type: 'file', file: { file_data: document, filename: 'a.pdf' } },
    ]
    const messages = [
      { role: 'user', content },
      { role: 'assistant', tool_calls: [call('a', 'f', '')] },
      tool('a', content),
    ]
    const asked = chatCall({ messages })
    for (const provider of ['bedrock', 'vertex'] as const)
      t.same(TO_MESSAGES.urlsToFetch(asked, provider), [picture, document], provider)
    t.same(TO_MESSAGES.urlsToFetch(asked, 'anthropic'), [])
    const fetched = new Map([
      [picture, { mediaType: 'image/jpg', base64: '/9j/' }],
      [document, { mediaType: '', base64: 'JVBERi0x' }],
    ])
    const sent = JSON.parse(TO_MESSAGES.encodeRequest(asked, { ...OPTIONS, fetched }).body.toString())
    const blocks = [
      { type: 'image', source: { type: 'base64', media_type: 'image/jpeg', data: '/9j/' } },
      {
        type: 'document',
        source: { type: 'base64', media_type: 'application/pdf', data: 'JVBERi0x' },
        title: 'a.pdf',
      },
    ]
    t.strictSame(sent.messages[0], user(...blocks))
    t.strictSame(sent.messages[2], user(result('a', blocks)))
    const strange = new Map(fetched).set(picture, { mediaType: 'video/mp4', base64: 'AAAA' })
    t.throws(() => TO_MESSAGES.encodeRequest(asked, { ...OPTIONS, fetched: strange }), {
      code: 'invalid_request',
      message: /^Field 'messages\[0\]\.content\[0\]\.image_url\.url' is not valid: this model takes files of/,
    })
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

  t.test(
    'a run of tool messages: one user message, its tool_result blocks before anything else',
    async (t) => {
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
        user(
          result('a', 'A'),
          result('b', [text('B')]),
          { type: 'tool_result', tool_use_id: 'c' },
          text('so?'),
        ),
      ])
    },
  )

  t.test('an id that the upstream would refuse is renamed at both ends of a call', async (t) => {
    const asked = { role: 'assistant', tool_calls: [call('functions.f:0', 'f', '')] }
    const { messages } = sent({ messages: [HI, asked, tool('functions.f:0', 'A')] })
    t.match(messages[1].content[0].id, /^[a-zA-Z0-9_-]+$/)
    t.equal(messages[2].content[0].tool_use_id, messages[1].content[0].id)
  })

  t.test('what cannot be translated is refused with the field’s name', async (t) => {
    refused(t, { messages: [{ role: 'function', name: 'f', content: 'x' }] }, /^Field 'messages\[0\]\.name'/)
    const audio = { type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } }
    refused(
      t,
      { messages: [HI, { role: 'user', content: [audio] }] },
      /^Field 'messages\[1\]\.content\[0\]' .* audio/,
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

  t.test('file: PDF and text become documents, by URL too; what no model can read is refused', async (t) => {
    const base64 = (said: string) => Buffer.from(said).toString('base64')
    const file = (file_data: string, filename?: string) => ({ type: 'file', file: { file_data, filename } })
    const document = (source: object, title?: string) => ({
      type: 'document',
      source,
      ...(title ? { title } : {}),
    })
    const plain = (data: string) => ({ type: 'text', media_type: 'text/plain', data })
    const { messages } = sent({
      messages: [
        {
          role: 'user',
          content: [
            file(`data:text/markdown;base64,${base64('# Ä')}`, 'a.md'),
            file(`data:application/json;base64,${base64('{}')}`),
            file(PNG, 'b.PDF'),
            file('https://example.org/c.pdf'),
          ],
        },
      ],
    })
    t.strictSame(messages, [
      user(
        document(plain('# Ä'), 'a.md'),
        document(plain('{}')),
        document({ type: 'base64', media_type: 'application/pdf', data: PNG }, 'b.PDF'),
        document({ type: 'url', url: 'https://example.org/c.pdf' }),
      ),
    ])
    const parts = [
      file('data:application/zip;base64,AAAA'),
      file(`data:text/plain;base64,${Buffer.from([0xff, 0xfe]).toString('base64')}`),
      file(PNG, 'no-type'),
      file('not base64', 'a.pdf'),
      { type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } },
      { type: 'video_url', video_url: { url: 'https://example.org/a.mp4' } },
    ]
    for (const part of parts)
      refused(t, { messages: [{ role: 'user', content: [part] }] }, /^Field 'messages\[0\]\.content\[0\]/)
  })

  t.test('legacy function_call and function messages: a call and its result', async (t) => {
    const asked = (q: string) => ({
      role: 'assistant',
      content: null,
      function_call: { name: 'look_up', arguments: `{"q":"${q}"}` },
    })
    const answered = { role: 'function', name: 'look_up', content: 'found' }
    const { messages, dropped } = sent({
      messages: [HI, asked('a'), answered, asked('b'), answered],
      functions: [{ name: 'look_up' }],
    })
    t.strictSame(messages.slice(1), [
      assistant(use('function_call_1', 'look_up', { q: 'a' })),
      user(result('function_call_1', 'found')),
      assistant(use('function_call_3', 'look_up', { q: 'b' })),
      user(result('function_call_3', 'found')),
    ])
    t.same(dropped, [])
  })

  t.test('pictures of an earlier answer are named: this upstream takes none back', async (t) => {
    const images = [{ type: 'image_url', image_url: { url: `data:image/png;base64,${PNG}` } }]
    const { messages, dropped } = sent({
      messages: [HI, { role: 'assistant', content: 'Here.', images }, HI],
    })
    t.strictSame(messages[1], assistant(text('Here.')))
    t.same(dropped, ['messages.images'])
  })

  t.test('a schema nested beyond what can be printed is refused, not a fault', async (t) => {
    const depth = 100_000
    const deep = `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`
    const body = `{"messages":[{"role":"user","content":"Hi"}],"tools":[{"type":"function","function":{"name":"f","parameters":${deep}}}]}`
    const source = { body: Buffer.from(body), request: {} }
    t.throws(() => TO_MESSAGES.encodeRequest(chatCall({}, { source }), OPTIONS), { code: 'invalid_request' })
  })
})

t.test('request row by row', async (t) => {
  // Each row about tools and parameters has its test. See docs/translation.md, "The request".
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
    t.strictSame(
      sent({ tools: [{ type: 'web_search' }, { type: 'web_search', user_location: near }] }).tools,
      [
        { type: 'web_search_20250305', name: 'web_search' },
        {
          type: 'web_search_20250305',
          name: 'web_search',
          user_location: { type: 'approximate', city: 'Köln', country: 'DE' },
        },
      ],
    )
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
    t.equal(
      sent({}, {}, { outputCeiling: null }).max_tokens,
      32768,
      'required also where no ceiling is known',
    )
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

  t.test(
    'reasoning_effort: a budget of 1024 / 2048 / 4096, at least 1024 and below max_tokens',
    async (t) => {
      const think = (reasoning_effort: string, outputLimit = 5000, more: object = {}) =>
        sent({ reasoning_effort, ...more }, { outputLimit })
      const budget = (effort: string, limit?: number) => think(effort, limit).thinking?.budget_tokens
      t.same(
        ['minimal', 'low', 'medium', 'high', 'xhigh'].map((effort) => budget(effort)),
        [1024, 1024, 2048, 4096, 4096],
      )
      t.equal(budget('high', 4096), 4095)
      t.equal(budget('high', 1025), 1024)
      t.match(think('high', 1024), {
        thinking: undefined,
        max_tokens: 1024,
        dropped: [/^reasoning_effort \(/],
      })
      t.match(think('none'), { thinking: { type: 'disabled' }, dropped: { length: 0 } })
      t.match(think('enormous'), { thinking: undefined, dropped: ['reasoning_effort'] })
      const forced = { tools: [lookUp], tool_choice: 'required' }
      t.match(
        think('low', 5000, forced),
        { thinking: undefined, dropped: [/^reasoning_effort \(/] },
        'a forced tool',
      )
    },
  )

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
      t.same([...dropped].sort(), [...Object.keys(fields), 'image_generation'].sort())
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
    t.match(sent(asJson(chain)), {
      output_config: { format: { type: 'json_schema' } },
      dropped: { length: 0 },
    })
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
      dropped: [/^safety_identifier \(/, /^metadata\.user_id \(/, /^metadata \(/],
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
})

t.test('each generation gets its settings', async (t) => {
  // Sampling and reasoning are said as each generation of models takes them. See docs/translation.md, "The request".
  const JSON_FORMAT = {
    type: 'json_schema',
    json_schema: { name: 'x', schema: { type: 'object', properties: {} } },
  }
  const sentTo = (upstreamModel: string, body: object) => sent(body, { outputLimit: 5000 }, { upstreamModel })
  const EARLIER = ['claude-opus-4-20250514', 'claude-3-7-sonnet-latest', 'deepseek-chat', 'opus-9']
  const OF_ONE_SETTING = [
    'claude-opus-4-1-20250805',
    'us.anthropic.claude-sonnet-4-5-20250929-v1:0',
    'claude-opus-4-6',
  ]
  const OF_NO_SETTING = [
    'claude-opus-4-7',
    'claude-opus-4-10',
    'claude-sonnet-5',
    'claude-fable-5-2',
    'anthropic/claude-opus-4.8',
  ]

  t.test('temperature or top_p alone, for models that refuse the two together', async (t) => {
    const both = { temperature: 0.7, top_p: 0.9 }
    for (const model of EARLIER) t.match(sentTo(model, both), { ...both, dropped: { length: 0 } }, model)
    for (const model of OF_ONE_SETTING) {
      t.match(sentTo(model, both), {
        temperature: 0.7,
        top_p: undefined,
        dropped: ['top_p (not together with temperature for this model)'],
      })
      t.match(sentTo(model, { ...both, temperature: 1 }), {
        temperature: undefined,
        top_p: 0.9,
        dropped: { length: 0 },
      })
      t.match(sentTo(model, { top_p: 0.9 }), { top_p: 0.9, dropped: { length: 0 } })
    }
  })

  t.test('no sampling settings, for models without them', async (t) => {
    for (const model of OF_NO_SETTING) {
      const settings = { temperature: 0.7, top_p: 0.9, top_k: 40 }
      for (const more of [{}, { reasoning_effort: 'low' }]) {
        const { dropped, ...wire } = sentTo(model, { ...settings, ...more })
        for (const name of Object.keys(settings)) t.notOk(name in wire, `${model}: ${name}`)
        t.same(
          dropped,
          Object.keys(settings).map((name) => `${name} (this model has no such setting)`),
        )
      }
      t.same(sentTo(model, { temperature: 1, top_p: 1, top_k: 0 }).dropped, [], 'the defaults')
    }
  })

  t.test('reasoning by effort, for models that take no budget', async (t) => {
    const shown = { type: 'adaptive', display: 'summarized' }
    for (const model of OF_NO_SETTING) {
      const efforts = {
        minimal: 'low',
        low: 'low',
        medium: 'medium',
        high: 'high',
        xhigh: 'xhigh',
        max: 'max',
      }
      for (const [reasoning_effort, effort] of Object.entries(efforts))
        t.match(sentTo(model, { reasoning_effort }), {
          thinking: shown,
          output_config: { effort },
          dropped: { length: 0 },
        })
      t.match(sentTo(model, { reasoning: { max_tokens: 2000 } }), {
        thinking: shown,
        output_config: undefined,
        dropped: ['reasoning (this model takes no budget)'],
      })
      t.strictSame(sentTo(model, { thinking: { type: 'adaptive' } }).thinking, shown)
      t.match(sentTo(model, { reasoning_effort: 'low', include_reasoning: false }), {
        thinking: { type: 'adaptive', display: 'omitted' },
      })
      const format = { response_format: JSON_FORMAT, reasoning_effort: 'low' }
      t.match(sentTo(model, format).output_config, { effort: 'low', format: { type: 'json_schema' } })
    }
    for (const model of [...EARLIER, ...OF_ONE_SETTING])
      t.strictSame(sentTo(model, { reasoning_effort: 'max' }).thinking, {
        type: 'enabled',
        budget_tokens: 4096,
      })
  })

  t.test('reasoning whose depth is left to the model, where it takes that', async (t) => {
    const body = { thinking: { type: 'adaptive' } }
    for (const model of ['claude-opus-4-6', 'claude-sonnet-4-6', 'claude-opus-5', 'deepseek-chat'])
      t.match(sentTo(model, body), { thinking: { type: 'adaptive' }, dropped: { length: 0 } }, model)
    for (const model of ['claude-sonnet-4-5', 'claude-opus-4-1-20250805', 'claude-3-7-sonnet-latest'])
      t.match(
        sentTo(model, body),
        {
          thinking: { type: 'enabled', budget_tokens: 2048 },
          dropped: ['thinking (a budget: this model takes nothing else)'],
        },
        model,
      )
  })

  t.test('reasoning that the client turns off, where the model does not reason unasked', async (t) => {
    const claude = [...EARLIER, ...OF_ONE_SETTING].filter((model) => model.includes('claude'))
    for (const model of [...claude, 'claude-opus-4-7', 'claude-opus-4-8'])
      t.match(
        sentTo(model, { reasoning_effort: 'none' }),
        { thinking: undefined, output_config: undefined, dropped: { length: 0 } },
        model,
      )
  })

  t.test('reasoning that the client turns off, where the model reasons by default', async (t) => {
    const off = [
      { reasoning_effort: 'none' },
      { reasoning: { enabled: false } },
      { thinking: { type: 'disabled' } },
      { thinking: { type: 'between_tools' } },
      { enable_thinking: false },
    ]
    const types = {
      'claude-opus-5': 'disabled',
      'claude-sonnet-5': 'disabled',
      'anthropic.claude-sonnet-5-v1:0': 'disabled',
      'claude-haiku-5-5': 'disabled',
      'claude-sonnet-5-5': 'between_tools',
      // Of other vendors' models nothing is known.
      'deepseek-chat': 'disabled',
    }
    for (const [model, type] of Object.entries(types))
      for (const body of off)
        t.match(sentTo(model, body), { thinking: { type }, dropped: { length: 0 } }, model)
  })

  t.test('reasoning that is turned off leaves the other settings as they are', async (t) => {
    const settings = { temperature: 0.3, top_p: 0.5, top_k: 4 }
    t.match(sentTo('deepseek-chat', { ...settings, reasoning_effort: 'none' }), {
      ...settings,
      thinking: { type: 'disabled' },
      dropped: { length: 0 },
    })
  })

  t.test('reasoning turned off, where the model always reasons: the least, and named', async (t) => {
    for (const model of ['claude-opus-5-5', 'claude-fable-5', 'claude-mythos-5-1', 'claude-mythos-preview'])
      t.match(
        sentTo(model, { reasoning_effort: 'none' }),
        {
          thinking: undefined,
          output_config: { effort: 'low' },
          dropped: ['reasoning_effort (this model always reasons: it is asked for the least)'],
        },
        model,
      )
  })

  t.test('reasoning by effort needs no signed thinking in the turn to go on with', async (t) => {
    const messages = [HI, { role: 'assistant', tool_calls: [call('a', 'f', '')] }, tool('a', 'A')]
    for (const model of OF_NO_SETTING)
      t.match(sentTo(model, { messages, reasoning_effort: 'low' }), {
        thinking: { type: 'adaptive' },
        dropped: { length: 0 },
      })
  })

  t.test('a tool that the client forces, where no tool can be forced', async (t) => {
    const choices = [
      'required',
      lookUp,
      { type: 'allowed_tools', allowed_tools: { mode: 'required', tools: [lookUp] } },
    ]
    const named = ['tool_choice (this model cannot be made to call a tool)']
    for (const tool_choice of choices) {
      const body = { tools: [lookUp], tool_choice, reasoning_effort: 'low' }
      for (const model of ['claude-opus-5-5', 'claude-sonnet-5-5', 'claude-fable-5-1', 'claude-mythos-5-2'])
        t.match(sentTo(model, body), {
          tool_choice: { type: 'auto' },
          thinking: { type: 'adaptive' },
          dropped: named,
        })
      for (const model of ['claude-opus-5', 'claude-sonnet-5', 'claude-fable-5', 'claude-haiku-5-5'])
        t.match(sentTo(model, body).tool_choice, { type: /^(any|tool)$/ }, model)
    }
    const single = { tools: [lookUp], tool_choice: 'required', parallel_tool_calls: false }
    t.strictSame(sentTo('claude-opus-5-5', single).tool_choice, {
      type: 'auto',
      disable_parallel_tool_use: true,
    })
  })
})

t.test('strict tools are held to their schema', async (t) => {
  // `strict` of a function reaches models that can be held to its schema. See docs/translation.md, "The request".
  const OBJECT = { type: 'object', additionalProperties: false }
  const parametersOf = (properties: object, more: object = {}) => ({
    ...OBJECT,
    properties,
    required: Object.keys(properties),
    ...more,
  })
  const strict = (parameters: object, name = 'f') => ({
    type: 'function',
    function: { name, parameters, strict: true },
  })
  const times = <Item>(count: number, item: (index: number) => Item): Item[] =>
    Array.from({ length: count }, (_, index) => item(index))
  const named = (count: number, schema: object) =>
    Object.fromEntries(times(count, (index) => [`p${index}`, schema]))

  const LEFT_OUT = 'strict (not for each tool: this model holds calls to fewer and simpler schemas)'
  const strictOf = (tools: readonly object[], upstreamModel = 'claude-opus-4-6') => {
    const wire = sent({ tools }, {}, { upstreamModel })
    return {
      strict: wire.tools.map((tool: { strict?: boolean }) => tool.strict === true),
      schemas: wire.tools.map((tool: { input_schema: object }) => tool.input_schema),
      dropped: wire.dropped,
    }
  }

  t.test('strict: true, with the schema untouched', async (t) => {
    const schemas = [
      parametersOf({ city: { type: 'string', enum: ['Köln'] }, days: { type: ['integer', 'null'] } }),
      parametersOf(
        { at: { $ref: '#/$defs/at' } },
        { $defs: { at: { anyOf: [{ type: 'string' }, OBJECT] } } },
      ),
      OBJECT,
    ]
    const found = strictOf(schemas.map((schema) => strict(schema)))
    t.strictSame(found, { strict: [true, true, true], schemas, dropped: [] })
    t.strictSame(strictOf([lookUp]).strict, [false], 'of functions that ask for it')
  })

  t.test('no strict, and named, for a schema that the vendor refuses in it', async (t) => {
    const tree = { ...parametersOf({ next: { anyOf: [{ $ref: '#/$defs/tree' }, { type: 'null' }] } }) }
    const schemas = [
      parametersOf({ days: { type: 'integer', minimum: 1 } }),
      parametersOf({ open: { type: 'object', properties: {} } }),
      { type: 'object', properties: {} },
      parametersOf({ root: { $ref: '#' } }),
      parametersOf({ tree: { $ref: '#/$defs/tree' } }, { $defs: { tree } }),
    ]
    for (const schema of schemas) {
      const found = strictOf([strict(schema), strict(OBJECT, 'g')])
      t.strictSame(found, { strict: [false, true], schemas: [schema, OBJECT], dropped: [LEFT_OUT] })
    }
  })

  t.test('no strict for tools beyond the limits of one request', async (t) => {
    const count = (flags: readonly boolean[]) => flags.filter(Boolean).length
    const many = strictOf(times(22, (index) => strict(OBJECT, `f${index}`)))
    t.equal(count(many.strict), 20)
    t.strictSame(many.dropped, [LEFT_OUT])
    const maybe = { type: ['string', 'null'] }
    const unions = strictOf([
      strict(parametersOf(named(10, maybe))),
      strict(parametersOf(named(7, maybe)), 'g'),
    ])
    t.strictSame(unions.strict, [true, false], '16 parameters of several types')
    const optional = parametersOf(named(13, { type: 'string' }), { required: [] })
    t.strictSame(strictOf([strict(optional), strict(optional, 'g'), strict(OBJECT, 'h')]).strict, [
      true,
      false,
      true,
    ])
  })

  t.test('no strict, and named, for models without it', async (t) => {
    const found = strictOf([strict(OBJECT)], 'claude-opus-4-1')
    t.match(found, { strict: [false], dropped: ['strict'] })
  })
})

t.test('turn carried to the next', async (t) => {
  // A turn without its thinking is 400 on the next one. What the vendor signed comes back whole, whether a client
  // keeps the whole body, joins the deltas itself, or echoes what an SDK put together.
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
})
