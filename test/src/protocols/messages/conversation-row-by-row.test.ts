/** Each row about the conversation has its test. See docs/translation.md, "The request". */
import t from 'tap'
import {
  assistant,
  CEILING,
  call,
  HI,
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
import { chatCall, TO_MESSAGES } from './streams.ts'

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

t.test('what cannot be translated is refused with the field’s name', async (t) => {
  refused(t, { messages: [{ role: 'function', name: 'f', content: 'x' }] }, /^Field 'messages\[0\]\.name'/)
  const audio = { type: 'input_audio', input_audio: { data: '', format: 'wav' } }
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
  const { messages, dropped } = sent({ messages: [HI, { role: 'assistant', content: 'Here.', images }, HI] })
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
