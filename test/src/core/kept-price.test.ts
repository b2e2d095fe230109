/** The prices that are kept with a task until it is charged. */
import t from 'tap'
import { modelEntry, pricing } from '../../../schemas/config/catalog.ts'
import { ONE_RATE, parseRate } from '../../../schemas/money.ts'
import { toKeptPrice, toTokenPrice } from '../../../src/core/pricing/kept-price.ts'
import { chargeTerms, findFactor, priceAt, tokenPrice } from '../../../src/core/pricing/pricing.ts'
import { kindRates, readPriceTerms } from '../../../src/core/pricing/terms.ts'
import { NO_USAGE, type TokenUsage } from '../../../src/core/pricing/usage.ts'

t.test('the prices of a charge are kept with its call', async (t) => {
  const makePrice = (fields: object) => tokenPrice(pricing.parse({ unit: '1M_tokens', ...fields }))!
  const computeTerms = (fields: object, usage: Partial<TokenUsage> = {}, now = 0, tier = '') =>
    JSON.parse(chargeTerms(makePrice(fields), { ...NO_USAGE, ...usage }, now, tier))
  const PLAIN = { input: '2', output: '3' }
  const PLAIN_TERMS = { input: '2', cached_input: '2', cache_write: '2.5', output: '3' }

  t.test('those that are not usual have a name', async (t) => {
    t.same(computeTerms(PLAIN), PLAIN_TERMS)
    t.equal(computeTerms({ input: '2' }).output, '0', 'of embeddings')
    for (const [field, price] of [
      ['cached_input', '0.5'],
      ['reasoning', '4'],
      ['input_audio', '5'],
      ['output_audio', '6'],
      ['input_image', '7'],
      ['output_image', '8'],
      ['server_tool_call', '9'],
      ['minimum', '0.1'],
    ] as const)
      t.same(computeTerms({ ...PLAIN, [field]: price }), { ...PLAIN_TERMS, [field]: price }, field)
    const writes = { cached_input: '0.2' }
    t.same(computeTerms({ ...PLAIN, cache_write: '1' }), { ...PLAIN_TERMS, ...writes, cache_write: '1' })
    t.same(computeTerms({ ...PLAIN, cache_write_1h: '5' }), {
      ...PLAIN_TERMS,
      ...writes,
      cache_write_1h: '5',
    })
    t.same(computeTerms({ ...PLAIN, cache_write_1h: '4' }), { ...PLAIN_TERMS, ...writes }, 'the usual one')
    t.same(computeTerms({ ...PLAIN, server_tools: { mcp: '1' } }), {
      ...PLAIN_TERMS,
      server_tools: { mcp: '1' },
    })
  })

  t.test('with the tier of the prompt, the discount of the instant and the service tier', async (t) => {
    const tiers = [{ from_prompt_tokens: 10, input: '4', output: '6' }]
    const long = { input: '4', cached_input: '4', cache_write: '5', output: '6', from_prompt_tokens: 10 }
    t.same(computeTerms({ ...PLAIN, tiers }, { prompt: 9 }), PLAIN_TERMS)
    t.same(computeTerms({ ...PLAIN, tiers }, { prompt: 10 }), long)
    const until = { ...PLAIN, discount: '0.5', discount_until: '1970-01-01T00:00:01Z' }
    t.same(computeTerms(until, {}, 999), { ...PLAIN_TERMS, discount: '0.5', tool_discount: '1' })
    t.same(computeTerms({ ...until, discount_server_tools: true }, {}, 999), {
      ...PLAIN_TERMS,
      discount: '0.5',
    })
    t.same(computeTerms(until, {}, 1000), PLAIN_TERMS)
    const tiered = { ...PLAIN, service_tiers: { flex: '0.5', same: '1' } }
    const flex = { service_tier: 'flex', service_tier_factor: '0.5' }
    t.same(computeTerms(tiered, {}, 0, 'flex'), { ...PLAIN_TERMS, ...flex })
    for (const usual of ['', 'same', 'default'])
      t.same(computeTerms(tiered, {}, 0, usual), PLAIN_TERMS, usual)
    t.match(computeTerms(PLAIN, {}, 0, 'fast'), { service_tier: 'fast', service_tier_factor: '2' })
    const changes = [{ from: '1970-01-01T00:00:01Z', input: '8', output: '9' }]
    t.match(
      [999, 1000].map((now) => computeTerms({ ...PLAIN, changes }, {}, now)),
      [{ input: '2' }, { input: '8' }],
    )
  })

  t.test('and are read again as they were', async (t) => {
    const all = {
      ...{ ...PLAIN, cached_input: '0.5', cache_write: '1', cache_write_1h: '5', reasoning: '4' },
      ...{ input_audio: '5', output_audio: '6', input_image: '7', output_image: '8', minimum: '0.1' },
      ...{ server_tool_call: '9', server_tools: { mcp: '1' }, discount: '0.5' },
    }
    for (const fields of [PLAIN, all, { ...all, discount_server_tools: true }]) {
      const price = makePrice(fields)
      t.same(readPriceTerms(computeTerms(fields)), price.tiers[0]!.discounted.terms)
    }
    const tier = { service_tier: 'flex', service_tier_factor: '0.5', from_prompt_tokens: 10 }
    t.match(readPriceTerms({ ...PLAIN_TERMS, ...tier }), {
      serviceTier: { name: 'flex', factor: ONE_RATE / 2n },
      fromPromptTokens: 10,
    })
    t.match(readPriceTerms({ ...PLAIN_TERMS, service_tier: 'flex' }), { serviceTier: { factor: ONE_RATE } })
    t.match(readPriceTerms({ ...PLAIN_TERMS, discount: '0.5' }), { toolDiscount: ONE_RATE / 2n })
    t.equal(readPriceTerms({ ...PLAIN_TERMS, input: 'much' }), null)
  })

  t.test('a kind without a price has that of the kind that stands for it', async (t) => {
    const one = parseRate('1')
    const rates = (more: object = {}, ...rest: [boolean?]) =>
      kindRates({ input: 20n, output: 30n, ...more }, ...rest)
    t.same(rates(), {
      ...{ input: 20n, cached: 20n, cacheWrite: 25n, cacheWrite1h: 40n, output: 30n, reasoning: 30n },
      ...{ inputAudio: 20n, outputAudio: 30n, inputImage: 20n, outputImage: 30n },
    })
    t.equal(rates({}, true).cached, 2n, 'a family with cache writes')
    for (const write of ['cache_write', 'cache_write_1h']) t.equal(rates({ [write]: one }).cached, 2n, write)
    t.equal(rates({ cached_input: one }, true).cached, one)
  })

  t.test('a task keeps its price as the configuration has it', async (t) => {
    const fields = {
      ...{
        unit: '1M_tokens',
        input: '2.5',
        output: '3',
        minimum: '0.00000001',
        service_tiers: { flex: '0.5' },
      },
      ...{
        tiers: [{ from_prompt_tokens: 10, input: '4', output: '6' }],
        server_tools: { mcp: '0.000000000001' },
      },
      changes: [{ from: '2100-01-01T00:00:00Z', input: '8', output: '9' }],
    }
    const entry = modelEntry.parse({ id: 'm', context_window: 8000, max_output_tokens: 100, pricing: fields })
    const kept = toKeptPrice(entry, entry.pricing!)
    t.equal(kept.unit, '1M_tokens')
    t.match(kept.pricing, fields)
    t.same(kept.model, { context_window: 8000, max_output_tokens: 100, estimate: entry.estimate })
    t.same(toTokenPrice(JSON.parse(JSON.stringify(kept))), tokenPrice(entry.pricing))
    const { id, pricing: prices, estimate } = modelEntry.parse({ id: 'm', pricing: fields })
    t.same(toKeptPrice({ estimate }, prices!).model, { estimate }, id)
    t.throws(() => toTokenPrice({ ...kept, pricing: { unit: 'image', per_unit: '1' } }), /none by tokens/)
  })

  t.test('the price that holds is the last that has begun', async (t) => {
    const changes = [
      { from: '1970-01-01T00:00:02Z', input: '9', output: '9' },
      // Without a price of input it changes nothing.
      { from: '1970-01-01T00:00:01.500Z', output: '9' },
      { from: '1970-01-01T00:00:01Z', input: '8', output: '9' },
    ]
    const price = makePrice({ ...PLAIN, changes })
    const inputAt = (now: number) => priceAt(price, now).tiers[0]!.full.terms.input
    t.same([0, 999, 1000, 1999, 2000, 1e15].map(inputAt), ['2', '2', '8', '8', '9', '9'].map(parseRate))
    t.equal(findFactor(price, ''), null)
    t.equal(findFactor(price, 'fast'), 2n * ONE_RATE)
    t.equal(findFactor(price, 'flex'), null)
    t.equal(findFactor(makePrice({ ...PLAIN, service_tiers: { fast: '3' } }), 'fast'), 3n * ONE_RATE)
    t.equal(findFactor(makePrice({ ...PLAIN, service_tiers: { flex: '3' } }), 'fast'), 2n * ONE_RATE)
  })
})
