/** The charge of a call by its price, at each instant. */
import fc from 'fast-check'
import t from 'tap'
import { modelEntry, pricing } from '../../../schemas/config/catalog.ts'
import { configFile } from '../../../schemas/config/file.ts'
import { ONE_CREDIT, ONE_RATE, parseCredits, parseRate, printCredits } from '../../../schemas/money.ts'
import { lacksCacheHitPrice, withCacheHits } from '../../../src/core/pricing/cache-hits.ts'
import { modelAt, pricesInOrder } from '../../../src/core/pricing/changes.ts'
import { listChargedItems } from '../../../src/core/pricing/charged-items.ts'
import { type EstimatedCall, estimateCharge } from '../../../src/core/pricing/estimate.ts'
import { tokenCharge, tokenPrice } from '../../../src/core/pricing/pricing.ts'
import { keepExtra, MAX_REPORTED_TOKENS, NO_USAGE, type TokenUsage } from '../../../src/core/pricing/usage.ts'
import { createCatalog } from '../../../src/core/routing/catalog.ts'
import { everyRun } from '../../support/every-run.ts'

t.test('charge is exact', async (t) => {
  // Every charge against an independent computation in fractions of whole numbers.
  // See docs/failure-modes.md, "Money", rows 13, 14 and 15.
  /** A non-negative fraction. */
  interface Fraction {
    readonly over: bigint
    readonly under: bigint
  }
  const fraction = (over: bigint, under = 1n): Fraction => ({ over, under })
  const plus = (a: Fraction, b: Fraction) => fraction(a.over * b.under + b.over * a.under, a.under * b.under)
  const times = (a: Fraction, b: Fraction) => fraction(a.over * b.over, a.under * b.under)
  /** The nearest whole number of 1e-8 credit, a half up. */
  const rounded = ({ over, under }: Fraction): bigint => {
    const units = over * 10n ** 8n
    const whole = units / under
    return 2n * (units - whole * under) >= under ? whole + 1n : whole
  }

  /** "12.5" is 125 / 10. */
  const decimal = (text: string): Fraction => {
    const [whole = '', behind = ''] = text.split('.')
    return fraction(BigInt(whole + behind), 10n ** BigInt(behind.length))
  }

  interface Prices {
    readonly input: string
    readonly output: string
    readonly cached_input?: string | undefined
    readonly cache_write?: string | undefined
  }

  interface Offer extends Prices {
    readonly tiers: ReadonlyArray<Prices & { readonly from_prompt_tokens: number }>
    readonly server_tool_call?: string | undefined
    readonly discount?: string | undefined
    readonly discount_server_tools?: boolean | undefined
  }

  /** The charge in fractions. */
  function expectedCharge(offer: Offer, usage: TokenUsage): bigint {
    const above = offer.tiers.filter((tier) => usage.prompt >= tier.from_prompt_tokens)
    const prices = above.sort((a, b) => b.from_prompt_tokens - a.from_prompt_tokens)[0] ?? offer
    const input = decimal(prices.input)
    const writesCache = [offer, ...offer.tiers].some(({ cache_write }) => cache_write !== undefined)
    const hits = writesCache ? times(input, fraction(1n, 10n)) : input
    const cached = prices.cached_input === undefined ? hits : decimal(prices.cached_input)
    const write =
      prices.cache_write === undefined ? times(input, fraction(5n, 4n)) : decimal(prices.cache_write)
    const million = fraction(1n, 1_000_000n)
    const part = (tokens: number, price: Fraction) => times(times(fraction(BigInt(tokens)), price), million)
    const tools = times(fraction(BigInt(usage.serverToolCalls)), decimal(offer.server_tool_call ?? '0'))
    const tokens = [
      part(usage.prompt - usage.cached - usage.cacheWrite, input),
      part(usage.cached, cached),
      part(usage.cacheWrite, write),
      part(usage.output, decimal(prices.output)),
    ].reduce(plus)
    const discount = decimal(offer.discount ?? '1')
    const toolDiscount = offer.discount_server_tools === true ? discount : decimal('1')
    return rounded(plus(times(tokens, discount), times(tools, toolDiscount)))
  }

  const read = (offer: Offer) => tokenPrice(pricing.parse({ unit: '1M_tokens', ...offer }))!

  /** Ten places: what a quarter more of it, the price of cache writes, needs as well is within the twelve that are kept. */
  const price = fc
    .tuple(fc.nat(5000), fc.nat(10 ** 9), fc.nat(10))
    .map(([whole, behind, digits]) =>
      `${whole}.${String(behind).padStart(10, '0').slice(0, digits)}`.replace(/\.$/, ''),
    )
  const prices = {
    input: price,
    output: price,
    cached_input: fc.option(price, { nil: undefined }),
    cache_write: fc.option(price, { nil: undefined }),
  }
  const offer: fc.Arbitrary<Offer> = fc.record({
    ...prices,
    tiers: fc.uniqueArray(fc.record({ ...prices, from_prompt_tokens: fc.integer({ min: 1, max: 1000 }) }), {
      maxLength: 3,
      selector: ({ from_prompt_tokens }) => from_prompt_tokens,
    }),
    server_tool_call: fc.option(price, { nil: undefined }),
    discount: fc.option(fc.constantFrom('0', '0.5', '0.8', '0.333333333333', '1'), { nil: undefined }),
    discount_server_tools: fc.option(fc.boolean(), { nil: undefined }),
  })
  /** Around the tiers, and far above them. */
  const promptTokens = fc.oneof(fc.nat(2000), fc.nat(2_000_000))
  const usage: fc.Arbitrary<TokenUsage> = fc
    .tuple(promptTokens, fc.nat(2_000_000), fc.nat(100), fc.nat(100), fc.nat(20))
    .map(([prompt, output, cachedShare, writeShare, serverToolCalls]) => {
      const cached = Math.floor((prompt * cachedShare) / 100)
      const cacheWrite = Math.floor(((prompt - cached) * writeShare) / 100)
      return { prompt, cached, cacheWrite, output, reasoning: 0, serverToolCalls }
    })

  t.test('every charge is exact, and rounded once', async () => {
    everyRun(t, { numRuns: 2000 }, [offer, usage], (offered, used) => {
      return tokenCharge(read(offered), used, 0) === expectedCharge(offered, used)
    })
  })

  t.test('around the largest number that a computer counts to in ones, too', async () => {
    const cents = fc.constantFrom('0', '0.005', '0.075', '0.15', '2.5', '75', '5000')
    const cheap = fc.record({
      input: cents,
      output: cents,
      cached_input: cents,
      tiers: fc.constant([]),
      server_tool_call: fc.constantFrom('0.01', '9999999999', '0.000000000001'),
      discount: fc.constantFrom('0.8', '0.07', '1', '0.333333333333'),
    })
    const count = fc.oneof(fc.nat(3), fc.nat(MAX_REPORTED_TOKENS))
    const reported = fc
      .tuple(count, count, fc.nat(100), count)
      .map(([prompt, output, share, serverToolCalls]): TokenUsage => {
        const cached = Math.floor((prompt * share) / 100)
        return { prompt, cached, cacheWrite: prompt - cached, output, reasoning: 0, serverToolCalls }
      })
    everyRun(t, { numRuns: 2000 }, [cheap, reported], (offered, used) => {
      return tokenCharge(read(offered), used, 0) === expectedCharge(offered, used)
    })
  })

  t.test('a part of the output that was reasoned costs what the rest does, once', async (t) => {
    const offered = read({ input: '1', output: '3', tiers: [] })
    const spoken = { ...NO_USAGE, prompt: 10, output: 10 }
    t.equal(tokenCharge(offered, { ...spoken, reasoning: 10 }, 0), tokenCharge(offered, spoken, 0))
  })

  t.test('a half of the last unit is rounded up, less is not', async (t) => {
    const charge = (input: string) =>
      tokenCharge(read({ input, output: '0', tiers: [] }), { ...NO_USAGE, prompt: 1 }, 0)
    t.equal(charge('0.005'), 1n)
    t.equal(charge('0.004999999999'), 0n)
    t.equal(charge('0.015'), 2n)
  })

  t.test('a tier holds from its first token on, cached ones included', async (t) => {
    const tiered = (from: number, more: Omit<Prices, 'from_prompt_tokens'>) =>
      read({ input: '1', output: '10', cached_input: '0.1', tiers: [{ from_prompt_tokens: from, ...more }] })
    const doubled = tiered(200_000, { input: '2', output: '20', cached_input: '0.2' })
    const mixed = tiered(272_000, { input: '2', output: '15', cached_input: '0.2' })
    const credits = (units: bigint) => Number(units) / 1e8
    const call = (prompt: number, cached = 0) => ({ ...NO_USAGE, prompt, cached, output: 1_000_000 })
    t.equal(credits(tokenCharge(doubled, call(199_999), 0)), 10.199999)
    t.equal(credits(tokenCharge(doubled, call(200_000), 0)), 20.4)
    t.equal(credits(tokenCharge(doubled, call(200_000, 150_000), 0)), 20.13)
    t.equal(credits(tokenCharge(doubled, call(199_999, 150_000), 0)), 10.064999)
    t.equal(credits(tokenCharge(mixed, call(271_999), 0)), 10.271999)
    t.equal(credits(tokenCharge(mixed, call(272_000), 0)), 15.544)
  })

  t.test('the tier of a prompt that was summarised is that of the most that was read at once', async (t) => {
    const tiers = [{ from_prompt_tokens: 200_000, input: '2', output: '20' }]
    const price = read({ input: '1', output: '10', tiers })
    const charge = (largestPrompt: number) => {
      const usage = { ...NO_USAGE, prompt: 250_000, output: 1000 }
      return tokenCharge(price, { ...usage, ...keepExtra({ compaction: { count: 1, largestPrompt } }) }, 0)
    }
    t.equal(charge(199_999), 26_000_000n)
    t.equal(charge(200_000), 52_000_000n)
  })

  t.test('cache writes cost a quarter more than input, once; hits their own price', async (t) => {
    const family = read({ input: '4', output: '0', cached_input: '0.4', tiers: [] })
    const used = { ...NO_USAGE, prompt: 1_000_000, cacheWrite: 400_000, cached: 100_000 }
    t.equal(tokenCharge(family, used, 0), 4_04000000n)
  })

  t.test(
    'a family with cache writes bills cache hits at a tenth of the input where they have no price',
    async (t) => {
      const family = read({ input: '4', output: '0', cache_write: '5', tiers: [] })
      t.equal(tokenCharge(family, { ...NO_USAGE, prompt: 1_000_000, cached: 1_000_000 }, 0), 40000000n)
    },
  )

  t.test('what is kept for an hour costs twice the input, also where nothing else is peculiar', async (t) => {
    const used = { ...NO_USAGE, prompt: 1_000_000, cacheWrite: 1_000_000 }
    const hour = { ...used, ...keepExtra({ cacheWrite1h: 1_000_000 }) }
    const plain = read({ input: '4', output: '0', tiers: [] })
    t.same(
      [used, hour].map((usage) => tokenCharge(plain, usage, 0)),
      [5_00000000n, 8_00000000n],
    )
  })

  t.test('a discount lowers the prices of tokens, and of server tools where it says so', async (t) => {
    const offered = { input: '10', output: '0', server_tool_call: '2.022', discount: '0.5', tiers: [] }
    const used = { ...NO_USAGE, prompt: 1_000_000, serverToolCalls: 2 }
    t.equal(tokenCharge(read(offered), used, 0), 9_04400000n)
    t.equal(tokenCharge(read({ ...offered, discount_server_tools: true }), used, 0), 7_02200000n)
    const searched = { ...used, ...keepExtra({ tools: { web_search: 2 } }) }
    const own = { ...offered, server_tools: { web_search: '3' } }
    t.equal(tokenCharge(read(own), searched, 0), 11_00000000n, 'and those with a separate price')
  })

  t.test('a discount ends at its instant', async (t) => {
    const end = '2026-12-31T00:00:00Z'
    const offered = tokenPrice(
      pricing.parse({ unit: '1M_tokens', input: '10', output: '0', discount: '0.8', discount_until: end }),
    )!
    const used = { ...NO_USAGE, prompt: 1_000_000 }
    t.equal(tokenCharge(offered, used, Date.parse(end) - 1), 8_00000000n)
    t.equal(tokenCharge(offered, used, Date.parse(end)), 10_00000000n)
  })

  t.test('what is not priced by tokens has no token price', async (t) => {
    t.equal(tokenPrice(undefined), null)
    t.equal(tokenPrice(pricing.parse({ unit: 'image', per_unit: '1' })), null)
    t.equal(tokenPrice(pricing.parse({ unit: '1M_tokens', output: '1' })), null)
  })

  t.test('each token is charged once, at the price of its kind', async (t) => {
    const prices = {
      ...{ input: '2', output: '3', cached_input: '0.2', cache_write: '2.5', reasoning: '5' },
      ...{ input_audio: '7', input_image: '11', output_audio: '13', output_image: '17' },
    }
    const offered = tokenPrice(
      pricing.parse({ unit: '1M_tokens', ...prices, service_tiers: { flex: '0.5' } }),
    )!
    const { terms } = offered.tiers[0]!.full
    const part = fc.nat(3000)
    const extra = fc.record({
      ...{ cacheWrite1h: part, inputAudio: part, inputImage: part, outputAudio: part, outputImage: part },
      tools: fc.constant({}),
    })
    const kinds = new Map<string, string>([...Object.entries(prices), ['cache_write_1h', '4']])
    fc.assert(
      fc.property(
        usage,
        extra,
        part,
        fc.constantFrom('', 'flex', 'default'),
        (used, more, reasoning, tier) => {
          const whole: TokenUsage = {
            ...used,
            serverToolCalls: 0,
            reasoning: Math.min(reasoning, used.output),
            extra: more,
          }
          const items = listChargedItems(whole, terms)
          const sum = items.reduce(
            (all, { name, count }) => plus(all, times(fraction(BigInt(count)), decimal(kinds.get(name)!))),
            fraction(0n),
          )
          const factor = fraction(1n, (tier === 'flex' ? 2n : 1n) * 1_000_000n)
          return (
            items.reduce((all, { count }) => all + count, 0) === whole.prompt + whole.output &&
            tokenCharge(offered, whole, 0, tier) === rounded(times(sum, factor))
          )
        },
      ),
    )
    t.pass('every run held')
  })

  t.test('items have a name, and none is empty', async (t) => {
    const items = (fields: object, usage: Partial<TokenUsage>) =>
      listChargedItems(
        { ...NO_USAGE, ...usage },
        tokenPrice(pricing.parse({ unit: '1M_tokens', input: '1', output: '2', ...fields }))!.tiers[0]!.full
          .terms,
      ).map(({ name, count, per }) => `${name} ${count} ${per}`)
    const used = { prompt: 10, cached: 2, cacheWrite: 3, output: 7, reasoning: 4, serverToolCalls: 5 }
    const usual = ['input 5 million', 'cached_input 2 million', 'cache_write 3 million']
    t.same(items({}, used), [...usual, 'output 7 million', 'built_in_tools 5 each'])
    t.same(items({ reasoning: '3' }, used), [
      ...usual,
      ...['output 3 million', 'reasoning 4 million', 'built_in_tools 5 each'],
    ])
    const extra = {
      ...{ cacheWrite1h: 1, inputAudio: 2, inputImage: 1, outputAudio: 1, outputImage: 2 },
      tools: { mcp: 2 },
    }
    t.same(items({ server_tools: { mcp: '1', web_search: '1' } }, { ...used, extra }), [
      ...['input 2 million', 'input_audio 2 million', 'input_image 1 million', 'cached_input 2 million'],
      ...['cache_write 2 million', 'cache_write_1h 1 million', 'output 4 million', 'output_audio 1 million'],
      ...['output_image 2 million', 'mcp 2 each', 'built_in_tools 3 each'],
    ])
    t.same(items({}, NO_USAGE), [])
    t.same(items({}, { prompt: 3, cached: 5, output: 1 }), ['cached_input 5 million', 'output 1 million'])
  })

  t.test('a single kind with a price of its own is charged and estimated by it', async (t) => {
    const model = modelEntry.parse({ id: 'm', estimate: { image_tokens: 10, audio_tokens: 10 } })
    const call: EstimatedCall = {
      ...{ conversationBytes: 40, promptBytes: 40, outputLimit: 10, choices: 1 },
      ...{ builtInTools: [], toolCallLimit: null, links: { image: 1, file: 0, audio: 1 } },
    }
    const million = { input: '1000000', output: '1000000' }
    const makePrice = (fields: object) =>
      tokenPrice(pricing.parse({ unit: '1M_tokens', ...million, ...fields }))!
    const whole = (fields: object) => {
      const estimate = estimateCharge(makePrice(fields), model, call, { mode: 'worst_case', now: 0 })
      return printCredits(estimate)
    }
    t.equal(whole({}), '40')
    for (const kind of ['reasoning', 'output_audio', 'output_image', 'input_audio', 'input_image']) {
      t.equal(whole({ [kind]: '3000000' }), '60', kind)
      t.equal(whole({ [kind]: '500000' }), kind.startsWith('input') ? '35' : '40', kind)
    }
    const outputs = { reasoning: '3000000', output_audio: '3000000', output_image: '2000000' }
    t.equal(whole(outputs), '60', 'all kinds of output')
    const tiers = [{ from_prompt_tokens: 1000, ...million, reasoning: '3000000' }]
    const reasoned = { ...NO_USAGE, prompt: 1000, output: 10, reasoning: 10 }
    t.equal(
      printCredits(tokenCharge(makePrice({ tiers }), reasoned, 0)),
      '1030',
      'even if only a tier sets it',
    )
    t.equal(
      printCredits(tokenCharge(makePrice({ reasoning: '3000000' }), { ...reasoned, prompt: 0 }, 0)),
      '30',
    )
    t.equal(whole({ minimum: '50' }), '50')
  })

  t.test('a minimum is no charge where there is nothing to charge', async (t) => {
    const offered = tokenPrice(
      pricing.parse({ unit: '1M_tokens', input: '1', output: '1', minimum: '0.25' }),
    )!
    t.equal(tokenCharge(offered, NO_USAGE, 0), 0n)
    t.equal(tokenCharge(offered, { ...NO_USAGE, prompt: 1 }, 0), 25_000_000n)
    t.equal(tokenCharge(offered, { ...NO_USAGE, prompt: 1_000_000 }, 0), 100_000_000n)
    const perCall = tokenPrice(
      pricing.parse({ unit: '1M_tokens', input: '0', output: '0', minimum: '0.25' }),
    )!
    t.equal(tokenCharge(perCall, NO_USAGE, 0), 0n)
    const least = tokenPrice(
      pricing.parse({ unit: '1M_tokens', input: '0', output: '0', minimum: '0.00000001' }),
    )!
    t.equal(tokenCharge(least, { ...NO_USAGE, prompt: 1 }, 0), 1n)
    t.equal(tokenCharge(perCall, { ...NO_USAGE, prompt: 1 }, 0), 25_000_000n, 'a price per call')
  })
})

t.test('cache hits cost a tenth', async (t) => {
  // A model family with cache writes bills cache hits at a tenth of the input where it has no price for them.
  const priced = (more: object) => ({ unit: '1M_tokens', input: '10', output: '0', ...more })
  const tiers = [{ from_prompt_tokens: 2_000_000, input: '20', output: '0' }]
  const changes = [{ from: '2100-01-01T00:00:00Z', input: '30', output: '0' }]

  const channel = (id: string, protocol: string, models: readonly string[]) => ({
    ...{ id, protocol, base_url: 'https://x.test/v1', api_key: 'k' },
    models: Object.fromEntries(models.map((model) => [model, model])),
  })

  const catalog = createCatalog(
    configFile.parse({
      models: [
        { id: 'written', pricing: priced({ cache_write: '12', tiers, changes }) },
        { id: 'hour', family: 'ballad', pricing: priced({ cache_write_1h: '20' }) },
        { id: 'sibling', family: 'ballad', pricing: priced({}) },
        { id: 'by-channel', aliases: ['other-name'], pricing: priced({}) },
        { id: 'own-price', family: 'ballad', pricing: priced({ cached_input: '3' }) },
        { id: 'plain', family: 'sonata', pricing: priced({}) },
        { id: 'no-family', pricing: priced({}) },
        { id: 'not-priced', callable: false },
      ],
      channels: [
        {
          ...channel('m', 'messages', ['other-name']),
          cost: { 'other-name': { unit: '1M_tokens', input: '5', output: '0' } },
        },
        channel('c', 'chat-completions', ['written', 'hour', 'sibling', 'own-price', 'plain', 'no-family']),
      ],
    }),
  )

  const modelNamed = (id: string) => catalog.resolve(id)!

  const hits = (model: string, million = 1, now = 0): string => {
    const prompt = million * 1_000_000
    return printCredits(tokenCharge(modelNamed(model).price!, { ...NO_USAGE, prompt, cached: prompt }, now))
  }

  t.test('by its own prices, those of its family, or its channel', async (t) => {
    for (const model of ['written', 'hour', 'sibling', 'by-channel']) t.equal(hits(model), '1', model)
    t.equal(hits('own-price'), '3')
    for (const model of ['plain', 'no-family']) t.equal(hits(model), '10', model)
  })

  t.test('tiers and planned prices too', async (t) => {
    t.equal(hits('written', 2), '4')
    t.equal(hits('written', 1, Date.parse('2100-01-01T00:00:00Z')), '3')
  })

  t.test('a model by tokens that has a price of input and none of cache hits lacks one', async (t) => {
    const lacks = (fields: object) => lacksCacheHitPrice(pricing.parse(fields))
    t.ok(lacks(priced({})))
    t.notOk(lacks(priced({ cached_input: '1' })))
    t.notOk(lacks({ unit: '1M_tokens', output: '1' }))
    t.notOk(lacks({ unit: 'image', per_unit: '1', input: '1' }))
  })

  t.test('prices get those of cache hits wherever they have none', async (t) => {
    const filled = (fields: object) => withCacheHits(pricing.parse(fields))
    const more = (list: readonly object[]) => list.map((prices) => ({ ...prices, cached_input: '2' }))
    t.same(filled(priced({ tiers, changes })), {
      ...pricing.parse(priced({ cached_input: '1', tiers: more(tiers), changes })),
      changes: pricing.parse(priced({ changes: [{ ...changes[0], cached_input: '3' }] })).changes,
    })
    const own = priced({ cached_input: '7', tiers: [{ ...tiers[0], cached_input: '8' }] })
    t.same(filled(own), pricing.parse(own))
    const image = pricing.parse({ unit: 'image', per_unit: '1', input: '1' })
    t.equal(withCacheHits(image), image)
    t.same(filled({ unit: '1M_tokens', output: '1' }), pricing.parse({ unit: '1M_tokens', output: '1' }))
  })

  t.test('the operator pays a tenth as well', async (t) => {
    const [route] = catalog.routes(modelNamed('by-channel'), 'messages')
    const used = { ...NO_USAGE, prompt: 1_000_000, cached: 1_000_000 }
    t.equal(printCredits(tokenCharge(route!.cost!, used, 0)), '0.5')
  })
})

t.test('a decimal may have any zeros, in a hundred characters', async (t) => {
  t.equal(parseCredits(`${'0'.repeat(20)}1.5${'0'.repeat(20)}`), parseCredits('1.5'))
  t.equal(parseCredits(`${'0'.repeat(99)}1`), parseCredits('1'))
  t.throws(() => parseCredits(`${'0'.repeat(100)}1`), /more than 100 characters/)
})

t.test('amounts have 8 places, prices 12, both 10 digits before the point', async (t) => {
  t.same([ONE_CREDIT, ONE_RATE], [100_000_000n, 1_000_000_000_000n])
  t.equal(parseCredits('9999999999.99999999'), 999_999_999_999_999_999n)
  t.equal(parseRate('9999999999.999999999999'), 9_999_999_999_999_999_999_999n)
  for (const text of ['10000000000', '0.000000001']) t.throws(() => parseCredits(text), RangeError, text)
  for (const text of ['10000000000', '0.0000000000001']) t.throws(() => parseRate(text), RangeError, text)
})

t.test('planned prices hold from their instant on', async (t) => {
  const FIRST = '2026-03-01T00:00:00Z'
  const SECOND = '2026-06-01T00:00:00+02:00'
  const END = '2026-06-02T00:00:00Z'
  const change = (from: string, input: string, more: object = {}) => ({ from, input, output: '0', ...more })
  const read = (...changes: object[]) => ({
    entry: modelEntry.parse({ id: 'm', pricing: { unit: '1M_tokens', input: '1', output: '0', changes } }),
  })
  const inputAt = (model: ReturnType<typeof read>, now: number) =>
    (modelAt(model, now).entry.pricing as { input?: bigint }).input
  // The order of the file is not that of time.
  const model = read(change(SECOND, '3', { discount: '0.5', discount_until: END }), change(FIRST, '2'))

  t.test('to the millisecond, in the order of time', async (t) => {
    t.same(
      pricesInOrder(model.entry.pricing!).map(({ from }) => from),
      [null, FIRST, SECOND],
    )
    for (const [at, before, after] of [
      [FIRST, '1', '2'],
      [SECOND, '2', '3'],
    ] as const) {
      t.equal(inputAt(model, Date.parse(at) - 1), parseRate(before))
      t.equal(inputAt(model, Date.parse(at)), parseRate(after))
    }
    t.equal(inputAt(read(), Date.parse(SECOND)), parseRate('1'), 'without changes, always')
  })

  t.test('a model as it is then has no changes left, and only the discount that holds', async (t) => {
    const discountAt = (now: number) => modelAt(model, now).entry.pricing!.discount
    t.equal(discountAt(Date.parse(SECOND) - 1), undefined)
    t.equal(discountAt(Date.parse(SECOND)), parseRate('0.5'))
    t.equal(discountAt(Date.parse(END) - 1), parseRate('0.5'))
    t.equal(discountAt(Date.parse(END)), undefined)
    t.equal(
      modelAt(read(change(FIRST, '2', { discount: '0.9' })), Date.parse(END)).entry.pricing!.discount,
      parseRate('0.9'),
      'a discount without an end',
    )
    const { pricing: then } = modelAt(model, Date.parse(END)).entry
    t.same(then!.changes, [])
    t.equal(then!.unit, '1M_tokens')
    t.notOk('discount_until' in then! || 'discount' in then!)
    t.notOk('discount' in modelAt(model, Date.parse(FIRST)).entry.pricing!)
    const free = { entry: modelEntry.parse({ id: 'free' }) }
    t.equal(modelAt(free, 0), free)
  })
})
