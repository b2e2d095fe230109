/**
 * What holds of every request. The simulated upstream, as strict as the vendor, says whether a translation would have
 * been taken. See docs/translation.md, "The request".
 */
import fc from 'fast-check'
import t from 'tap'
import { Failure } from '../../../../schemas/failure.ts'
import { readGenerateContent } from '../../../../simulator/dialects/generate-content/request.ts'
import { readChatCall } from '../../../../src/protocols/chat-completions/dialect.ts'
import { ANY_CHARACTER } from '../../../support/any-character.ts'
import { everyRun } from '../../../support/every-run.ts'
import { encodeOptions } from '../encode-options.ts'
import { TO_GENERATE_CONTENT } from './streams.ts'

const SEED = 35
const RUNS = 600
const MODELS = ['gemini-2.0-flash', 'gemini-2.5-pro', 'gemini-3-flash', 'other']
const URL = 'https://example.org/a.png'
const PNG = 'data:image/png;base64,iVBORw0KGgo='

const optionsFor = (upstreamModel: string) =>
  encodeOptions({
    upstreamModel,
    fetched: new Map([[URL, { mediaType: 'image/png', base64: 'iVBORw0KGgo=' }]]),
  })

const maybe = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: null })
const text = fc.oneof(
  fc.constantFrom('', ' ', '{"a":1}', '\u0000', '😀', '["x"]'),
  fc.string({ unit: ANY_CHARACTER, maxLength: 8 }),
)
const textPart = text.map((text) => ({ type: 'text', text }))
const userPart = fc.oneof(
  textPart,
  fc.constantFrom(PNG, URL).map((url) => ({ type: 'image_url', image_url: { url } })),
  fc.constantFrom(PNG, URL).map((file_data) => ({ type: 'file', file: { file_data } })),
  fc.constant({ type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } }),
  fc.constantFrom(PNG, URL).map((video_url) => ({ type: 'video_url', video_url })),
)
const content = (part: fc.Arbitrary<object>) => fc.oneof(text, fc.array(part, { maxLength: 3 }))
const name = fc.constantFrom('a', 'look_up', 'b-2')
const called = fc.record({
  name,
  arguments: fc.constantFrom('', '{}', '{"x":{"y":[1,null]}}'),
  answer: content(textPart),
  signature: fc.constantFrom(undefined, 'c2ln'),
})

/** One turn: what was said, or calls with their answers in any order. Ids repeat from turn to turn. */
const turn = fc.oneof(
  fc.record({ role: fc.constantFrom('system', 'developer'), content: content(textPart) }).map((m) => [m]),
  fc.record({ role: fc.constant('user'), content: content(userPart) }).map((m) => [m]),
  fc
    .record({ role: fc.constant('assistant'), content: maybe(content(textPart)), refusal: maybe(text) })
    .map((m) => [m]),
  fc
    .tuple(fc.array(called, { minLength: 1, maxLength: 3 }), maybe(text), fc.boolean())
    .map(([calls, said, isReversed]) => {
      const tool_calls = calls.map((call, index) => ({
        id: `call_${index}`,
        type: 'function',
        function: { name: call.name, arguments: call.arguments },
        extra_content: { google: { thought_signature: call.signature } },
      }))
      const answers = calls.map(({ answer }, index) => ({
        role: 'tool',
        tool_call_id: `call_${index}`,
        content: answer,
      }))
      return [
        { role: 'assistant', content: said, tool_calls },
        ...(isReversed ? answers.reverse() : answers),
        // Two groups of calls with nothing between them would be one.
        { role: 'assistant', content: 'Done.' },
        { role: 'user', content: 'Go on.' },
      ]
    }),
)

const schema = fc.constantFrom<object | null>(
  null,
  {},
  { type: 'object', properties: {} },
  { type: 'object', additionalProperties: { type: 'string' } },
  {
    type: 'object',
    properties: {
      a: { $ref: '#/$defs/A' },
      b: { type: ['string', 'null'], enum: ['x', null] },
      c: { type: 'array' },
    },
    required: ['a', 'z'],
    additionalProperties: false,
    $defs: { A: { anyOf: [{ $ref: '#/$defs/A' }, { const: 3 }, { type: 'string', format: 'email' }] } },
  },
)
const tools = fc.uniqueArray(
  fc.record({
    type: fc.constantFrom('function', 'web_search', 'image_generation'),
    function: fc.record({ name, description: maybe(text), parameters: schema, strict: maybe(fc.boolean()) }),
  }),
  { maxLength: 3, selector: (tool) => tool.function.name },
)
const request = fc.record({
  model: fc.constant('ours'),
  messages: fc.array(turn, { minLength: 1, maxLength: 4 }).map((turns) => turns.flat()),
  stream: maybe(fc.boolean()),
  max_tokens: maybe(fc.integer({ min: 1, max: 9999 })),
  temperature: maybe(fc.double({ min: 0, max: 2, noNaN: true })),
  top_p: maybe(fc.double({ min: 0, max: 1, noNaN: true })),
  n: maybe(fc.integer({ min: 1, max: 8 })),
  seed: maybe(fc.maxSafeInteger()),
  stop: maybe(fc.oneof(text, fc.array(text, { maxLength: 7 }))),
  presence_penalty: maybe(fc.double({ min: -2, max: 2, noNaN: true })),
  tools: maybe(tools),
  tool_choice: maybe(fc.constantFrom<unknown>('auto', 'none', 'required')),
  parallel_tool_calls: maybe(fc.boolean()),
  reasoning_effort: maybe(fc.constantFrom('none', 'minimal', 'low', 'medium', 'high', 'xhigh', '?')),
  response_format: maybe(
    fc.oneof(
      fc.constantFrom<object>({ type: 'text' }, { type: 'json_object' }),
      schema.map((schema) => ({ type: 'json_schema', json_schema: { name: 'x', schema } })),
    ),
  ),
  user: maybe(text),
  logit_bias: maybe(fc.constant({ '1': 2 })),
  top_k: maybe(fc.integer({ min: -1, max: 40 })),
  logprobs: maybe(fc.boolean()),
  top_logprobs: maybe(fc.integer({ min: 0, max: 20 })),
  modalities: maybe(fc.subarray(['text', 'image', 'audio', '?'])),
  audio: maybe(fc.constantFrom({ voice: 'a', format: 'pcm16' }, { voice: { name: 'b' }, format: 'mp3' })),
  thinking: maybe(
    fc.constantFrom<unknown>({ type: 'adaptive' }, { type: 'enabled', budget_tokens: 99 }, '?'),
  ),
  reasoning: maybe(fc.constantFrom({ effort: 'low', exclude: true }, { max_tokens: 0 }, { enabled: true })),
  functions: maybe(fc.constantFrom<unknown[]>([], [{ name: 'legacy' }])),
})

const REFUSALS: ReadonlySet<string> = new Set(['invalid_request', 'tool_not_supported'])

t.test('the upstream takes every translation of a conversation that hangs together', async (t) => {
  everyRun(t, { seed: SEED, numRuns: RUNS }, [request, fc.constantFrom(...MODELS)], (body, upstreamModel) => {
    const call = readChatCall(Buffer.from(JSON.stringify(body)))
    const urls = TO_GENERATE_CONTENT.urlsToFetch(call)
    if (urls.length > 1 || (urls[0] ?? URL) !== URL) throw new Error(`to fetch: ${urls}`)
    const { body: sent, dropped } = TO_GENERATE_CONTENT.encodeRequest(call, optionsFor(upstreamModel))
    readGenerateContent(sent, upstreamModel)
    if (body.user && !dropped.includes('user')) throw new Error('user was dropped in silence')
    for (const text of dropped) if (!/^[\x20-\x7e]+$/.test(text)) throw new Error(`no header text: ${text}`)
  })
})

t.test('whatever a valid request holds, it is translated, or refused with the field’s name', async (t) => {
  const fields = fc.dictionary(
    fc.constantFrom(
      ...[
        'content',
        'tool_calls',
        'tool_call_id',
        'name',
        'refusal',
        'thinking_blocks',
        'type',
        'text',
        'image_url',
      ],
      ...['function', 'arguments', 'id', 'extra_content', 'google', 'thought_signature', 'url', 'parameters'],
    ),
    fc.oneof(fc.jsonValue({ maxDepth: 2 }), fc.constantFrom('a', '{}', 'function', 'text', 'image_url', PNG)),
    { maxKeys: 5, noNullPrototype: true },
  )
  const message = fields.chain((more) =>
    fc.constantFrom('system', 'user', 'assistant', 'tool').map((role) => ({ ...more, role })),
  )
  const loose = fc.record(
    {
      messages: fc.array(message, { minLength: 1, maxLength: 3 }),
      tools: fc.array(fields),
      tool_choice: fc.oneof(fields, fc.string({ maxLength: 4 })),
      response_format: fields,
      stop: fc.jsonValue({ maxDepth: 1 }),
      seed: fc.jsonValue({ maxDepth: 0 }),
      reasoning_effort: fc.jsonValue({ maxDepth: 0 }),
      user: fc.jsonValue({ maxDepth: 1 }),
    },
    { requiredKeys: ['messages'] },
  )
  const outcomes = { translated: 0, refused: 0 }
  everyRun(t, { seed: SEED, numRuns: RUNS }, [fc.oneof(loose, request), fields], (body, more) => {
    const mixed = { ...body, ...more, model: 'ours' }
    try {
      const call = readChatCall(Buffer.from(JSON.stringify(mixed)))
      TO_GENERATE_CONTENT.urlsToFetch(call)
      JSON.parse(TO_GENERATE_CONTENT.encodeRequest(call, optionsFor('gemini-2.0-flash')).body.toString())
      outcomes.translated++
    } catch (error) {
      if (!(error instanceof Failure) || !REFUSALS.has(error.code)) throw error
      if (
        !/^(Field '[^']+'|The request body|The tool type '.*') is not (valid: .|known; .)/s.test(
          error.message,
        )
      )
        throw error
      outcomes.refused++
    }
  })
  t.ok(outcomes.translated > RUNS / 10, `${outcomes.translated} translated`)
  t.ok(outcomes.refused > RUNS / 10, `${outcomes.refused} refused`)
})
