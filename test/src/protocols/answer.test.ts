/** Answers of every protocol: usage, ends, errors, server tools. */
import t, { type Test } from 'tap'
import { CHAT_PROTOCOLS, type ChatProtocol } from '../../../schemas/config/catalog.ts'
import { FAILURES, Failure, type FailureCode, nameUpstreamStatus } from '../../../schemas/failure.ts'
import { NO_USAGE } from '../../../src/core/pricing/usage.ts'
import { chatCompletionsNative, readChatCall } from '../../../src/protocols/chat-completions/dialect.ts'
import { ChatCompletionsMeter } from '../../../src/protocols/chat-completions/meter.ts'
import type { AnswerStream, ProtocolAdapter, WholeAnswer } from '../../../src/protocols/dialect.ts'
import { errorBody, findErrorShape, upstreamErrorBody } from '../../../src/protocols/error-shape.ts'
import { GenerateContentMeter, readWholeAnswer } from '../../../src/protocols/generate-content/meter.ts'
import { MessagesMeter, readWholeMessage } from '../../../src/protocols/messages/meter.ts'
import { protocolAdapter, READERS } from '../../../src/protocols/registry.ts'
import { ResponsesMeter } from '../../../src/protocols/responses/meter.ts'
import { readWholeResponse } from '../../../src/protocols/responses/whole.ts'
import { translatedStream as fromGenerateContent, TO_GENERATE_CONTENT } from './generate-content/streams.ts'
import { chatCall, translatedStream as fromMessages, TO_MESSAGES } from './messages/streams.ts'
import { chatWith } from './request/plain-requests.ts'

t.test('usage in events of any size', async (t) => {
  // Usage, text, the end of the answer and errors are found in events of any size, in every protocol, passed or
  // translated, in bounded memory, however the bytes come.
  const PIECE_BYTES = 65_536
  const SMALL_BYTES = 10
  const LARGE_BYTES = 400_000
  const HUGE_BYTES = 4_000_000
  const SAID = 'said'

  type Picture = string
  interface Way {
    readonly open: () => AnswerStream
    readonly readWhole: (body: Buffer) => WholeAnswer
    /** Events of which the last has the usage, and a picture on either side of it. */
    readonly events: (picture: Picture) => readonly object[]
    readonly whole: (picture: Picture) => object
    readonly error: (picture: Picture) => object
    readonly framing?: 'array'
  }

  const chatUsage = {
    prompt_tokens: 30,
    completion_tokens: 20,
    prompt_tokens_details: { cached_tokens: 10 },
    completion_tokens_details: { reasoning_tokens: 5 },
    server_tool_use: { web_search_requests: 2 },
  }
  const chatCompletions = {
    readWhole: (body: Buffer) => chatCompletionsNative.readWhole(chatCall(), body),
    events: (picture: Picture) => [
      { choices: [{ index: 0, delta: { content: SAID } }] },
      {
        x: [picture],
        choices: [
          {
            index: 0,
            delta: { content: SAID, images: [{ image_url: { url: picture } }] },
            finish_reason: 'stop',
          },
        ],
        usage: chatUsage,
        y: { z: picture, usage: { prompt_tokens: 7 } },
      },
    ],
    whole: (picture: Picture) => ({
      x: [picture],
      choices: [
        { index: 0, message: { content: `${SAID}${SAID}`, images: [picture] }, finish_reason: 'stop' },
      ],
      usage: chatUsage,
      y: { z: picture },
    }),
    error: (picture: Picture) => ({ x: picture, error: { message: 'no' } }),
  }

  const messagesUsage = {
    input_tokens: 20,
    cache_read_input_tokens: 10,
    output_tokens: 20,
    output_tokens_details: { thinking_tokens: 5 },
    server_tool_use: { web_search_requests: 1, web_fetch_requests: 1 },
  }
  const messages = {
    events: (picture: Picture) => [
      { type: 'message_start', message: { id: 'msg', content: [], usage: { input_tokens: 1 } } },
      { type: 'content_block_start', index: 0, content_block: { type: 'text', text: SAID, x: picture } },
      { x: [picture], type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: SAID } },
      {
        x: [picture],
        type: 'message_delta',
        delta: { stop_reason: 'end_turn' },
        usage: messagesUsage,
        y: { z: picture },
      },
      { type: 'message_stop', x: picture },
    ],
    whole: (picture: Picture) => ({
      x: [picture],
      id: 'msg',
      type: 'message',
      content: [{ type: 'text', text: `${SAID}${SAID}`, x: picture }],
      stop_reason: 'end_turn',
      usage: messagesUsage,
      y: { z: picture },
    }),
    error: (picture: Picture) => ({ x: picture, type: 'error', error: { message: 'no' } }),
  }

  const responsesUsage = {
    input_tokens: 30,
    output_tokens: 20,
    input_tokens_details: { cached_tokens: 10 },
    output_tokens_details: { reasoning_tokens: 5 },
  }
  const call = (picture: Picture) => ({ type: 'image_generation_call', result: picture })
  const text = (said: string) => ({ type: 'message', content: [{ type: 'output_text', text: said }] })
  const responses = {
    events: (picture: Picture) => [
      { type: 'response.output_text.delta', delta: SAID },
      { x: picture, type: 'response.output_text.delta', delta: SAID },
      { type: 'response.output_item.done', item: call(picture) },
      { type: 'response.output_item.done', item: call(picture) },
      {
        type: 'response.completed',
        response: {
          // More than fields and short strings of any bound could hold.
          tools: Object.fromEntries(Array.from({ length: picture.length / 10 }, (_, i) => [`${i}`, 'x'])),
          output: [call(picture)],
          usage: responsesUsage,
          y: picture,
        },
      },
    ],
    whole: (picture: Picture) => ({
      output: [call(picture), call(picture), text(`${SAID}${SAID}`)],
      usage: responsesUsage,
      y: picture,
    }),
    error: (picture: Picture) => ({ x: picture, type: 'error', error: { message: 'no' } }),
  }

  const usageMetadata = {
    promptTokenCount: 30,
    cachedContentTokenCount: 10,
    candidatesTokenCount: 15,
    thoughtsTokenCount: 5,
    totalTokenCount: 50,
  }
  const inline = (picture: Picture) => ({ inlineData: { mimeType: 'image/png', data: picture } })
  const grounding = { webSearchQueries: ['a', 'b'] }
  const generateContent = {
    events: (picture: Picture) => [
      { candidates: [{ content: { parts: [{ text: SAID }] } }] },
      {
        x: [picture],
        candidates: [
          {
            content: { parts: [inline(picture), { text: SAID }] },
            finishReason: 'STOP',
            groundingMetadata: grounding,
          },
        ],
        usageMetadata,
        y: { z: picture },
      },
    ],
    whole: (picture: Picture) => ({
      x: [picture],
      candidates: [
        {
          content: { parts: [inline(picture), { text: `${SAID}${SAID}` }] },
          finishReason: 'STOP',
          groundingMetadata: grounding,
        },
      ],
      usageMetadata,
      y: { z: picture },
    }),
    error: (picture: Picture) => ({ x: picture, error: { message: 'no' } }),
  }

  const WAYS: Readonly<Record<string, Way>> = {
    'chat-completions, usage withheld': {
      ...chatCompletions,
      open: () => new ChatCompletionsMeter({ withholdUsage: true }),
    },
    'chat-completions, usage wanted': {
      ...chatCompletions,
      open: () => new ChatCompletionsMeter({ withholdUsage: false }),
    },
    messages: { ...messages, open: () => new MessagesMeter(), readWhole: readWholeMessage },
    'messages, translated': {
      ...messages,
      open: fromMessages,
      readWhole: (body) => TO_MESSAGES.readWhole(chatCall(), body),
    },
    responses: { ...responses, open: () => new ResponsesMeter(), readWhole: readWholeResponse },
    'generate-content, events': {
      ...generateContent,
      open: () => new GenerateContentMeter('sse'),
      readWhole: readWholeAnswer,
    },
    'generate-content, array': {
      ...generateContent,
      open: () => new GenerateContentMeter('array'),
      readWhole: readWholeAnswer,
      framing: 'array',
    },
    'generate-content, translated': {
      ...generateContent,
      open: fromGenerateContent,
      readWhole: (body) => TO_GENERATE_CONTENT.readWhole(chatCall(), body),
    },
  }

  const USAGE = { ...NO_USAGE, prompt: 30, cached: 10, output: 20, reasoning: 5, serverToolCalls: 2 }
  const COUNTED = { usage: USAGE, characters: 2 * SAID.length, isUsageWhole: true }

  const printed = (payloads: readonly object[], framing: Way['framing']): Buffer =>
    Buffer.from(
      framing === 'array'
        ? JSON.stringify(payloads)
        : payloads.map((payload) => `data: ${JSON.stringify(payload)}\n\n`).join(''),
    )

  function pushAll(stream: AnswerStream, bytes: Buffer, pieceBytes: number): Buffer {
    const out: Buffer[] = []
    for (let from = 0; from < bytes.length; from += pieceBytes) {
      const piece = stream.push(bytes.subarray(from, from + pieceBytes))
      if (piece !== null) out.push(Buffer.from(piece))
    }
    const rest = stream.end()
    if (rest !== null) out.push(Buffer.from(rest))
    return Buffer.concat(out)
  }

  for (const [name, way] of Object.entries(WAYS))
    t.test(name, async (t) => {
      for (const size of [SMALL_BYTES, LARGE_BYTES, HUGE_BYTES])
        for (const pieceBytes of [PIECE_BYTES, Number.MAX_SAFE_INTEGER]) {
          const what = `${size} bytes in pieces of ${pieceBytes}`
          const bytes = printed(way.events('A'.repeat(size)), way.framing)
          const stream = way.open()
          const out = pushAll(stream, bytes, pieceBytes)
          t.match(stream, { ...COUNTED, isComplete: true, charactersSinceUsage: 0, firstError: null }, what)
          if (!name.endsWith('translated')) t.ok(out.equals(bytes), `${what}: passed as it came`)
        }
      for (const size of [SMALL_BYTES, LARGE_BYTES]) {
        const picture = 'A'.repeat(size)
        const body = Buffer.from(JSON.stringify(way.whole(picture)))
        t.match(way.readWhole(body).metered, COUNTED, `a whole answer of ${size} bytes`)
        const stream = way.open()
        pushAll(stream, printed([way.error(picture)], way.framing), PIECE_BYTES)
        t.match(
          (stream.firstError ?? stream.laterError)?.toString(),
          /"message":"no"/,
          `an error of ${size} bytes`,
        )
      }
    })

  t.test('every part of the usage of responses that has a price', async (t) => {
    const usage = {
      input_tokens: 30,
      output_tokens: 20,
      input_tokens_details: { cached_tokens: 10, cache_write_tokens: 4, audio_tokens: 3, image_tokens: 2 },
      output_tokens_details: { reasoning_tokens: 5, audio_tokens: 6, image_tokens: 7 },
      // The reasoning is no part of the output.
      total_tokens: 55,
    }
    const usageOf = (picture: Picture) => {
      const stream = new ResponsesMeter()
      const response = { output: [call(picture)], usage }
      pushAll(stream, printed([{ type: 'response.completed', response }], undefined), PIECE_BYTES)
      return stream.usage
    }
    const short = usageOf('A')
    const extra = { inputAudio: 3, inputImage: 2, outputAudio: 6, outputImage: 7 }
    t.match(short, { prompt: 30, cached: 10, cacheWrite: 4, output: 25, reasoning: 5, extra })
    t.strictSame(usageOf('A'.repeat(LARGE_BYTES)), short)
  })
})

t.test('what is no answer', async (t) => {
  // A 200 that is no answer is known for none, whole and streamed, in every pair of protocols.
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
      usage: event({
        type: 'response.completed',
        response: { usage: { input_tokens: 3, output_tokens: 0 } },
      }),
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
})

t.test('server tool calls are counted', async (t) => {
  // The calls of server tools that an upstream reports are counted, whole answer or stream, whichever the protocol.
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

  const ANSWERS: Readonly<Record<ChatProtocol, { whole: object; events: readonly object[]; calls: number }>> =
    {
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
    const free = ['open_page', 'find_in_page', 'find'].map((type) =>
      search({ type, url: 'https://a.example' }),
    )
    const searches = [search({ query: 'q', type: 'search' }), search(), search(null)]
    const items = [...searches, ...free, { type: 'file_search_call', action: { type: 'find' } }]
    t.match(readItems(t, items, TOKENS), {
      serverToolCalls: 4,
      extra: { tools: { web_search: 3, file_search: 1 } },
    })
  })

  t.test(
    'xai names searches of posts in items of two types, or counts all calls in its report',
    async (t) => {
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
      const details = {
        web_search_calls: 1,
        x_search_calls: 3,
        code_interpreter_calls: 2,
        x_posts_fetched: 90,
      }
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
    },
  )

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
})

t.test('error body in the shape of its protocol', async (t) => {
  // One failure, named in the shape of the endpoint called. See docs/errors.md, "Catalog".
  t.test('the shape follows the path', async (t) => {
    t.equal(findErrorShape('/v1/chat/completions'), 'chat-completions')
    t.equal(findErrorShape('/v1/responses'), 'chat-completions')
    t.equal(findErrorShape('/v1/messages'), 'messages')
    t.equal(findErrorShape('/v1/messages/count_tokens'), 'messages')
    t.equal(findErrorShape('/v1/messagesx'), 'chat-completions')
    for (const version of ['v1beta', 'v1alpha', 'v1'])
      for (const method of [':generateContent', '%3AcountTokens', ':embedContent'])
        t.equal(findErrorShape(`/${version}/models/org/m${method}`), 'generate-content', version + method)
    t.equal(findErrorShape('/v1alpha/models'), 'generate-content')
    for (const path of ['/v1/models', '/v1/models/m', '/v1/models/m:7b', '/v1/models/a:b/c'])
      t.equal(findErrorShape(path), 'chat-completions', path)
    t.equal(findErrorShape('/v1/images/generations'), 'chat-completions')
    t.equal(findErrorShape('/anything/else'), 'chat-completions')
  })

  t.test('every failure of the catalog has a body in each shape', async (t) => {
    for (const code of Object.keys(FAILURES) as FailureCode[]) {
      const message = `What "happened"\n${code}`
      const failure = new Failure(code, message, { internal: 'upstream-7.internal' })
      const { status, type, messagesType, generateStatus } = FAILURES[code]
      t.strictSame(JSON.parse(errorBody('chat-completions', failure)), { error: { message, type, code } })
      t.strictSame(JSON.parse(errorBody('messages', failure)), {
        type: 'error',
        error: { type: messagesType, message },
      })
      t.strictSame(JSON.parse(errorBody('generate-content', failure)), {
        error: { code: status, message, status: generateStatus },
      })
    }
  })

  t.test('generate-content says in its body when another try makes sense', async (t) => {
    const after = (seconds: string) => ({ headers: [['retry-after', seconds]] as const })
    const details = [{ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '17s' }]
    const failure = new Failure('rate_limit_exceeded', 'm', after('17'))
    t.strictSame(JSON.parse(errorBody('generate-content', failure)).error.details, details)
    t.notMatch(errorBody('messages', failure) + errorBody('chat-completions', failure), /RetryInfo/)
    const refused = { status: 429, message: 'm', type: 't', code: 'c' }
    const bodyOf = (refusal: Parameters<typeof upstreamErrorBody>[1]) =>
      JSON.parse(upstreamErrorBody('generate-content', refusal)).error.details
    t.strictSame(bodyOf({ ...refused, ...after('17') }), details)
    t.strictSame(bodyOf({ ...refused, ...after('17'), extras: { details: ['its own'] } }), ['its own'])
    t.equal(bodyOf({ ...refused, ...after('Wed, 21 Oct 2026 07:28:00 GMT') }), undefined)
  })

  t.test('details are in the shape of messages alone', async (t) => {
    const details = { error_code: 'thread_unsupported_request' }
    const failure = new Failure('invalid_request', 'm', { details })
    t.strictSame(JSON.parse(errorBody('messages', failure)).error, {
      ...{ type: 'invalid_request_error', message: 'm', details },
    })
    for (const shape of ['chat-completions', 'generate-content'] as const)
      t.notMatch(errorBody(shape, failure), /thread_/)
  })

  t.test('an endpoint may have a status of its own for a failure; its names stay', async (t) => {
    const failure = new Failure('model_not_found', 'm', { status: 404 })
    t.equal(failure.status, 404)
    t.equal(new Failure('model_not_found', 'm').status, 400)
    t.match(JSON.parse(errorBody('chat-completions', failure)), { error: { code: 'model_not_found' } })
    t.match(JSON.parse(errorBody('generate-content', failure)), { error: { code: 404, status: 'NOT_FOUND' } })
  })

  t.test('statuses, codes and names are those of the catalog', async (t) => {
    const rows: ReadonlyArray<readonly [number, FailureCode, string, string, string]> = [
      [400, 'model_not_found', 'invalid_request_error', 'not_found_error', 'NOT_FOUND'],
      [400, 'model_not_allowed', 'invalid_request_error', 'invalid_request_error', 'INVALID_ARGUMENT'],
      [400, 'invalid_request', 'invalid_request_error', 'invalid_request_error', 'INVALID_ARGUMENT'],
      [401, 'invalid_api_key', 'authentication_error', 'authentication_error', 'UNAUTHENTICATED'],
      [402, 'quota_exceeded', 'insufficient_quota', 'billing_error', 'RESOURCE_EXHAUSTED'],
      [403, 'permission_denied', 'permission_error', 'permission_error', 'PERMISSION_DENIED'],
      [429, 'rate_limit_exceeded', 'rate_limit_error', 'rate_limit_error', 'RESOURCE_EXHAUSTED'],
      [500, 'internal_error', 'server_error', 'api_error', 'INTERNAL'],
      [502, 'upstream_unreachable', 'api_error', 'api_error', 'UNAVAILABLE'],
      [503, 'no_channel_available', 'server_error', 'overloaded_error', 'UNAVAILABLE'],
      [504, 'upstream_timeout', 'api_error', 'api_error', 'DEADLINE_EXCEEDED'],
    ]
    for (const [status, code, type, messagesType, generateStatus] of rows)
      t.strictSame(FAILURES[code], { status, type, messagesType, generateStatus }, code)
  })

  t.test("an upstream's own refusal keeps its status, named as the page has it", async (t) => {
    const names: ReadonlyArray<readonly [number, string, string]> = [
      [400, 'invalid_request', 'invalid_request_error'],
      [422, 'invalid_request', 'invalid_request_error'],
      [401, 'invalid_api_key', 'authentication_error'],
      [403, 'permission_denied', 'permission_error'],
      [404, 'not_found', 'invalid_request_error'],
      [429, 'rate_limit_exceeded', 'rate_limit_error'],
      [418, 'upstream_error', 'api_error'],
      [500, 'upstream_error', 'api_error'],
      [402, 'upstream_error', 'api_error'],
      [504, 'upstream_error', 'api_error'],
      [529, 'upstream_error', 'api_error'],
    ]
    /** In the shape of messages, and the status of generate-content. */
    const listed: Readonly<Record<number, readonly [string, string]>> = {
      403: ['permission_error', 'PERMISSION_DENIED'],
      429: ['rate_limit_error', 'RESOURCE_EXHAUSTED'],
      504: ['api_error', 'DEADLINE_EXCEEDED'],
    }
    for (const [status, code, type] of names) {
      t.strictSame(nameUpstreamStatus(status), { code, type })
      const refusal = { status, message: 'm', code, type, headers: [] }
      const [messagesType, generateStatus] = listed[status] ?? ['api_error', 'UNAVAILABLE']
      t.strictSame(JSON.parse(upstreamErrorBody('chat-completions', refusal)), {
        error: { message: 'm', type, code },
      })
      t.strictSame(JSON.parse(upstreamErrorBody('messages', refusal)), {
        type: 'error',
        error: { type: messagesType, message: 'm' },
      })
      t.strictSame(JSON.parse(upstreamErrorBody('generate-content', refusal)), {
        error: { code: status, message: 'm', status: generateStatus },
      })
      const extras = { param: 'tools[0]', details: [{ retryDelay: '7s' }] }
      for (const shape of ['chat-completions', 'messages', 'generate-content'] as const)
        t.match(JSON.parse(upstreamErrorBody(shape, { ...refusal, extras })), { error: extras }, shape)
    }
  })
})

t.test('each choice finishes', async (t) => {
  // A stream of several choices is whole when each of them has finished, or its upstream has ended it.
  const PADDING = 'x'.repeat(300_000)
  const choice = (index: number, finish: string | null, content = 'x') => ({
    choices: [{ index, delta: { content }, finish_reason: finish }],
  })
  const both = { choices: [0, 1].map((index) => choice(index, 'stop').choices[0]) }
  const usage = { prompt_tokens: 1, completion_tokens: 2 }
  const DONE = 'data: [DONE]\n\n'

  const sse = (events: readonly (object | string)[]) =>
    events.map((event) => (typeof event === 'string' ? event : `data: ${JSON.stringify(event)}\n\n`)).join('')

  const CHAT: ReadonlyArray<
    readonly [what: string, n: number, events: (object | string)[], isWhole: boolean]
  > = [
    ['one of one', 1, [choice(0, null), choice(0, 'stop')], true],
    ['one of two', 2, [choice(0, null), choice(1, null), choice(0, 'stop')], false],
    ['one of two, twice', 2, [choice(0, 'stop'), choice(1, null), choice(0, 'stop', '')], false],
    ['one of two, with its usage', 2, [choice(1, null), { ...choice(0, 'stop'), usage }], false],
    ['one of two, with an empty reason of the other', 2, [choice(1, ''), choice(0, 'stop')], false],
    ['both', 2, [choice(0, 'stop'), choice(1, null), choice(1, 'length', '')], true],
    ['both in one event', 2, [both], true],
    ['both in long events', 2, [choice(0, 'stop', PADDING), choice(1, 'stop', PADDING)], true],
    ['one of two in a long event', 2, [choice(1, null), choice(0, 'stop', PADDING)], false],
    ['one, from an upstream that makes no second', 2, [choice(0, 'stop'), DONE], true],
    ['one, and then the usage of the call', 2, [choice(0, 'stop'), { choices: [], usage }], true],
  ]

  t.test('chat-completions', async (t) => {
    for (const [what, n, events, isWhole] of CHAT) {
      const adapter = protocolAdapter('chat-completions', 'chat-completions')
      const stream = adapter.openStream(chatWith('chat-completions', { n, stream: true }))
      stream.push(Buffer.from(sse(events)))
      t.equal(stream.isComplete, isWhole, what)
      const [first] = events
      if (!isWhole && typeof first === 'object')
        t.equal(stream.awaitsUsage, false, `${what}: it still writes`)
    }
  })

  const candidate = (index: number | undefined, finishReason?: string) => ({
    ...{ content: { parts: [{ text: 'x' }] }, finishReason },
    ...(index !== undefined && { index }),
  })
  const answer = (...candidates: object[]) => ({
    candidates,
    usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 1 },
  })
  const GENERATED: ReadonlyArray<readonly [what: string, n: number, events: object[], isWhole: boolean]> = [
    ['one of one', 1, [answer(candidate(undefined)), answer(candidate(undefined, 'STOP'))], true],
    ['one of two', 2, [answer(candidate(0), candidate(1)), answer(candidate(0, 'STOP'))], false],
    ['the other of two', 2, [answer(candidate(undefined), candidate(1, 'STOP'))], false],
    ['both', 2, [answer(candidate(0), candidate(1, 'STOP')), answer(candidate(undefined, 'STOP'))], true],
    ['both at once', 2, [answer(candidate(0, 'STOP'), candidate(1, 'MAX_TOKENS'))], true],
    ['one, from an upstream that makes no second', 2, [answer(candidate(0, 'STOP'))], true],
    ['a prompt that was blocked', 2, [{ promptFeedback: { blockReason: 'SAFETY' } }], true],
  ]

  t.test('generate-content', async (t) => {
    const frames: ReadonlyArray<readonly [ChatProtocol, (events: object[]) => string, query: string]> = [
      ['generate-content', sse, 'alt=sse'],
      ['generate-content', (events) => JSON.stringify(events), ''],
      ['chat-completions', sse, ''],
    ]
    for (const [client, print, query] of frames)
      for (const [what, n, events, isWhole] of GENERATED) {
        const contents = [{ role: 'user', parts: [{ text: 'hi' }] }]
        const body = Buffer.from(JSON.stringify({ contents, generationConfig: { candidateCount: n } }))
        const call =
          client === 'generate-content'
            ? READERS['generate-content-stream'].read({ model: 'm', query, body })
            : chatWith(client, { n, stream: true })
        const stream = protocolAdapter(client, 'generate-content').openStream(call)
        stream.push(Buffer.from(print(events)))
        if (client === 'chat-completions') stream.end()
        t.equal(stream.isComplete, isWhole, `${what}, ${client} ${query}`)
      }
  })
})
