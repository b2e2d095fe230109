/**
 * Whatever a client or an upstream sends: a request is translated or refused as `invalid_request`, an answer is read
 * or ends. What is sent keeps the protocol's rules of turns.
 */
import fc from 'fast-check'
import t from 'tap'
import { chatCompletionsRequest } from '../../../../schemas/chat/chat-completions.ts'
import { Failure } from '../../../../schemas/failure.ts'
import { MessagesMeter } from '../../../../src/protocols/messages/meter.ts'
import { everyRun } from '../../../support/every-run.ts'
import { OPTIONS } from './request.ts'
import { chatCall, MESSAGES_STREAMS, runInPieces, TO_MESSAGES, translatedStream } from './streams.ts'

const SEED = 3
const RUNS = 400

const anyText = fc.oneof(
  fc.constantFrom('', ' ', 'x', '{"a":1}', '[1]', 'data:image/png;base64,AA'),
  fc.string({ maxLength: 8 }),
)
const sometimes = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined, freq: 2 })
const mostly = <T, U>(usual: fc.Arbitrary<T>, odd: fc.Arbitrary<U>) =>
  fc.oneof({ arbitrary: usual, weight: 30 }, { arbitrary: odd, weight: 1 })
const marker = sometimes(fc.constant({ type: 'ephemeral' }))

const textPart = fc.record({ type: fc.constant('text'), text: anyText, cache_control: marker })
const imagePart = fc.record({
  type: fc.constant('image_url'),
  image_url: fc.record({
    url: mostly(fc.constantFrom('data:image/png;base64,AA', 'https://a.example/b'), anyText),
  }),
})
const oddPart = fc.record({
  type: fc.constantFrom('file', 'input_audio', 'thinking', 'text'),
  file: fc.object(),
})
const contentOf = <T>(part: fc.Arbitrary<T>) =>
  fc.oneof(anyText, fc.array(mostly(part, oddPart), { maxLength: 3 }))
const call = fc.record({
  id: fc.constantFrom('a', 'b', 'c.d'),
  type: fc.constant('function'),
  function: fc.record({
    name: fc.constantFrom('f', 'g'),
    arguments: mostly(fc.constantFrom('', ' ', '{}', '{"a":1}', 'null'), anyText),
  }),
})
const block = fc.constantFrom({ type: 'thinking', thinking: 't', signature: 's' }, { type: 'thinking' })
const message = fc.oneof(
  fc.record({
    role: fc.constantFrom('system', 'developer'),
    content: contentOf(textPart),
    cache_control: marker,
  }),
  fc.record({ role: fc.constant('user'), content: contentOf(fc.oneof(textPart, imagePart)) }),
  fc.record(
    {
      role: fc.constant('assistant'),
      content: fc.oneof(contentOf(textPart), fc.constant(null)),
      tool_calls: fc.array(call, { maxLength: 3 }),
      thinking_blocks: fc.array(block, { maxLength: 2 }),
      cache_control: marker,
    },
    { requiredKeys: ['role'] },
  ),
  fc.record({
    role: mostly(fc.constant('tool'), fc.constant('function')),
    content: contentOf(textPart),
    tool_call_id: fc.constantFrom('a', 'b', 'c.d'),
  }),
)
const tool = fc.oneof(
  fc.record({
    type: fc.constant('function'),
    function: fc.record({ name: fc.constantFrom('f', 'g'), parameters: sometimes(fc.object()) }),
  }),
  fc.record({ type: fc.constantFrom('web_search', 'image_generation', 'custom') }),
)
const request = fc.record(
  {
    model: fc.constant('m'),
    messages: fc.array(message, { minLength: 1, maxLength: 8 }),
    tools: fc.array(tool, { maxLength: 3 }),
    tool_choice: mostly(
      fc.constantFrom('auto', 'none', 'required', { type: 'function', function: { name: 'f' } }),
      anyText,
    ),
    parallel_tool_calls: fc.boolean(),
    temperature: fc.double({ min: 0, max: 2, noNaN: true }),
    stop: fc.oneof(anyText, fc.array(anyText)),
    reasoning_effort: mostly(fc.constantFrom('low', 'high', 'none'), anyText),
    user: anyText,
    n: fc.integer({ min: 1, max: 3 }),
    functions: fc.array(fc.record({ name: fc.constantFrom('f', 'g') }), { maxLength: 2 }),
    function_call: mostly(fc.constantFrom('auto', 'none', { name: 'f' }), anyText),
    response_format: fc.record({
      type: mostly(fc.constant('json_schema'), anyText),
      json_schema: fc.record({
        schema: fc.oneof(fc.object(), fc.constant({ type: 'object', properties: {} })),
      }),
    }),
    thinking: fc.record({
      type: mostly(fc.constantFrom('enabled', 'disabled', 'adaptive'), anyText),
      budget_tokens: fc.oneof(fc.integer(), fc.double()),
    }),
    reasoning: mostly(
      fc.record({ effort: fc.constantFrom('low', 'none', '?'), exclude: fc.boolean() }),
      anyText,
    ),
    thinking_budget: fc.oneof(fc.integer({ min: 0, max: 9000 }), anyText),
    top_k: fc.integer(),
    metadata: fc.object(),
  },
  { requiredKeys: ['model', 'messages'] },
)

interface Sent {
  readonly max_tokens: number
  readonly messages: { role: string; content: { type: string; text?: string }[] }[]
  readonly tools?: object[]
  readonly tool_choice?: object
  readonly thinking?: { type: string; budget_tokens: number }
  readonly temperature?: number
  readonly top_k?: number
}

/** What the vendor refuses, and what was sent nevertheless. */
function faults({ max_tokens, messages, tools, tool_choice, thinking, temperature, top_k }: Sent): string[] {
  const blocks = messages.flatMap((turn) => turn.content)
  const thinks = thinking !== undefined && thinking.type !== 'disabled'
  const isLate = ({ content }: Sent['messages'][number], type: string) =>
    content.findLastIndex((block) => block.type === type) >=
    content.filter((block) => block.type === type).length
  return Object.entries({
    'the first message is not a user’s': messages[0]?.role !== 'user',
    'neighbours of one role': messages.some(({ role }, i) => role === messages[i + 1]?.role),
    'an empty message': messages.some((turn) => turn.content.length === 0),
    'a blank text': blocks.some((block) => block.type === 'text' && block.text?.trim() === ''),
    'tool results that do not come first': messages.some((turn) => isLate(turn, 'tool_result')),
    'thinking that does not come first': messages.some((turn) => isLate(turn, 'thinking')),
    'calls in the history, and no tools': blocks.some((block) => block.type === 'tool_use') && !tools,
    'a choice without tools': Boolean(tool_choice) && !tools,
    'a budget out of bounds': Boolean(
      thinking?.type === 'enabled' &&
        !(thinking.budget_tokens >= 1024 && thinking.budget_tokens < max_tokens),
    ),
    'a top_k out of bounds': top_k !== undefined && (top_k < 1 || thinks),
    'a temperature out of bounds': (temperature ?? 0) > 1 || (thinks && temperature !== undefined),
  }).flatMap(([fault, isSo]) => (isSo ? [fault] : []))
}

t.test('a valid chat-completions request is translated, or refused with the field’s name', async (t) => {
  let translated = 0
  everyRun(
    t,
    { seed: SEED, numRuns: RUNS },
    [request, sometimes(fc.integer({ min: 1, max: 9000 }))],
    (body, outputLimit) => {
      fc.pre(chatCompletionsRequest.safeParse(JSON.parse(JSON.stringify(body))).success)
      try {
        const wire = TO_MESSAGES.encodeRequest(chatCall(body, { outputLimit: outputLimit ?? null }), {
          ...OPTIONS,
          upstreamModel: body.n === 2 ? 'claude-3-7-sonnet-latest' : 'opus-9',
        })
        const found = faults(JSON.parse(wire.body.toString()))
        if (found.length > 0) throw new Error(found.join(', '))
        translated++
      } catch (error) {
        if (!(error instanceof Failure)) throw error
        return error.code === 'invalid_request' && /^Field '[^']+' is not valid: ./.test(error.message)
      }
      return true
    },
  )
  t.ok(translated > RUNS / 3, `${translated} were translated`)
})

const EVENTS = [
  'message_start',
  'content_block_start',
  'content_block_delta',
  'content_block_stop',
  'message_delta',
  'message_stop',
]
const event = fc.oneof(
  fc.json({ maxDepth: 3 }),
  fc
    .record(
      {
        type: fc.constantFrom(...EVENTS),
        index: fc.oneof(fc.integer({ min: 0, max: 2 }), fc.jsonValue({ maxDepth: 1 })),
        message: fc.jsonValue({ maxDepth: 2 }),
        content_block: fc.oneof(
          fc.record({ type: fc.constantFrom('tool_use', 'text', 'thinking'), id: fc.jsonValue() }),
          fc.jsonValue(),
        ),
        delta: fc.oneof(
          fc.record({
            type: fc.constantFrom('text_delta', 'input_json_delta', 'signature_delta'),
            text: fc.jsonValue(),
            partial_json: fc.string(),
          }),
          fc.jsonValue(),
        ),
        usage: fc.dictionary(
          fc.constantFrom('input_tokens', 'output_tokens', 'server_tool_use'),
          fc.jsonValue(),
        ),
      },
      { requiredKeys: ['type'] },
    )
    .map((value) => JSON.stringify(value)),
)

t.test('whatever an upstream sends, the answer is read or ends', async (t) => {
  everyRun(t, { seed: SEED, numRuns: RUNS }, [fc.array(event, { maxLength: 12 })], (events) => {
    const stream = Buffer.from(events.map((data) => `data: ${data}\n\n`).join(''))
    const { output } = runInPieces(translatedStream(), stream, [])
    for (const line of output.toString().split('\n\n'))
      if (line !== '' && line !== 'data: [DONE]') JSON.parse(line.replace('data: ', ''))
    return runInPieces(new MessagesMeter(), stream, []).output.equals(stream)
  })
})

t.test('a stream with damaged bytes is read or ends, and passes as it is', async (t) => {
  const streams = fc.constantFrom(...MESSAGES_STREAMS.values())
  const damage = fc.array(fc.tuple(fc.nat(), fc.integer({ min: 0, max: 255 })), {
    minLength: 1,
    maxLength: 4,
  })
  everyRun(t, { seed: SEED, numRuns: RUNS }, [streams, damage], (recorded, changes) => {
    const stream = Buffer.from(recorded)
    for (const [at, byte] of changes) stream[at % stream.length] = byte
    runInPieces(translatedStream(), stream, [Math.floor(stream.length / 2)])
    return runInPieces(new MessagesMeter(), stream, []).output.equals(stream)
  })
})
