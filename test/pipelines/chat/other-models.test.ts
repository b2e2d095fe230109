/** What several models made costs what each of them costs, to the last unit. See docs/pricing.md, "Other models". */
import fc from 'fast-check'
import t from 'tap'
import { chargeAnswer } from '../../../pipelines/chat/forward/charge.ts'
import type { PricedOther } from '../../../pipelines/chat/other-models.ts'
import type { AdmittedCall } from '../../../pipelines/chat/precharge.ts'
import { configFile } from '../../../schemas/config/file.ts'
import { createCatalog } from '../../../src/core/routing/catalog.ts'
import { MessagesMeter, readWholeMessage } from '../../../src/protocols/messages/meter.ts'
import { everyRun } from '../../support/every-run.ts'
import { readAtPath } from '../../support/read-at-path.ts'

const SEED = 20_261_129
const RUNS = 300
const UNITS_PER_CREDIT = 100_000_000n

/** Credits for a million tokens. */
const RATES = { own: [3, 15], adviser: [15, 75], spare: [5, 25] } as const
type Name = keyof typeof RATES
const UPSTREAM_NAMES: Readonly<Record<Name, string>> = {
  own: 'vendor-own-20260101',
  adviser: 'vendor-adviser',
  spare: 'vendor-spare',
}
const DEAREST: Name = 'adviser'

const catalog = createCatalog(
  configFile.parse({
    models: Object.entries(RATES).map(([id, [input, output]]) => ({
      id,
      pricing: { unit: '1M_tokens', input: String(input), output: String(output) },
    })),
    channels: [
      {
        ...{ id: 'line', protocol: 'messages', base_url: 'https://vendor.example', api_key: 'k' },
        models: UPSTREAM_NAMES,
      },
    ],
  }),
)
const OWN: Name = 'own'
const model = catalog.resolve(OWN)!
const [route] = catalog.routes(model, 'messages')
const OTHERS: readonly PricedOther[] = (['adviser', 'spare'] as const).map((name) => ({
  ...{ field: 'fallbacks', name, outputLimit: null, mostRuns: 1, model: catalog.resolve(name)! },
}))

const admitted = {
  ...{ catalog, others: OTHERS, model, requested: model, routes: [route], fallbacks: [] },
  request: { submittedAt: 0 },
  call: readAtPath(
    '/v1/messages',
    '',
    Buffer.from('{"model":"own","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}'),
  ),
} as unknown as AdmittedCall

const count = fc.nat({ max: 100_000 })
const counts = {
  ...{
    input_tokens: count,
    cache_read_input_tokens: count,
    output_tokens: fc.integer({ min: 1, max: 5000 }),
  },
  cache_creation: fc.record({ ephemeral_5m_input_tokens: count, ephemeral_1h_input_tokens: count }),
}
const iteration = fc.record({
  type: fc.constantFrom('message', 'advisor_message', 'fallback_message', 'of_tomorrow'),
  // As the vendor names them: with a date, or not.
  model: fc.constantFrom(
    'vendor-own',
    'vendor-own-20260101',
    'vendor-adviser-20251101',
    'vendor-spare',
    'stranger',
  ),
  ...counts,
})
type Iteration = typeof iteration extends fc.Arbitrary<infer Each> ? Each : never

const findName = (given: string): Name => {
  const names = Object.keys(RATES) as Name[]
  return names.find((name) => given.startsWith(`vendor-${name}`)) ?? DEAREST
}

/** Returns units of 1e-8 credit, rounded half up: for each name that the report uses, as the vendor bills them. */
function reference(iterations: readonly Iteration[]): bigint {
  const byName = Map.groupBy(iterations, (each) => each.model)
  return [...byName].reduce((total, [name, all]) => {
    const [input, output] = RATES[findName(name)]
    // In eightieths of a credit for a million tokens: a cache write costs 5/4, a read a tenth.
    const eightieths = all.reduce((sum, { cache_creation: written, ...each }) => {
      const prompt =
        80 * each.input_tokens +
        8 * each.cache_read_input_tokens +
        100 * written.ephemeral_5m_input_tokens +
        160 * written.ephemeral_1h_input_tokens
      return sum + input * prompt + 80 * output * each.output_tokens
    }, 0)
    return total + (2n * BigInt(eightieths) * UNITS_PER_CREDIT + 80_000_000n) / (2n * 80_000_000n)
  }, 0n)
}

const event = (value: object) => `data: ${JSON.stringify(value)}\n\n`
const writeUsage = (iterations: readonly Iteration[]) => {
  // The vendor's counts of the answer: the output of its model, and the first prompt that it read.
  const own = iterations.filter(({ type }) => type !== 'advisor_message')
  return {
    input_tokens: own[0]?.input_tokens ?? 0,
    output_tokens: own.reduce((sum, { output_tokens }) => sum + output_tokens, 0),
    iterations,
  }
}
const isOfSeveral = (iterations: readonly Iteration[]): boolean =>
  new Set(iterations.map((each) => each.model)).size > 1

t.test('each model is charged at its own price, streamed and whole', async (t) => {
  const reports = fc.array(iteration, { minLength: 2, maxLength: 6 }).filter(isOfSeveral)
  everyRun(t, { numRuns: RUNS, seed: SEED }, [reports], (iterations) => {
    const usage = writeUsage(iterations)
    const content = [{ type: 'text', text: 'hello' }]
    const whole = readWholeMessage(
      Buffer.from(JSON.stringify({ type: 'message', content, stop_reason: 'end_turn', usage })),
    ).metered
    const stream = new MessagesMeter()
    stream.push(
      Buffer.from(
        event({
          type: 'message_start',
          message: { model: 'vendor-own', usage: { input_tokens: 7, output_tokens: 1 } },
        }) +
          event({ type: 'content_block_delta', delta: { type: 'text_delta', text: 'hello' } }) +
          event({ type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage }) +
          event({ type: 'message_stop' }),
      ),
    )
    for (const metered of [whole, stream]) {
      const charge = chargeAnswer({
        admitted,
        route: route!,
        metered,
        used: metered.usage!,
        source: 'upstream',
      })
      if (charge.suspect !== '') throw new Error(charge.suspect)
      if (charge.cost !== reference(iterations))
        throw new Error(`${charge.cost} is not ${reference(iterations)}: ${JSON.stringify(iterations)}`)
      const { models } = JSON.parse(`{${charge.more.slice(1)}}`) as {
        models: { cost: string; priced_as?: string }[]
      }
      if (models.reduce((sum, { cost }) => sum + BigInt(cost), 0n) !== charge.cost)
        throw new Error('the parts')
      const isStrange = iterations.some((each) => each.model === 'stranger')
      if (models.some((part) => part.priced_as === DEAREST) !== isStrange) throw new Error('the stranger')
    }
  })
})

t.test('what the iterations leave out of the answer is charged to the model that made it', async (t) => {
  const iterations = [
    { type: 'advisor_message', model: 'vendor-adviser', input_tokens: 1000, output_tokens: 100 },
    { type: 'message', model: 'vendor-own', input_tokens: 10, output_tokens: 5 },
  ]
  const usage = { input_tokens: 1000, output_tokens: 50, iterations }
  const { metered } = readWholeMessage(Buffer.from(JSON.stringify({ type: 'message', content: [], usage })))
  t.match(metered.usage, {
    prompt: 2000,
    output: 150,
    byModel: [{ runs: 1 }, { usage: { prompt: 1000, output: 50 } }],
  })
})

interface Message {
  readonly content: readonly object[]
  readonly stop_reason: string
  readonly stop_details?: object | null
  readonly usage?: object
}

/** Returns the charge of an answer, whole and streamed. */
const chargeBoth = ({
  content,
  usage,
  ...ending
}: Message): [name: string, cost: bigint, prompt: number][] => {
  const whole = readWholeMessage(Buffer.from(JSON.stringify({ type: 'message', content, usage, ...ending })))
  const stream = new MessagesMeter()
  const start = { model: 'vendor-own', usage: { input_tokens: 1000, output_tokens: 1 } }
  const blocks = content.flatMap((block, index) => [
    { type: 'content_block_start', index, content_block: block },
    { type: 'content_block_stop', index },
  ])
  const events = [
    { type: 'message_start', message: start },
    ...blocks,
    { type: 'message_delta', delta: ending, usage },
    { type: 'message_stop' },
  ]
  stream.push(Buffer.from(events.map(event).join('')))
  return [
    ['whole', whole.metered, whole.isAnswer] as const,
    ['streamed', stream, stream.isAnswer] as const,
  ].map(([name, metered, isAnswer]) => {
    if (!isAnswer || !metered.isUsageWhole) throw new Error(`${name}: it is no answer with a report`)
    const used = metered.usage!
    const { cost } = chargeAnswer({ admitted, route: route!, metered, used, source: 'upstream' })
    return [name, cost, used.prompt]
  })
}

const BILLED = ['bio', 'frontier_llm', 'reasoning_extraction']
const UNBILLED = ['cyber', 'general_harms', 'of_tomorrow', null]
const refusal = (category: string | null) => ({
  stop_reason: 'refusal',
  stop_details: { type: 'refusal', category, explanation: 'No.' },
})

t.test('a refusal before any output is charged as its vendor bills it, by its category', async (t) => {
  const usage = { input_tokens: 1000, output_tokens: 0 }
  for (const category of BILLED)
    for (const [name, cost] of chargeBoth({ ...refusal(category), content: [], usage }))
      t.equal(cost, 3n * (UNITS_PER_CREDIT / 1000n), `${category}, ${name}`)
  for (const category of UNBILLED)
    for (const [name, cost, prompt] of [
      ...chargeBoth({ ...refusal(category), content: [], usage }),
      // Bedrock reports one token that was not written.
      ...chargeBoth({ ...refusal(category), content: [], usage: { ...usage, output_tokens: 1 } }),
      ...chargeBoth({ ...refusal(category), content: [] }),
    ])
      t.same([cost, prompt], [0n, 0], `${category}, ${name}`)
  t.same(
    chargeBoth({ stop_reason: 'refusal', content: [], usage }).map(([, cost]) => cost),
    [0n, 0n],
    'without a reason',
  )
})

t.test('a refusal after some output is charged', async (t) => {
  const thought = { type: 'thinking', thinking: '', signature: 'c2lnbmVk' }
  const told = { type: 'text', text: 'Well' }
  for (const [block, output_tokens] of [
    [thought, 1],
    [told, 1],
    [thought, 20],
  ] as const) {
    const usage = { input_tokens: 1000, output_tokens }
    for (const [name, cost] of chargeBoth({ ...refusal('cyber'), content: [block], usage }))
      t.equal(cost, BigInt(3000 + 15 * output_tokens) * (UNITS_PER_CREDIT / 1_000_000n), name)
  }
  const hidden = { input_tokens: 1000, output_tokens: 20 }
  for (const [name, cost] of chargeBoth({ ...refusal('cyber'), content: [], usage: hidden }))
    t.equal(cost, 3300n * (UNITS_PER_CREDIT / 1_000_000n), `${name}, output that is not shown`)
  for (const [name, cost] of chargeBoth({
    stop_reason: 'end_turn',
    content: [],
    usage: { ...hidden, output_tokens: 0 },
  }))
    t.equal(cost, 3000n * (UNITS_PER_CREDIT / 1_000_000n), `${name}, no refusal`)
})

t.test('each model that declined before any output is charged by its own category', async (t) => {
  const handOver = (category?: string) => ({
    ...{ type: 'fallback', from: { model: 'vendor-own' }, to: { model: 'vendor-spare' } },
    ...(category !== undefined && { trigger: { type: 'refusal', category } }),
  })
  const run = (type: string, model: string, output_tokens: number) => ({
    ...{ type, model, input_tokens: 1000, output_tokens },
  })
  const said = { type: 'text', text: 'Hello.' }
  const end = { stop_reason: 'end_turn', stop_details: null }
  /** Thousandths of a credit: 1000 tokens of the prompt of each model. */
  const [OWN_PROMPT, SPARE_PROMPT] = [3n, 5n]
  const served = [run('message', 'vendor-own', 0), run('fallback_message', 'vendor-spare', 0)]
  const cases: readonly (readonly [title: string, message: Message, thousandths: bigint])[] = [
    ...(
      [
        [undefined, 0n],
        ['cyber', 0n],
        ['bio', OWN_PROMPT],
      ] as const
    ).map(
      ([category, own]) =>
        [
          `${category}, then an answer`,
          {
            ...{ content: [handOver(category), said], ...end },
            usage: {
              ...{ input_tokens: 1000, output_tokens: 200 },
              iterations: [served[0]!, run('fallback_message', 'vendor-spare', 200)],
            },
          },
          own + SPARE_PROMPT + 5n,
        ] as const,
    ),
    ...(
      [
        ['cyber', 'cyber', 0n],
        ['bio', 'cyber', OWN_PROMPT],
        ['cyber', 'bio', SPARE_PROMPT],
        ['frontier_llm', 'bio', OWN_PROMPT + SPARE_PROMPT],
      ] as const
    ).map(
      ([first, last, thousandths]) =>
        [
          `${first}, then ${last}`,
          {
            ...{ content: [handOver(first)], ...refusal(last) },
            usage: { input_tokens: 1000, output_tokens: 0, iterations: served },
          },
          thousandths,
        ] as const,
    ),
    [
      'the first after some output, then none',
      {
        ...{ content: [said, handOver('cyber')], ...refusal('cyber') },
        usage: {
          ...{ input_tokens: 1000, output_tokens: 0 },
          iterations: [run('message', 'vendor-own', 200), served[1]!],
        },
      },
      OWN_PROMPT + 3n,
    ],
    [
      'the first in its second run, and so after some output',
      {
        ...{ content: [said, handOver('cyber'), said], ...end },
        usage: {
          ...{ input_tokens: 1000, output_tokens: 200 },
          iterations: [
            ...[run('message', 'vendor-own', 200), run('message', 'vendor-own', 0)],
            run('fallback_message', 'vendor-spare', 200),
          ],
        },
      },
      2n * OWN_PROMPT + 3n + SPARE_PROMPT + 5n,
    ],
  ]
  for (const [title, message, thousandths] of cases)
    for (const [name, cost] of chargeBoth(message))
      t.equal(cost, thousandths * (UNITS_PER_CREDIT / 1000n), `${title}, ${name}`)
})

t.test('without iterations, the model that the answer names is charged', async (t) => {
  const usage = { input_tokens: 1_000_000, output_tokens: 0 }
  const body = Buffer.from(JSON.stringify({ type: 'message', model: 'vendor-spare', content: [], usage }))
  const { metered } = readWholeMessage(body)
  const charge = chargeAnswer({ admitted, route: route!, metered, used: metered.usage!, source: 'upstream' })
  t.equal(charge.cost, 5n * UNITS_PER_CREDIT)
})
