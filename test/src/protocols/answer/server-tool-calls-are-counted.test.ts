/** The calls of server tools that an upstream reports are counted, whole answer or stream, whichever the protocol. */
import t from 'tap'
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
