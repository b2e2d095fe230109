/** Each row of the table has its test. See docs/translation.md, "The request". */
import t from 'tap'
import { chatCall } from '../messages/streams.ts'
import {
  assistant,
  call,
  contentsOf,
  functionCall,
  functionResponse,
  HI,
  model,
  PNG,
  refused,
  sent,
  text,
  tool,
  user,
} from './requests.ts'
import { TO_GENERATE_CONTENT } from './streams.ts'

t.test('nothing but what was asked is sent: model and stream stand in the path', async (t) => {
  t.strictSame(sent({ model: 'x', stream: true, stream_options: {}, metadata: { a: '1' }, unknown: true }), {
    contents: [user({ text: 'Hi' })],
    dropped: ['metadata', 'unknown'],
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
  for (const other of ['[1]', '18', 'null', '"x"', '{"t":'])
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
  t.strictSame(TO_GENERATE_CONTENT.urlsToFetch(chatCall(body)), [url, 'http://example.org/b'])
  t.strictSame(TO_GENERATE_CONTENT.urlsToFetch(chatCall({ messages: [HI] })), [])
  const fetched = new Map([
    [url, { mediaType: 'image/png', base64: 'QQ==' }],
    ['http://example.org/b', { mediaType: 'image/jpeg', base64: 'Qg==' }],
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

t.test('a file whose server does not tell its type: by its bytes, else by its name', async (t) => {
  const JPEG = '/9j/4AAQ'
  const rows: readonly (readonly [path: string, mediaType: string, base64: string, mimeType: string])[] = [
    ['a', 'image/jpg', JPEG, 'image/jpeg'],
    ['a', '', PNG, 'image/png'],
    ['a.pdf', 'application/octet-stream', JPEG, 'image/jpeg'],
    ['a.pdf?size=1.5', 'binary/octet-stream', 'JVBERi0x', 'application/pdf'],
    ['a.pdf', 'image/png', JPEG, 'image/png'],
  ]
  for (const [path, mediaType, base64, mimeType] of rows) {
    const url = `https://example.org/${path}`
    const body = { messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url } }] }] }
    const { contents } = sent(body, { fetched: new Map([[url, { mediaType, base64 }]]) })
    t.strictSame(contents, [user({ inlineData: { mimeType, data: base64 } })], `${path} ${mediaType}`)
    const strange = { fetched: new Map([[url, { mediaType: '', base64: 'AAAA' }]]) }
    if (path === 'a')
      t.throws(() => sent(body, strange), { code: 'invalid_request', message: /does not tell/ })
  }
})

t.test('audio, video and files: inlineData, by URL as the gateway fetched it', async (t) => {
  const link = 'https://example.org/a.mp4'
  const content = [
    { type: 'input_audio', input_audio: { data: PNG, format: 'wav' } },
    { type: 'video_url', video_url: { url: `data:video/mp4;base64,${PNG}` } },
    { type: 'video_url', video_url: { url: link } },
    { type: 'file', file: { file_data: `data:application/pdf;base64,${PNG}` } },
    { type: 'file', file: { file_data: PNG, filename: 'a.csv' } },
    { type: 'file', file: { file_data: link } },
  ]
  const body = { messages: [{ role: 'user', content }] }
  t.same(TO_GENERATE_CONTENT.urlsToFetch(chatCall(body)), [link])
  const fetched = new Map([[link, { mediaType: 'video/mp4', base64: 'AAAA' }]])
  const inline = (mimeType: string, data = PNG) => ({ inlineData: { mimeType, data } })
  const video = inline('video/mp4', 'AAAA')
  t.strictSame(sent(body, { fetched }).contents, [
    user(
      inline('audio/wav'),
      inline('video/mp4'),
      video,
      inline('application/pdf'),
      inline('text/csv'),
      video,
    ),
  ])
  const strange = { type: 'input_audio', input_audio: { data: PNG, format: 'x' } }
  refused(
    t,
    { messages: [{ role: 'user', content: [strange] }] },
    /^Field 'messages\[0\]\.content\[0\]\.input_audio/,
  )
})

t.test('pictures of an earlier answer go back with the signature of their thought', async (t) => {
  const image = { type: 'image_url', image_url: { url: `data:image/png;base64,${PNG}` } }
  const signed = { ...image, extra_content: { google: { thought_signature: 'c2ln' } } }
  const inlineData = { mimeType: 'image/png', data: PNG }
  const contents = contentsOf(HI, { role: 'assistant', content: 'Here.', images: [image, signed] }, HI)
  t.strictSame(
    contents[1],
    model({ text: 'Here.' }, { inlineData }, { inlineData, thoughtSignature: 'c2ln' }),
  )
})

t.test('legacy function_call and function messages: a call and its response', async (t) => {
  const asked = { role: 'assistant', content: null, function_call: { name: 'a', arguments: '{"x":1}' } }
  const contents = contentsOf(HI, asked, { role: 'function', name: 'a', content: 'done' })
  t.strictSame(contents.slice(1), [
    model(functionCall('a', { x: 1 })),
    user(functionResponse('a', { output: 'done' })),
  ])
  refused(t, { messages: [{ role: 'function', name: 'a', content: 'x' }] }, /^Field 'messages\[0\]\.name'/)
})
