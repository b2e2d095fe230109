/** The calls of server tools that an upstream reports are counted, whole answer or stream, whichever the protocol. */
import t, { type Test } from 'tap'
import { CHAT_PROTOCOLS, type ChatProtocol } from '../../../../schemas/config/catalog.ts'
import { protocolAdapter } from '../../../../src/protocols/registry.ts'
import { chatWith } from '../request/plain-requests.ts'

const USED = { web_search_requests: 2, web_fetch_requests: 3 }
const ITEMS = [
  ...['web_search_call', 'web_search_call', 'file_search_call', 'code_interpreter_call', 'mcp_call'],
  ...['image_generation_call', 'shell_call_output', 'computer_call', 'function_call', 'shell_call'],
].map((type) => ({ type }))
const CANDIDATE = {
  content: { parts: [{ executableCode: { language: 'PYTHON', code: 'print(1)' } }, { text: 'x' }] },
  finishReason: 'STOP',
  groundingMetadata: { webSearchQueries: ['a', 'b', 'c'] },
  urlContextMetadata: { urlMetadata: [{ retrievedUrl: 'https://a.example', urlRetrievalStatus: 'x' }] },
}

const ANSWERS: Readonly<Record<ChatProtocol, { whole: object; events: readonly object[]; calls: number }>> = {
  'chat-completions': {
    whole: {
      choices: [{ message: { content: 'x' } }],
      usage: { prompt_tokens: 1, completion_tokens: 1, server_tool_use: USED },
    },
    events: [
      { choices: [{ delta: { content: 'x' }, finish_reason: 'stop' }] },
      { choices: [], usage: { prompt_tokens: 1, completion_tokens: 1, server_tool_use: USED } },
    ],
    calls: 5,
  },
  messages: {
    whole: {
      type: 'message',
      content: [{ type: 'text', text: 'x' }],
      usage: { input_tokens: 1, output_tokens: 1, server_tool_use: USED },
    },
    events: [
      { type: 'message_start', message: { usage: { input_tokens: 1, output_tokens: 1 } } },
      { type: 'message_delta', usage: { output_tokens: 1, server_tool_use: USED } },
      { type: 'message_stop' },
    ],
    calls: 5,
  },
  'generate-content': {
    whole: { candidates: [CANDIDATE], usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 1 } },
    events: [
      { candidates: [{ content: { parts: [{ executableCode: { language: 'PYTHON', code: '1' } }] } }] },
      { candidates: [CANDIDATE], usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 1 } },
    ],
    // Two pieces of code in the stream, of which the whole answer has the last.
    calls: 5,
  },
  responses: {
    whole: {
      object: 'response',
      status: 'completed',
      output: ITEMS,
      usage: { input_tokens: 1, output_tokens: 1 },
    },
    events: [
      ...ITEMS.map((item) => ({ type: 'response.output_item.done', item })),
      { type: 'response.completed', response: { usage: { input_tokens: 1, output_tokens: 1 } } },
    ],
    calls: 7,
  },
}

for (const protocol of CHAT_PROTOCOLS)
  t.test(protocol, async (t) => {
    const { whole, events, calls } = ANSWERS[protocol]
    const adapter = protocolAdapter(protocol, protocol)
    const call = chatWith(protocol, { stream: true })
    const { usage } = adapter.readWhole(call, Buffer.from(JSON.stringify(whole))).metered
    t.equal(usage?.serverToolCalls, calls, 'whole')
    const stream = adapter.openStream(call)
    const framed =
      protocol === 'generate-content'
        ? JSON.stringify(events)
        : events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('')
    stream.push(Buffer.from(framed))
    stream.end()
    t.equal(stream.usage?.serverToolCalls, protocol === 'generate-content' ? calls + 1 : calls, 'streamed')
  })

t.test('translated answers count alike', async (t) => {
  const call = chatWith('chat-completions', { stream: true })
  for (const upstream of ['messages', 'generate-content'] as const) {
    const { whole, calls } = ANSWERS[upstream]
    const { usage } = protocolAdapter('chat-completions', upstream).readWhole(
      call,
      Buffer.from(JSON.stringify(whole)),
    ).metered
    t.equal(usage?.serverToolCalls, calls, upstream)
  }
})

const LONG = 'x'.repeat(600_000)

/** Reads the items of a responses answer whole, streamed, and in events too long to be kept. */
function readItems(t: Test, items: readonly object[], usage: object, provider?: string) {
  const adapter = protocolAdapter('responses', 'responses')
  const call = chatWith('responses', { stream: true })
  const body = { object: 'response', status: 'completed', output: items, usage }
  const whole = adapter.readWhole(call, Buffer.from(JSON.stringify(body)), provider).metered.usage
  for (const padding of ['', LONG]) {
    const events = [
      ...items.map((item) => ({ padding, type: 'response.output_item.done', item })),
      { padding, type: 'response.completed', response: { usage } },
    ]
    const stream = adapter.openStream(call, provider)
    for (const event of events) stream.push(Buffer.from(`data: ${JSON.stringify(event)}\n\n`))
    t.same(stream.usage, whole, `a stream agrees, with ${padding.length} more characters in each event`)
  }
  return whole
}
const TOKENS = { input_tokens: 1, output_tokens: 1 }

t.test('a search that opens or searches a page that it has found is no other search', async (t) => {
  const search = (action?: unknown) => ({ id: 'ws_1', type: 'web_search_call', action })
  const free = ['open_page', 'find_in_page', 'find'].map((type) => search({ type, url: 'https://a.example' }))
  const searches = [search({ query: 'q', type: 'search' }), search(), search(null)]
  const items = [...searches, ...free, { type: 'file_search_call', action: { type: 'find' } }]
  t.match(readItems(t, items, TOKENS), {
    serverToolCalls: 4,
    extra: { tools: { web_search: 3, file_search: 1 } },
  })
})

t.test('xai names searches of posts in items of two types, or counts all calls in its report', async (t) => {
  const items = [
    { type: 'x_search_call', name: 'x_semantic_search', id: 'ctc_1' },
    { type: 'custom_tool_call', name: 'x_keyword_search', id: 'ctc_2', call_id: 'xs_call_1' },
    { type: 'custom_tool_call', name: 'mine', id: 'ctc_3' },
    { type: 'web_search_call', action: { type: 'open_page' } },
  ]
  t.match(readItems(t, items, TOKENS, 'xai'), { serverToolCalls: 2, extra: { tools: { web_search: 2 } } })
  t.match(
    readItems(t, items, TOKENS),
    { serverToolCalls: 1 },
    'elsewhere the client may have a tool so named',
  )
  const details = { web_search_calls: 1, x_search_calls: 3, code_interpreter_calls: 2, x_posts_fetched: 90 }
  const reported = { ...TOKENS, server_side_tool_usage_details: details }
  t.match(readItems(t, items, reported, 'xai'), {
    serverToolCalls: 6,
    extra: { tools: { web_search: 4, code_interpreter: 2 } },
  })
  t.match(readItems(t, items, reported, 'openai'), { serverToolCalls: 1 })
  const none = { ...TOKENS, server_side_tool_usage_details: { web_search_calls: 0, x_search_calls: 0 } }
  t.match(readItems(t, items, none, 'xai'), { serverToolCalls: 0 }, 'a zero is a report')
  const chat = protocolAdapter('chat-completions', 'chat-completions')
  const usage = { prompt_tokens: 1, completion_tokens: 1, server_side_tool_usage_details: details }
  const body = Buffer.from(JSON.stringify({ choices: [{ message: { content: 'x' } }], usage }))
  const call = chatWith('chat-completions', {})
  t.match(chat.readWhole(call, body, 'xai').metered.usage, { serverToolCalls: 6 })
  const stream = chat.openStream(call, 'xai')
  stream.push(Buffer.from(`data: ${JSON.stringify({ padding: LONG, choices: [], usage })}\n\n`))
  t.match(stream.usage, { serverToolCalls: 6 }, 'in a long event')
})

/** Reads a grounded answer native and translated, whole and streamed, in both framings; each chunk repeats the grounding. */
function readGrounded(t: Test, modelVersion: string | undefined, grounding: readonly object[]) {
  const candidates = grounding.map((groundingMetadata, index) => ({
    ...{ index, content: { parts: [{ text: 'x' }] }, finishReason: 'STOP', groundingMetadata },
  }))
  const usageMetadata = { promptTokenCount: 1, candidatesTokenCount: 1 }
  const answer = { candidates, usageMetadata, modelVersion }
  const body = Buffer.from(JSON.stringify(answer))
  const native = protocolAdapter('generate-content', 'generate-content')
  const call = chatWith('generate-content', {})
  const { usage } = native.readWhole(call, body).metered
  const array = native.openStream(call)
  array.push(Buffer.from(JSON.stringify([answer, answer])))
  t.same(array.usage, usage, 'in an array')
  const translation = protocolAdapter('chat-completions', 'generate-content')
  const asked = chatWith('chat-completions', { stream: true })
  t.match(translation.readWhole(asked, body).metered.usage, usage ?? {}, 'translated')
  const stream = translation.openStream(asked)
  stream.push(Buffer.from(`data: ${body}\n\ndata: ${body}\n\n`))
  t.match(stream.usage, usage ?? {}, 'translated stream')
  return usage
}

t.test('before gemini 3 a grounded prompt is one search, from then on each query is', async (t) => {
  const queries = { webSearchQueries: ['a', '', 'b', 'c'] }
  const rows = [
    ...['gemini-2.5-flash', 'models/gemini-2.0-flash-001', 'gemini-1.5-pro-002'].map(
      (it) => [it, 1] as const,
    ),
    ...['gemini-3-pro-preview', 'gemini-3.1-flash', 'gemini-flash-latest', undefined].map(
      (it) => [it, 3] as const,
    ),
  ]
  for (const [model, searches] of rows)
    t.match(readGrounded(t, model, [queries]), {
      serverToolCalls: searches,
      extra: { tools: { web_search: searches } },
    })
  t.match(readGrounded(t, 'gemini-2.5-flash', [queries, queries]), { serverToolCalls: 1 })
  for (const none of [{ webSearchQueries: [''] }, { webSearchQueries: [] }, {}])
    t.match(readGrounded(t, 'gemini-2.5-flash', [none]), { serverToolCalls: 0 })
})

t.test('an answer that cites a place of maps is one call of maps', async (t) => {
  const place = { maps: { uri: 'https://maps.example/1', title: 'A', placeId: 'places/1' } }
  const web = { web: { uri: 'https://a.example' } }
  for (const model of ['gemini-2.5-flash', 'gemini-3-pro'])
    t.match(
      readGrounded(t, model, [{ groundingChunks: [web, place, place] }, { groundingChunks: [place] }]),
      {
        serverToolCalls: 1,
        extra: { tools: { maps: 1 } },
      },
    )
  const both = { webSearchQueries: ['a'], groundingChunks: [place] }
  t.match(readGrounded(t, 'gemini-3-pro', [both]), { extra: { tools: { web_search: 1, maps: 1 } } })
  for (const none of [{ groundingChunks: [web, { maps: null }] }, { groundingChunks: [] }])
    t.match(readGrounded(t, 'gemini-3-pro', [none]), { serverToolCalls: 0 })
})
