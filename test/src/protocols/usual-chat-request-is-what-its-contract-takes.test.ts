/** What is known for a request at a look is one by its contract, and the other way round. */
import { deepStrictEqual } from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import { chatCompletionsRequest } from '../../../schemas/chat-completions.ts'
import { isUsualChatRequest } from '../../../src/protocols/usual-chat-request.ts'

const SEED = 5
const RUNS = 4000

const odd = fc.constantFrom<unknown>(
  null,
  true,
  0,
  1,
  -1,
  1.5,
  2.1,
  128,
  129,
  100_000_000,
  100_000_001,
  Number.POSITIVE_INFINITY,
  2 ** 53,
  '',
  'x',
  [],
  {},
  [[]],
  [null],
  { type: 1 },
  { type: 'x' },
  { include_usage: 'yes' },
  { include_usage: null },
  [{ type: 'text' }, {}],
)
/** Mostly as it should be, now and then not. */
const or = (...values: unknown[]) =>
  fc.oneof({ weight: 9, arbitrary: fc.constantFrom(...values) }, { weight: 1, arbitrary: odd })

const message = fc.record(
  {
    role: or('system', 'developer', 'user', 'assistant', 'tool', 'function'),
    content: or('hello', null, [{ type: 'text', text: 'x' }], []),
    tool_calls: odd,
  },
  { requiredKeys: ['role'] },
)
const request = fc.record(
  {
    model: or('m'),
    messages: fc.oneof(
      {
        weight: 20,
        arbitrary: fc.array(fc.oneof({ weight: 30, arbitrary: message }, odd), { maxLength: 3 }),
      },
      odd,
    ),
    stream: or(true, false),
    max_tokens: or(1, 256),
    max_completion_tokens: or(9),
    temperature: or(0, -0, 0.7, 2),
    n: or(1, 128),
    tools: or([{ type: 'function' }], []),
    tool_choice: or('auto', { type: 'function' }),
    stream_options: or({ include_usage: true }, {}),
    response_format: or({ type: 'json_object' }),
    'x-other': odd,
  },
  { requiredKeys: [] },
)

t.test('the look and the contract agree', async (t) => {
  let taken = 0
  fc.assert(
    fc.property(fc.oneof({ weight: 50, arbitrary: request }, odd), (value) => {
      const byContract = chatCompletionsRequest.safeParse(value).success
      if (byContract) taken++
      return isUsualChatRequest(value) === byContract
    }),
    { seed: SEED, numRuns: RUNS },
  )
  t.ok(taken > RUNS / 20 && taken < RUNS / 2, 'of both kinds there were many')
})

t.test('the contract changes nothing: to read the request itself is to read the same', async (t) => {
  fc.assert(
    fc.property(request, (value) => {
      const parsed = JSON.parse(JSON.stringify(value))
      const read = chatCompletionsRequest.safeParse(parsed)
      if (read.success) deepStrictEqual(read.data, parsed)
    }),
    { seed: SEED, numRuns: RUNS },
  )
  t.pass('every run agreed')
})

t.test('a prototype is no field', async (t) => {
  const text = '{"__proto__":{"model":"m","messages":[{"role":"user"}]}}'
  t.notOk(isUsualChatRequest(JSON.parse(text)))
})
