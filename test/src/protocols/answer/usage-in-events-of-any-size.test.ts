/**
 * Usage, text, the end of the answer and errors are found in events of any size, in every protocol, passed or
 * translated, in bounded memory, however the bytes come.
 */
import t from 'tap'
import { NO_USAGE } from '../../../../src/core/pricing/usage.ts'
import { ChatCompletionsMeter } from '../../../../src/protocols/chat-completions/meter.ts'
import { chatCompletionsNative } from '../../../../src/protocols/chat-completions/native.ts'
import type { AnswerStream, WholeAnswer } from '../../../../src/protocols/dialect.ts'
import { GenerateContentMeter, readWholeAnswer } from '../../../../src/protocols/generate-content/meter.ts'
import { MessagesMeter, readWholeMessage } from '../../../../src/protocols/messages/meter.ts'
import { ResponsesMeter } from '../../../../src/protocols/responses/meter.ts'
import { readWholeResponse } from '../../../../src/protocols/responses/whole.ts'
import { translatedStream as fromGenerateContent, TO_GENERATE_CONTENT } from '../generate-content/streams.ts'
import { chatCall, translatedStream as fromMessages, TO_MESSAGES } from '../messages/streams.ts'

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
    choices: [{ index: 0, message: { content: `${SAID}${SAID}`, images: [picture] }, finish_reason: 'stop' }],
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
