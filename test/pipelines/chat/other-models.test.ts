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

t.test('an attempt that was declined before any output costs nothing', async (t) => {
  const iterations = [
    { type: 'message', model: 'vendor-own', input_tokens: 1000, output_tokens: 0 },
    { type: 'fallback_message', model: 'vendor-spare', input_tokens: 1100, output_tokens: 5 },
  ]
  const usage = { input_tokens: 1100, output_tokens: 5, iterations }
  const { metered } = readWholeMessage(Buffer.from(JSON.stringify({ type: 'message', content: [], usage })))
  t.match(metered.usage, { prompt: 1100, byModel: { length: 1 } })
})

t.test('without iterations, the model that the answer names is charged', async (t) => {
  const usage = { input_tokens: 1_000_000, output_tokens: 0 }
  const body = Buffer.from(JSON.stringify({ type: 'message', model: 'vendor-spare', content: [], usage }))
  const { metered } = readWholeMessage(body)
  const charge = chargeAnswer({ admitted, route: route!, metered, used: metered.usage!, source: 'upstream' })
  t.equal(charge.cost, 5n * UNITS_PER_CREDIT)
})
