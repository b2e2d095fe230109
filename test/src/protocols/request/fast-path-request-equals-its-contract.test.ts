/** What is known for a request at a look is one by its contract, and the other way round; and both read the same. */
import { deepStrictEqual } from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import { chatCompletionsRequest } from '../../../../schemas/chat/chat-completions.ts'
import { callOf, readByContract } from '../../../../src/protocols/chat-completions/dialect.ts'
import { readFastPathRequest } from '../../../../src/protocols/chat-completions/fast-path-request.ts'
import { everyRun } from '../../../support/every-run.ts'

const SEED = 5
const RUNS = 2000

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
    tools: or([{ type: 'function' }], [], [{ type: 'function' }, { type: 'function', deep: [[[[[1]]]]] }]),
    tool_choice: or('auto', { type: 'function' }),
    stream_options: or({ include_usage: true }, {}),
    response_format: or({ type: 'json_object' }),
    'x-other': odd,
    top_p: or(0.5),
    seed: or(42, -7),
    stop: or('\n', ['a', 'b']),
    reasoning_effort: or('high'),
  },
  { requiredKeys: [] },
)

const written = (value: unknown, space: number) => Buffer.from(JSON.stringify(value, null, space))

t.test('the look and the contract agree', async (t) => {
  let taken = 0
  everyRun(
    t,
    { seed: SEED, numRuns: RUNS },
    [fc.oneof({ weight: 50, arbitrary: request }, odd), fc.constantFrom(0, 2)],
    (value, space) => {
      const body = written(value, space)
      const byContract = chatCompletionsRequest.safeParse(JSON.parse(body.toString())).success
      const usual = readFastPathRequest(body)
      if (usual !== null) {
        taken++
        deepStrictEqual(callOf(body, usual), callOf(body, readByContract(body)))
      }
      return byContract === (usual !== null)
    },
  )
  t.ok(taken > RUNS / 20 && taken < RUNS / 2, 'of both kinds there were many')
})

t.test('a prototype is no field', async (t) => {
  t.equal(readFastPathRequest(Buffer.from('{"__proto__":{"model":"m","messages":[{"role":"user"}]}}')), null)
})

t.test('what readers could differ about is left to the contract', async (t) => {
  const bodies = [
    '{"model":"m","messages":[{"role":"user"}],"model":"n"}',
    '{"model":"m","messages":[{"role":"user"}],"x":1,"x":2}',
    '{"model":"m","messages":[{"role":"user"}],"mod\\u0065l":"n"}',
    '{"model":"m","messages":[{"role":"user","r\\u006fle":"nobody"}]}',
    '{"model":"m","messages":[{"role":"user","role":"nobody"}]}',
    '{"model":"m","messages":[{"role":"us\\u0065r"}]}',
    '{"model":"m","messages":[{"role":"user","content":[{"type":"text","type":1}]}]}',
    '{"model":"m","messages":[{"role":"user"}],"tools":[{"type":"function","type":1}]}',
    '{"model":"m","messages":[{"role":"user"}],"tools":[{"type":"function"},{"type":"web_search"}]}',
    '{"model":"m","messages":[{"role":"user"}]} x',
    '[{"model":"m","messages":[{"role":"user"}]}]',
  ]
  for (const body of bodies) t.equal(readFastPathRequest(Buffer.from(body)), null, body)
})

t.test('escapes and wide characters are read as the parser reads them', async (t) => {
  const bodies = [
    '{"model":"m\\u00e9","messages":[{"role":"user","content":"\\"é\\ud83d"}],"stop":["\\n","é"],"temperature":0.10}',
    '{"model":"é","messages":[{"role":"user"}],"tools":[{"type":"function"},{"type":"function"}],"n":1e1}',
    ' { "model" : "m" , "messages" : [ {"content":null,"role":"tool"} , {"role":"user"} ], "tools":[], "max_tokens": null }',
    '{"model":"m","messages":[{"role":"user"}],"stream_options":{"include_usage":true,"include_obfuscation":false},"tool_choice":{"type":"function","name":"f"}}',
  ]
  for (const text of bodies) {
    const body = Buffer.from(text)
    t.same(callOf(body, readFastPathRequest(body)!), callOf(body, readByContract(body)), text)
  }
})
