/** A request whose usual items are known by a look is read as one that is parsed and checked whole, and refused alike. */
import { deepStrictEqual } from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import { Failure } from '../../../../schemas/failure.ts'
import type { Dialect } from '../../../../src/protocols/dialect.ts'
import { generateContentDialect } from '../../../../src/protocols/generate-content/dialect.ts'
import { messagesDialect } from '../../../../src/protocols/messages/dialect.ts'
import { responsesDialect } from '../../../../src/protocols/responses/dialect.ts'
import { everyRun } from '../../../support/every-run.ts'

const SEED = 9
const RUNS = 500

const odd = fc.constantFrom<unknown>(null, '', 'x', 0, true, [], {}, [null], [[]], [{}], [{ type: 1 }], {
  type: 'x',
})
/** Mostly as it should be, now and then not. */
const or = (...values: unknown[]) =>
  fc.oneof({ weight: 25, arbitrary: fc.constantFrom(...values) }, { weight: 1, arbitrary: odd })
const listOf = (item: fc.Arbitrary<unknown>) =>
  fc.oneof(
    { weight: 30, arbitrary: fc.array(fc.oneof({ weight: 40, arbitrary: item }, odd), { maxLength: 4 }) },
    odd,
  )
const some = (fields: Record<string, fc.Arbitrary<unknown>>, ...requiredKeys: string[]) =>
  fc.record(fields, { requiredKeys })

const TEXT = 'say "é\n'
const BLOCKS = [[{ type: 'text', text: TEXT }], [{ type: 'a' }, { type: 'b', deep: [[{}]] }], []]

const messages = some(
  {
    model: or('m'),
    max_tokens: or(1, 256),
    messages: listOf(
      some({ role: or('user', 'assistant'), content: or(TEXT, '', ...BLOCKS) }, 'role', 'content'),
    ),
    system: or(TEXT, ...BLOCKS),
    stream: or(true, false),
    tools: listOf(
      fc.oneof(
        {
          weight: 5,
          arbitrary: some(
            {
              name: or('f'),
              input_schema: or({}, { type: 'object' }),
              type: or('custom', null),
              description: or('what', null),
            },
            'name',
            'input_schema',
          ),
        },
        fc.constantFrom({ type: 'web_search_20250305', name: 'web_search' }, { type: 'x' }),
      ),
    ),
    tool_choice: or({ type: 'auto' }, { type: 'tool', name: 'f' }),
    'x-other': odd,
  },
  'model',
  'max_tokens',
  'messages',
)
const responses = some(
  {
    model: or('m'),
    input: listOf(
      fc.oneof(
        some(
          { role: or('user', 'developer'), content: or(TEXT, ...BLOCKS), type: or('message') },
          'role',
          'content',
        ),
        some(
          {
            type: or('function_call', 'reasoning', 'message'),
            content: or(null, TEXT, ...BLOCKS),
            call_id: odd,
          },
          'type',
        ),
      ),
    ),
    instructions: or(TEXT),
    tools: listOf(
      fc.oneof(
        {
          weight: 5,
          arbitrary: some(
            { type: or('function'), name: or('f'), parameters: or({}, null), description: or('what', null) },
            'type',
            'name',
          ),
        },
        fc.constantFrom({ type: 'web_search' }, { type: 'image_generation' }, { type: 'web_searches' }),
      ),
    ),
    reasoning: or({ effort: 'high' }),
    stream: or(true),
  },
  'model',
  'input',
)
const part = some({ text: or(TEXT, null), inlineData: odd })
const contents = some(
  {
    contents: fc.oneof(
      {
        weight: 9,
        arbitrary: listOf(some({ role: or('user', 'model', null), parts: fc.oneof(listOf(part), part) })),
      },
      some({ role: or('user'), parts: part }),
    ),
    systemInstruction: or({ parts: [{ text: TEXT }] }),
    generationConfig: or({ maxOutputTokens: 5, temperature: 1 }, { max_output_tokens: null }),
    tools: or([{ googleSearch: {} }], [{ functionDeclarations: [{}, {}] }]),
  },
  'contents',
)

/** What the gateway makes of the request, or says against it. */
function outcome(dialect: Dialect, body: Buffer): object {
  try {
    const call = dialect.read({ path: '/v1beta/models/m:generateContent', query: '', body })
    return { ...call, source: null }
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    return { code: error.code, message: error.message }
  }
}

const DIALECTS = [
  [messagesDialect, messages],
  [responsesDialect, responses],
  [generateContentDialect, contents],
] as const

for (const [dialect, requests] of DIALECTS)
  t.test(dialect.protocol, async (t) => {
    let taken = 0
    everyRun(
      t,
      { seed: SEED, numRuns: RUNS },
      [requests, fc.constantFrom(undefined, 2)],
      (request, space) => {
        const text = JSON.stringify(request, null, space)
        // A name that is written with escapes has a request parsed whole.
        const whole = text.replace('{', '{"\\u0079":0,')
        const [read, expected] = [text, whole].map((body) => outcome(dialect, Buffer.from(body)))
        deepStrictEqual(read, expected)
        if ('model' in read!) taken++
      },
    )
    t.ok(taken > RUNS / 5 && taken < (RUNS * 9) / 10, `of both kinds there were many: ${taken} were taken`)
  })

t.test('items that readers could differ about are read whole', async (t) => {
  const bodies: [Dialect, string][] = [
    [
      messagesDialect,
      '{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"a","c\\u006fntent":1}]}',
    ],
    [messagesDialect, '{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"a","content":1}]}'],
    [
      messagesDialect,
      '{"model":"m","max_tokens":1,"messages":[{"role":"us\\u0065r","content":"a"}],"max_tokens":2}',
    ],
    [responsesDialect, '{"model":"m","input":[{"type":"mess\\u0061ge"}]}'],
    [responsesDialect, '{"model":"m","input":[{"type":"function_call","type":"message"}]}'],
    [generateContentDialect, '{"contents":[{"parts":[{"text":"a","text":1}]}]}'],
  ]
  for (const [dialect, body] of bodies)
    t.match(outcome(dialect, Buffer.from(body)), { code: 'invalid_request' }, body)
})
