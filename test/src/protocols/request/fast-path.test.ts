/** Requests read without building all of their values. */
import { deepStrictEqual } from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import { chatCompletionsRequest } from '../../../../schemas/chat/chat-completions.ts'
import { Failure } from '../../../../schemas/failure.ts'
import { scanJson } from '../../../../src/core/json/scanner/tape.ts'
import { readByContract, toCall } from '../../../../src/protocols/chat-completions/dialect.ts'
import { readFastPathRequest } from '../../../../src/protocols/chat-completions/fast-path-request.ts'
import type { Dialect } from '../../../../src/protocols/dialect.ts'
import { generateContentDialect } from '../../../../src/protocols/generate-content/dialect.ts'
import { fastPathContents } from '../../../../src/protocols/generate-content/fast-path-items.ts'
import { messagesDialect } from '../../../../src/protocols/messages/dialect.ts'
import {
  fastPathMessages,
  fastPathTools as messagesTools,
} from '../../../../src/protocols/messages/fast-path-items.ts'
import type { FastPathItems } from '../../../../src/protocols/request/fast-path-lists.ts'
import { responsesDialect } from '../../../../src/protocols/responses/dialect.ts'
import {
  fastPathInput,
  fastPathTools as responsesTools,
} from '../../../../src/protocols/responses/fast-path-items.ts'
import { everyRun } from '../../../support/every-run.ts'

t.test('fast path request equals its contract', async (t) => {
  // What is known for a request at a look is one by its contract, and the other way round; and both read the same.
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
          deepStrictEqual(toCall(body, usual), toCall(body, readByContract(body)))
        }
        return byContract === (usual !== null)
      },
    )
    t.ok(taken > RUNS / 20 && taken < RUNS / 2, 'of both kinds there were many')
  })

  t.test('a prototype is no field', async (t) => {
    t.equal(
      readFastPathRequest(Buffer.from('{"__proto__":{"model":"m","messages":[{"role":"user"}]}}')),
      null,
    )
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
      t.same(toCall(body, readFastPathRequest(body)!), toCall(body, readByContract(body)), text)
    }
  })
})

t.test('plain items are accepted by tests made of their contracts, and nothing else is', async (t) => {
  const message = { role: 'user', content: [{ type: 'text', text: 'x' }] }
  const tool = { name: 'f', description: 'what', input_schema: {} }
  const item = { type: 'function_call', name: 'f', arguments: '{}' }
  const cases: [string, FastPathItems, unknown[], unknown[]][] = [
    [
      'messages',
      fastPathMessages,
      [message, { role: 'assistant', content: '' }, { role: 'system' }],
      [{ role: 'user' }, { role: 'x', content: '' }, { role: 'user', content: [{ type: '' }] }, [], null],
    ],
    [
      'tools of messages',
      messagesTools,
      [tool, { ...tool, type: 'custom', description: null }],
      [{ ...tool, name: '' }, { ...tool, name: null }, { type: 'custom', name: 'f' }, { type: 'bash_2' }],
    ],
    [
      'input of responses',
      fastPathInput,
      [item, { ...item, content: null }, { role: 'developer', content: 'x' }],
      [{ role: 'user' }, { role: 'user', content: null }, { type: 'message' }, { role: null, ...item }, {}],
    ],
    [
      'tools of responses',
      responsesTools,
      [{ type: 'function', name: 'f', parameters: null }],
      [{ type: 'function' }, { type: 'function', name: '' }, { type: 'function', name: 'f', parameters: [] }],
    ],
    [
      'contents of generate-content',
      fastPathContents,
      [{ role: 'user', parts: [{ text: 'x' }, {}] }, { parts: null }, {}],
      [{ role: 1 }, { parts: {} }, { parts: [{ text: 1 }] }, { parts: [{ inlineData: {} }] }],
    ],
  ]
  for (const [name, { matches }, accepted, refused] of cases) {
    const isAccepted = (value: unknown) =>
      scanJson(Buffer.from(JSON.stringify([value])), 5, null, (tape) => matches(tape, 1))
    for (const value of accepted) t.equal(isAccepted(value), true, `${name}: ${JSON.stringify(value)}`)
    for (const value of refused) t.equal(isAccepted(value), false, `${name}: ${JSON.stringify(value)}`)
  }
})

t.test('request read around its lists', async (t) => {
  // A request whose usual items are known by a look is read as one that is parsed and checked whole, and refused alike.
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
              {
                type: or('function'),
                name: or('f'),
                parameters: or({}, null),
                description: or('what', null),
              },
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
      const call = dialect.read({ model: 'm', query: '', body })
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
      [
        messagesDialect,
        '{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"a","content":1}]}',
      ],
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
})
