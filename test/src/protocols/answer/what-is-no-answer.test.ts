/** A 200 that is no answer is known for none, whole and streamed, in every pair of protocols. */
import t from 'tap'
import { readChatCall } from '../../../../src/protocols/chat-completions/dialect.ts'
import type { ProtocolAdapter } from '../../../../src/protocols/dialect.ts'
import { protocolAdapter } from '../../../../src/protocols/registry.ts'

const json = (value: unknown) => JSON.stringify(value)
const event = (value: unknown, name = '') => `${name && `event: ${name}\n`}data: ${json(value)}\n\n`

interface Upstream {
  readonly whole: object
  /** Without usage, and without content. */
  readonly silent: object
  /** What a stream begins with. */
  readonly opening: string
  readonly word: string
  readonly usage: string
  readonly ending: string
  readonly error: object
}

const choice = (delta: object, finish_reason: string | null = null) =>
  event({ choices: [{ index: 0, delta, finish_reason }] })
const candidate = (parts: readonly object[], more: object = {}) =>
  event({ candidates: [{ content: { role: 'model', parts }, ...more }] })

const UPSTREAMS = {
  'chat-completions': {
    whole: { choices: [{ message: { role: 'assistant', content: 'Hi' } }], usage: null },
    silent: { choices: [{ message: { role: 'assistant', content: '' }, finish_reason: 'stop' }] },
    opening: choice({ role: 'assistant', content: '' }),
    word: choice({ content: 'Hi' }),
    usage: event({ choices: [], usage: { prompt_tokens: 3, completion_tokens: 0 } }),
    ending: `${choice({}, 'stop')}data: [DONE]\n\n`,
    error: { error: { message: 'It broke.' } },
  },
  messages: {
    whole: { type: 'message', content: [{ type: 'text', text: 'Hi' }] },
    silent: { type: 'message', content: [{ type: 'text', text: '' }], stop_reason: 'end_turn' },
    opening:
      event({ type: 'message_start', message: { usage: { input_tokens: 3, output_tokens: 1 } } }) +
      event({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } }),
    word: event({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Hi' } }),
    usage: event({ type: 'message_delta', delta: {}, usage: { output_tokens: 0 } }),
    ending: event({ type: 'message_stop' }),
    error: { type: 'error', error: { message: 'It broke.' } },
  },
  'generate-content': {
    whole: { candidates: [{ content: { parts: [{ text: 'Hi' }] }, finishReason: 'STOP' }] },
    silent: { candidates: [{ content: { parts: [{ text: '' }] }, finishReason: 'STOP' }] },
    opening: candidate([{ text: '' }]),
    word: candidate([{ text: 'Hi' }]),
    usage: event({ usageMetadata: { promptTokenCount: 3, candidatesTokenCount: 0, totalTokenCount: 3 } }),
    ending: candidate([], { finishReason: 'STOP' }),
    error: { error: { code: 500, message: 'It broke.' } },
  },
  responses: {
    whole: { output: [{ type: 'message', content: [{ type: 'output_text', text: 'Hi' }] }] },
    silent: { status: 'completed', output: [{ type: 'message', content: [] }] },
    opening: event({ type: 'response.created', response: { usage: null, error: null } }),
    word: event({ type: 'response.output_text.delta', delta: 'Hi' }),
    usage: event({ type: 'response.completed', response: { usage: { input_tokens: 3, output_tokens: 0 } } }),
    ending: event({ type: 'response.completed', response: {} }),
    error: { type: 'error', error: { message: 'It broke.' } },
  },
} as const satisfies Record<string, Upstream>

const CALLS = {
  'chat-completions': readChatCall(
    Buffer.from(
      '{"model":"m","messages":[{"role":"user","content":"hi"}],"stream_options":{"include_usage":true}}',
    ),
  ),
  messages: {},
  'generate-content': { source: { framing: 'sse' } },
  responses: {},
}

const PAIRS = [
  ['chat-completions', 'chat-completions'],
  ['messages', 'messages'],
  ['generate-content', 'generate-content'],
  ['responses', 'responses'],
  ['chat-completions', 'messages'],
  ['chat-completions', 'generate-content'],
] as const

for (const [client, upstream] of PAIRS) {
  const adapter: ProtocolAdapter = protocolAdapter(client, upstream)
  const said = UPSTREAMS[upstream]
  const call = CALLS[client] as never

  t.test(`${client} from ${upstream}, whole`, async (t) => {
    const isAnswer = (body: string) => adapter.readWhole(call, Buffer.from(body)).isAnswer
    const whole = json(said.whole)
    const none = {
      HTML: '<html><body>Busy</body></html>',
      empty: '',
      blank: ' \n',
      'no fields': '{}',
      'no object': '[]',
      null: 'null',
      'no content and no usage': json(said.silent),
      truncated: whole.slice(0, -1),
      'two of them': whole + whole,
      error: json(said.error),
      'an error of another protocol': json({ error: 'It broke.' }),
      'an error beside content': json({ ...said.whole, error: { message: 'It broke.' } }),
      'a code and a text': json({ code: 'Throttling', message: 'It broke.' }),
      'a code of zhipu': json({ code: 500, msg: 'It broke.', success: false }),
      'a failed outcome beside content': json({ ...said.whole, base_resp: { status_code: 1004 } }),
      'a failed outcome': json({ choices: null, base_resp: { status_code: 1004, status_msg: 'no' } }),
    }
    for (const [name, body] of Object.entries(none)) t.notOk(isAnswer(body), name)
    t.ok(isAnswer(whole), 'content without usage')
    t.ok(isAnswer(` \n${whole}\n`))
    t.ok(isAnswer(json({ ...said.whole, error: null, base_resp: { status_code: 0 } })))
  })

  t.test(`${client} from ${upstream}, streamed`, async (t) => {
    const read = (text: string, sizes = text.length) => {
      const stream = adapter.openStream(call)
      for (let at = 0; at < text.length; at += sizes) stream.push(Buffer.from(text.slice(at, at + sizes)))
      stream.end()
      const error = stream.laterError ?? stream.firstError
      return {
        isAnswer: stream.isAnswer,
        isLater: stream.laterError !== null,
        error: error && /It broke\./.test(String(error)),
      }
    }
    const { opening, word, usage, ending } = said
    const error = event(said.error)
    const none = { isAnswer: false, isLater: false, error: null }
    const answer = { ...none, isAnswer: true }
    const errsFirst = { ...none, error: true }
    const errsLater = { isAnswer: true, isLater: true, error: true }
    const rows: Readonly<Record<string, readonly [string, ReturnType<typeof read>]>> = {
      empty: ['', none],
      'comments alone': [': waiting\n\n: waiting\n\n', none],
      'an opening and an end': [opening + ending, none],
      'an opening alone': [opening, none],
      'content without usage': [opening + word + ending, answer],
      'usage without content': [opening + usage + ending, answer],
      'an error at once': [error, errsFirst],
      'an error behind the opening': [opening + error, errsFirst],
      'an error behind content': [opening + word + error, errsLater],
      'an error before the end mark': [opening + word + error + ending, errsLater],
    }
    for (const [name, [text, expected]] of Object.entries(rows))
      for (const size of [undefined, 7, 1])
        t.same(read(text, size), expected, `${name}, ${size ?? 'at once'}`)
    t.match(read('<html>\n\n<p>\n\n'), { isAnswer: false })
  })
}

t.test('what is no text is content all the same', async (t) => {
  const native = (protocol: keyof typeof UPSTREAMS) => protocolAdapter(protocol, protocol)
  const whole: readonly [keyof typeof UPSTREAMS, object][] = [
    [
      'chat-completions',
      { choices: [{ message: { tool_calls: [{ function: { name: 'f', arguments: '' } }] } }] },
    ],
    ['chat-completions', { choices: [{ message: { content: '', audio: { id: 'a', data: 'AAAA' } } }] }],
    ['chat-completions', { choices: [{ message: { content: null }, finish_reason: 'content_filter' }] }],
    ['messages', { content: [{ type: 'tool_use', id: 't', name: 'f', input: {} }] }],
    ['messages', { content: [{ type: 'redacted_thinking', data: 'x' }] }],
    ['generate-content', { candidates: [{ content: { parts: [{ inlineData: { data: 'AAAA' } }] } }] }],
    ['generate-content', { promptFeedback: { blockReason: 'SAFETY' } }],
    ['responses', { output: [{ type: 'image_generation_call', result: 'AAAA' }] }],
  ]
  for (const [protocol, body] of whole)
    t.ok(native(protocol).readWhole({} as never, Buffer.from(json(body))).isAnswer, json(body))
  const streams: readonly [keyof typeof UPSTREAMS, string][] = [
    ['chat-completions', choice({ tool_calls: [{ index: 0, function: { name: 'f', arguments: '' } }] })],
    ['chat-completions', choice({ audio: { id: 'a' } })],
    ['chat-completions', choice({}, 'content_filter')],
    ['messages', event({ type: 'content_block_start', content_block: { type: 'tool_use', name: 'f' } })],
    ['generate-content', candidate([{ functionCall: { name: 'f' } }])],
    ['generate-content', candidate([{ inlineData: { mimeType: 'image/png', data: 'AAAA' } }])],
    ['generate-content', event({ promptFeedback: { blockReason: 'SAFETY' } })],
    ['responses', event({ type: 'response.output_item.added', item: { type: 'reasoning' } })],
  ]
  for (const [protocol, text] of streams) {
    const stream = native(protocol).openStream(CALLS[protocol] as never)
    stream.push(Buffer.from(text))
    t.ok(stream.isAnswer, text)
  }
})

t.test('an error that has no object of its own is one in a chunk as well', async (t) => {
  for (const [value, isError] of [
    [{ code: 'Throttling', message: 'It broke.' }, true],
    [{ code: 500, msg: 'It broke.' }, true],
    [{ base_resp: { status_code: 1004, status_msg: 'no' }, choices: null }, true],
    [{ code: 0, message: 'fine' }, false],
    [{ code: '', message: '' }, false],
    [{ choices: [], base_resp: { status_code: 0, status_msg: 'success' } }, false],
    [{ code: 200, message: 'fine', choices: [{ delta: { content: 'x' } }] }, false],
  ] as const) {
    const stream = protocolAdapter('chat-completions', 'chat-completions').openStream(
      CALLS['chat-completions'] as never,
    )
    stream.push(Buffer.from(event(value)))
    t.equal(stream.firstError !== null, isError, json(value))
  }
})
