/** What calls cost, what they may cost at most, and what is free of a wallet and a budget. */
import fc from 'fast-check'
import t from 'tap'
import type { WalletTotals } from '../../../schemas/accounts/account.ts'
import { type BudgetPeriods, makeWalletId, parseWalletId } from '../../../schemas/accounts/budget.ts'
import { modelEntry, pricing, SERVER_TOOLS } from '../../../schemas/config/catalog.ts'
import { configFile } from '../../../schemas/config/file.ts'
import { ONE_CREDIT, ONE_RATE, parseCredits, parseRate, printCredits } from '../../../schemas/money.ts'
import { lacksCacheHitPrice, withCacheHits } from '../../../src/core/pricing/cache-hits.ts'
import { compareCatalog } from '../../../src/core/pricing/catalog-difference.ts'
import { modelAt, pricesInOrder } from '../../../src/core/pricing/changes.ts'
import { listChargedItems } from '../../../src/core/pricing/charged-items.ts'
import {
  type EstimatedCall,
  estimateCharge,
  largestPart,
  specifiedCase,
  worstCase,
} from '../../../src/core/pricing/estimate.ts'
import { toKeptPrice, toTokenPrice } from '../../../src/core/pricing/kept-price.ts'
import { readPriceList, toCredits } from '../../../src/core/pricing/price-list.ts'
import {
  chargeTerms,
  findFactor,
  priceAt,
  tokenCharge,
  tokenPrice,
} from '../../../src/core/pricing/pricing.ts'
import { kindRates, readPriceTerms } from '../../../src/core/pricing/terms.ts'
import { keepExtra, MAX_REPORTED_TOKENS, NO_USAGE, type TokenUsage } from '../../../src/core/pricing/usage.ts'
import { boundUsage, limitUsage, MAX_CONTEXT_TOKENS } from '../../../src/core/pricing/usage-bounds.ts'
import { createCatalog } from '../../../src/core/routing/catalog.ts'
import { BudgetView } from '../../../src/credentials/budget.ts'
import { WalletView } from '../../../src/credentials/wallet.ts'
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

t.test('reported usage is bounded', async (t) => {
  // An upstream's counts are charged up to what one call can use, and no further.
  const pricing = { unit: '1M_tokens', input: '1', output: '2' }
  const plain = modelEntry.parse({ id: 'plain', pricing })
  const small = modelEntry.parse({ id: 'small', context_window: 8000, max_output_tokens: 1000, pricing })
  const PLAIN = { builtInTools: [], toolCallLimit: null }
  const ONE = { ...PLAIN, outputLimit: null, choices: 1 }
  const SEARCH = { ...ONE, builtInTools: ['web_search'] } as const
  const used = (usage: Partial<TokenUsage>): TokenUsage => ({ ...NO_USAGE, ...usage })

  t.test('what a call can use stands as it was reported', async (t) => {
    const usage = used({ prompt: 8000, cached: 3000, cacheWrite: 5000, output: 1000, reasoning: 1000 })
    const bounded = boundUsage(usage, small, ONE)
    t.equal(bounded.usage, usage)
    t.same(bounded.beyond, [])
  })

  t.test('what no call can use is cut to its bound, and named', async (t) => {
    const cases = [
      [{ prompt: 8001 }, ONE, { prompt: 8000 }, 'prompt 8001 > 8000'],
      [{ output: 1001 }, ONE, { output: 1000 }, 'output 1001 > 1000'],
      [{ output: 3001 }, { ...PLAIN, outputLimit: 50, choices: 3 }, { output: 3000 }, 'output 3001 > 3000'],
      [{ output: 5001 }, { ...PLAIN, outputLimit: 5000, choices: 1 }, { output: 5000 }, 'output 5001 > 5000'],
      [{ prompt: 8, cached: 9 }, ONE, { prompt: 8, cached: 8 }, 'cached 9 > 8'],
      [
        { prompt: 8, cached: 5, cacheWrite: 5 },
        ONE,
        { prompt: 8, cached: 5, cacheWrite: 3 },
        'cacheWrite 5 > 3',
      ],
      [{ prompt: 16_001 }, { ...ONE, prompts: 2 }, { prompt: 16_000 }, 'prompt 16001 > 16000'],
      [{ output: 8, reasoning: 9 }, ONE, { output: 8, reasoning: 8 }, 'reasoning 9 > 8'],
      [
        { prompt: 16_000, serverToolCalls: 1e9 },
        SEARCH,
        { prompt: 16_000, serverToolCalls: 100 },
        'serverToolCalls 1000000000 > 100',
      ],
      [
        { serverToolCalls: 5 },
        { ...SEARCH, toolCallLimit: 2 },
        { serverToolCalls: 2 },
        'serverToolCalls 5 > 2',
      ],
      // A model that searches without being asked to.
      [{ serverToolCalls: 101 }, ONE, { serverToolCalls: 100 }, 'serverToolCalls 101 > 100'],
    ] as const
    for (const [reported, call, charged, beyond] of cases)
      t.same(boundUsage(used(reported), small, call), { usage: used(charged), beyond: [beyond] })
    t.match(boundUsage(used({ prompt: 1e9, output: 1e9 }), plain, ONE).usage, {
      prompt: MAX_CONTEXT_TOKENS,
      output: MAX_CONTEXT_TOKENS,
    })
  })

  t.test('calls of tools beyond the estimate are charged where the client sets no limit', async (t) => {
    const tokens = { prompt: 20_000, output: 900 }
    const two = { ...ONE, builtInTools: ['web_search', 'mcp'] } as const
    for (const [call, count] of [
      [ONE, 11],
      [SEARCH, 100],
      [two, 200],
      [{ ...ONE, toolCallLimit: 2 }, 11],
    ] as const) {
      const usage = used({ ...tokens, serverToolCalls: count })
      const bounded = boundUsage(usage, small, call)
      t.equal(bounded.usage, usage)
      t.same(bounded.beyond, [])
    }
    const { beyond } = boundUsage(used({ serverToolCalls: 3 }), small, { ...SEARCH, toolCallLimit: 2 })
    t.same(beyond, ['serverToolCalls 3 > 2'])
  })

  t.test('a prompt is read once more behind each tool that the upstream ran', async (t) => {
    const usage = used({ prompt: 24_000, serverToolCalls: 2 })
    t.same(boundUsage(usage, small, SEARCH), { usage, beyond: [] })
    t.match(boundUsage(used({ prompt: 24_001, serverToolCalls: 2 }), small, SEARCH).usage, {
      prompt: 24_000,
    })
  })

  t.test('a prompt may be read behind each call of tools that no report counts', async (t) => {
    for (const tool of ['mcp', 'code_interpreter'] as const) {
      const call = { ...ONE, builtInTools: ['web_search', tool] } as const
      const usage = used({ prompt: 201 * 8000 })
      t.same(boundUsage(usage, small, call), { usage, beyond: [] }, tool)
      t.same(boundUsage(used({ prompt: 201 * 8000 + 1 }), small, call).beyond, ['prompt 1608001 > 1608000'])
      const limited = boundUsage(used({ prompt: 24_001 }), small, { ...call, toolCallLimit: 2 })
      t.same(limited.beyond, ['prompt 24001 > 24000'])
    }
  })

  t.test('each summary reads the prompt and writes once more, as often as the prompt is read', async (t) => {
    const compacted = (count: number, counts: Partial<TokenUsage>) =>
      used({ ...counts, ...keepExtra({ compaction: { count, largestPrompt: 8000 } }) })
    const usage = compacted(1, { prompt: 16_000, output: 2000 })
    t.same(boundUsage(usage, small, ONE), { usage, beyond: [] })
    t.match(boundUsage(compacted(9, { prompt: 16_001, output: 2001 }), small, ONE), {
      usage: { prompt: 16_000, output: 2000 },
      beyond: ['prompt 16001 > 16000', 'output 2001 > 2000'],
    })
    const searched = compacted(2, { prompt: 32_000, serverToolCalls: 1 })
    t.same(boundUsage(searched, small, SEARCH).beyond, [])
  })

  t.test('bounded usage is within its bounds, and its tools within what is believed', async (t) => {
    const count = fc.oneof(fc.nat(20_000), fc.nat(3 * MAX_REPORTED_TOKENS))
    const usage = fc.record({
      prompt: count,
      cached: count,
      cacheWrite: count,
      output: count,
      reasoning: count,
      serverToolCalls: count,
    })
    const asked = fc.record({
      outputLimit: fc.constant(null),
      choices: fc.integer({ min: 1, max: 8 }),
      builtInTools: fc.subarray([...SERVER_TOOLS]),
      toolCallLimit: fc.option(fc.nat(30)),
    })
    fc.assert(
      fc.property(usage, asked, (reported, call) => {
        const once = boundUsage(reported, small, call)
        const twice = boundUsage(once.usage, small, call)
        const { prompt, cached, cacheWrite, output, reasoning, serverToolCalls } = once.usage
        const believed = 100 * Math.max(1, call.builtInTools.length)
        const mostCalls = call.builtInTools.length === 0 ? 100 : (call.toolCallLimit ?? believed)
        const isCounted = call.builtInTools.every((tool) => tool === 'web_search' || tool === 'url_context')
        return (
          twice.beyond.length === 0 &&
          serverToolCalls <= mostCalls &&
          prompt <= 8000 * (1 + (isCounted ? serverToolCalls : mostCalls)) &&
          output <= 1000 * call.choices &&
          cached + cacheWrite <= prompt &&
          reasoning <= output
        )
      }),
    )
    t.pass('every run held')
  })

  t.test('a report that contradicts itself bills no more than the formula for the delivery', async (t) => {
    const price = tokenPrice({
      ...small.pricing!,
      ...{ cache_write: 9_000_000_000_000n, output_audio: 90_000_000_000_000n },
      server_tool_call: 1_000_000_000_000n,
    })!
    const count = fc.nat(30_000)
    const extra = fc.record({
      cacheWrite1h: count,
      inputAudio: count,
      inputImage: count,
      outputAudio: count,
      outputImage: count,
      tools: fc.constant({}),
    })
    const reported = fc.record({
      ...{ prompt: count, cached: count, cacheWrite: count, output: count, reasoning: count },
      ...{ serverToolCalls: fc.nat(20), extra },
    })
    const delivered = fc.record({ prompt: fc.nat(9000), output: fc.nat(2000), serverToolCalls: fc.nat(10) })
    fc.assert(
      fc.property(reported, delivered, (usage, most) => {
        const billed = tokenCharge(price, limitUsage(boundUsage(usage, small, ONE).usage, most), 0)
        return billed >= 0n && billed <= tokenCharge(price, { ...NO_USAGE, ...most }, 0)
      }),
    )
    t.pass('every run held')
  })
})

t.test('worst case of a call', async (t) => {
  // What the pre-charge takes for the worst case of a call.
  const model = modelEntry.parse({ id: 'm' })
  const call: EstimatedCall = {
    conversationBytes: 41,
    promptBytes: 41,
    outputLimit: 7,
    choices: 1,
    builtInTools: [],
    toolCallLimit: null,
    links: { image: 0, file: 0, audio: 0 },
  }

  const WORST = { mode: 'worst_case', now: 0 } as const

  t.test('a plain call: bytes of the prompt, and its limit for each choice', async (t) => {
    t.match(worstCase(model, call), { prompt: 11, output: 7, serverToolCalls: 0 })
    t.match(worstCase(model, { ...call, choices: 3 }), { prompt: 11, output: 21, serverToolCalls: 0 })
  })

  t.test(
    'a call whose prompt may be summarised first is held twice, by the price of its prompt',
    async (t) => {
      const long = { ...call, promptBytes: 600_000, compacts: true }
      const compaction = { count: 1, largestPrompt: 150_000 }
      t.match(worstCase(model, long), { prompt: 300_000, output: 14, extra: { compaction } })
      t.match(worstCase(model, { ...long, choices: 3 }), { output: 28 })
      const tiers = [{ from_prompt_tokens: 200_000, input: '1000', output: '1000' }]
      for (const more of [{}, { reasoning: '2' }]) {
        const fields = { unit: '1M_tokens', input: '1', output: '1', tiers, ...more }
        const price = tokenPrice(modelEntry.parse({ id: 'm', pricing: fields }).pricing)!
        t.ok(printCredits(estimateCharge(price, model, long, WORST)).startsWith('0.3000'))
      }
    },
  )

  t.test('each server tool counts as many calls as the model says', async (t) => {
    const search: EstimatedCall = { ...call, builtInTools: ['web_search', 'code_interpreter'] }
    t.match(worstCase(model, search), { prompt: 11, output: 7, serverToolCalls: 6 })
    const bounded = modelEntry.parse({ id: 'm', estimate: { server_tool_calls: 5 } })
    t.match(worstCase(bounded, search), { serverToolCalls: 10 })
    t.match(
      worstCase(bounded, { ...search, toolCallLimit: 2 }),
      { serverToolCalls: 2 },
      'the limit of the client',
    )
    t.match(worstCase(bounded, { ...search, toolCallLimit: 12 }), { serverToolCalls: 10 })
  })

  t.test('a part given by URL counts as many tokens as the model says', async (t) => {
    const links = { image: 2, file: 1, audio: 1 }
    t.match(worstCase(model, { ...call, links }), { prompt: 11 + 2 * 1600 + 16_000 + 2000, output: 7 })
    const cheap = modelEntry.parse({
      id: 'm',
      estimate: { image_tokens: 5, file_tokens: 1, audio_tokens: 0 },
    })
    t.match(worstCase(cheap, { ...call, links }), { prompt: 22 })
  })

  t.test(
    'reasoning counts next to the limit of each choice, up to the most that the model writes',
    async (t) => {
      const thinking = { ...call, thinkingTokens: 1000 }
      t.match(worstCase(model, thinking), { output: 1007 })
      t.match(worstCase(model, { ...thinking, choices: 2 }), { output: 2014 })
      t.match(worstCase(model, { ...thinking, outputLimit: null }), { output: 32_768 + 1000 })
      const small = modelEntry.parse({ id: 'm', max_output_tokens: 500 })
      t.match(worstCase(small, thinking), { output: 500 })
      t.match(
        worstCase(small, { ...thinking, outputLimit: 600 }),
        { output: 600 },
        'but no less than the limit',
      )
    },
  )

  /** All that the worst case counts besides. */
  const FULL: EstimatedCall = {
    ...call,
    promptBytes: 1000,
    thinkingTokens: 1000,
    compacts: true,
    builtInTools: ['web_search'],
    links: { image: 1, file: 1, audio: 1 },
  }

  t.test(
    'the formula of the interface counts the conversation and the output, and nothing else',
    async (t) => {
      t.same(specifiedCase(model, FULL), { ...NO_USAGE, prompt: 11, output: 7 })
      t.match(specifiedCase(model, { ...FULL, choices: 3 }), { output: 21 })
      t.match(specifiedCase(model, { ...FULL, outputLimit: null }), { output: 32_768 })
      const usual = modelEntry.parse({ id: 'm', default_max_tokens: 100, max_output_tokens: 9000 })
      t.match(specifiedCase(usual, { ...FULL, outputLimit: null }), { output: 100 })
      const pricing = { unit: '1M_tokens', input: '1000000', output: '2000000', reasoning: '9000000' }
      const price = tokenPrice(
        modelEntry.parse({ id: 'm', pricing: { ...pricing, server_tool_call: '5' } }).pricing,
      )!
      t.equal(printCredits(estimateCharge(price, model, FULL, { mode: 'specified', now: 0 })), '25')
    },
  )

  t.test('the largest part of an estimate is found', async (t) => {
    const fields = { unit: '1M_tokens', input: '1', output: '1', server_tool_call: '2.022' }
    const price = tokenPrice(modelEntry.parse({ id: 'm', pricing: fields }).pricing)!
    const partOf = (more: Partial<EstimatedCall>, mode: 'specified' | 'worst_case' = 'worst_case') =>
      largestPart({ ...call, ...more }, (given) => estimateCharge(price, model, given, { mode, now: 0 }))
    const large = { conversationBytes: 4_000_000, promptBytes: 4_000_000 }
    t.same(partOf(large), { part: 'prompt', amount: 100_000_000n })
    t.equal(partOf({ outputLimit: 11 }).part, 'prompt', 'of equal ones the first')
    t.same(partOf({ ...large, keptTokens: 900_000 }), { part: 'kept', amount: 90_000_000n })
    t.equal(partOf({ promptBytes: 4_000_000 }).part, 'tools_and_schemas')
    t.same(partOf({ links: { image: 1, file: 1, audio: 1 } }), { part: 'links', amount: 1_960_000n })
    t.same(partOf({ outputLimit: 1_000_000 }), { part: 'output', amount: 100_000_000n })
    t.same(partOf({ outputLimit: null }), { part: 'output', amount: 3_276_800n })
    t.equal(partOf({ thinkingTokens: 30_000 }).part, 'thinking')
    t.same(partOf({ builtInTools: ['web_search'] }), { part: 'tool_calls', amount: 606_600_000n })
    t.equal(
      partOf({ conversationBytes: 0, promptBytes: 0, compacts: true, outputLimit: 1000 }).part,
      'output',
    )
    t.equal(partOf({ builtInTools: ['web_search'], thinkingTokens: 9 }, 'specified').part, 'prompt')
  })

  t.test('no kind of output, tool or service tier costs more than the worst case', async (t) => {
    const rate = fc.integer({ min: 0, max: 9_999 }).map(String)
    const offer = fc.record(
      {
        ...{ input: rate, output: rate, reasoning: rate, output_audio: rate, output_image: rate },
        ...{ server_tool_call: rate, server_tools: fc.record({ web_search: rate }) },
        ...{
          service_tiers: fc.record({ flex: fc.constant('0.5'), priority: fc.constant('2') }),
          minimum: rate,
        },
      },
      { requiredKeys: ['input', 'output'] },
    )
    const share = fc.nat(7)
    const used = fc.record({
      ...{ prompt: fc.nat(11), output: share, reasoning: share, audio: share, image: share },
      ...{ searches: fc.nat(3), runs: fc.nat(3) },
      tier: fc.constantFrom('', 'flex', 'priority'),
      isServedAsAsked: fc.boolean(),
    })
    const held = fc.property(offer, used, (fields, { prompt, output, reasoning, audio, image, ...rest }) => {
      const { searches, runs, tier, isServedAsAsked } = rest
      const price = tokenPrice(
        modelEntry.parse({ id: 'm', pricing: { unit: '1M_tokens', ...fields } }).pricing,
      )!
      const tools: EstimatedCall['builtInTools'] = ['web_search', 'code_interpreter']
      const asked = { ...call, builtInTools: tools, ...(tier !== '' && { serviceTier: tier }) }
      const estimate = estimateCharge(price, model, asked, WORST)
      const extra = keepExtra({
        ...{ outputAudio: audio, outputImage: image },
        tools: { web_search: searches, code_interpreter: runs },
      })
      const usage = { ...NO_USAGE, prompt, output, reasoning, serverToolCalls: searches + runs, ...extra }
      const charge = tokenCharge(price, usage, 0, isServedAsAsked ? tier : '')
      if (charge > estimate) throw new Error(`${printCredits(charge)} > ${printCredits(estimate)}`)
    })
    const runs = { seed: 20_261_125, numRuns: 500 }
    t.doesNotThrow(() => fc.assert(held, runs))
  })
})

t.test('wallet view admits what is free', async (t) => {
  const totals = (balance: bigint, version = 1n): WalletTotals => ({
    accountId: 'acc_1',
    balance,
    held: 0n,
    used: 0n,
    version,
  })

  t.test('free is the balance less what calls in flight may cost, and all of it may be spent', async (t) => {
    const view = new WalletView(totals(10n))
    t.ok(view.admit(4n, true))
    t.notOk(view.admit(7n, true))
    t.ok(view.admit(6n, true))
    t.notOk(view.admit(1n, true))
    t.ok(view.admit(0n, true), 'what costs nothing fits')
    t.equal(view.balance, 10n, 'the balance is what it was')
    t.ok(view.admit(10n, false), 'without the reservation, calls in flight do not count')
  })

  t.test('what is reserved over all processes: a low balance, and a large part of a high one', async (t) => {
    const afterCall = (wallet: WalletTotals, estimate: bigint, exactBelow: bigint | null = null) => {
      const view = new WalletView(wallet)
      t.ok(view.admit(estimate, true))
      return view.needsSharing(exactBelow)
    }
    t.ok(afterCall(totals(100n), 80n), 'below twice the estimate')
    t.ok(afterCall(totals(10_000n), 1n, 9_901n), 'below what the configuration has')
    t.notOk(afterCall(totals(10_000n), 1n, 9_900n))
    t.notOk(afterCall(totals(10_200n), 100n), 'one hundredth of what is beyond the threshold')
    t.ok(afterCall(totals(10_199n), 100n))
    t.ok(afterCall({ ...totals(10_200n), reserved: 1n }, 100n), 'other processes have reserved')

    const view = new WalletView(totals(10_300n))
    t.ok(view.admit(100n, true))
    t.notOk(view.needsSharing(null))
    t.ok(view.admit(2n, true))
    t.ok(view.needsSharing(null), 'calls in flight count')
    view.end(2n, 0n)
    view.end(100n, 100n)
    t.ok(view.admit(2n, true))
    t.ok(view.needsSharing(null), 'and so do charges until they are booked')
    view.applyBooked(100n)
    view.update(totals(10_200n, 2n))
    t.notOk(view.needsSharing(null))
  })

  t.test('charges of an earlier run, and totals that come late', async (t) => {
    const view = new WalletView(totals(10n, 5n), 3n)
    t.equal(view.balance, 7n)
    t.notOk(view.isIdle)
    view.update(totals(100n, 4n))
    view.update(totals(100n, 5n))
    t.equal(view.balance, 7n, 'older or as old: nothing new')
    view.applyBooked(3n)
    view.update(totals(7n, 6n))
    t.equal(view.balance, 7n)
    t.ok(view.isIdle)
  })

  t.test(
    'what is booked and was never counted here, as before the key had a cap, adds nothing',
    async (t) => {
      const view = new WalletView(totals(10n))
      view.applyBooked(3n)
      t.equal(view.balance, 10n)
      t.ok(view.isIdle)
    },
  )

  type Step = { readonly kind: 'admit' | 'end' | 'book' | 'credit'; readonly amount: bigint }
  const step: fc.Arbitrary<Step> = fc.record({
    kind: fc.constantFrom('admit', 'admit', 'end', 'book', 'credit'),
    amount: fc.bigInt({ min: 0n, max: 50n }),
  })

  t.test('while no call costs more than its estimate, nothing is ever overdrawn', async () => {
    everyRun(t, { numRuns: 500 }, [fc.array(step, { maxLength: 200 })], (steps) => {
      let [balance, version] = [100n, 1n]
      const view = new WalletView(totals(balance, version))
      const open: bigint[] = []
      const ended: bigint[] = []
      for (const { kind, amount } of steps) {
        if (kind === 'admit' && view.admit(amount, true)) open.push(amount)
        if (kind === 'credit') {
          balance += amount
          version++
          view.update(totals(balance, version))
        }
        const estimate = kind === 'end' ? open.pop() : undefined
        if (estimate !== undefined) {
          const cost = amount % (estimate + 1n)
          view.end(estimate, cost)
          ended.push(cost)
        }
        const booked = kind === 'book' ? ended.shift() : undefined
        if (booked !== undefined) {
          balance -= booked
          version++
          view.applyBooked(booked)
          view.update(totals(balance, version))
        }
        const sum = (list: readonly bigint[]) => list.reduce((all, one) => all + one, 0n)
        if (view.inFlight !== sum(open) || view.unbooked !== sum(ended)) return false
        if (view.balance !== balance - sum(ended) || view.balance - view.inFlight < 0n) return false
      }
      return true
    })
  })
})

t.test('budget follows periods', async (t) => {
  const DAY_MS = 86_400_000
  const MIDNIGHT = Date.UTC(2026, 10, 24)
  const STARTS = [0, 1, 2].map((day) => MIDNIGHT + day * DAY_MS)

  const known = ({ spent = 0n, amount = 100n, version = 1n, starts = STARTS } = {}): BudgetPeriods => ({
    budget: {
      id: 'bud_a',
      accountId: 'acc_a',
      scope: 'account',
      subjectId: 'acc_a',
      amount,
      period: 'day',
      timezone: 'UTC',
    },
    starts,
    totals: { accountId: `bud_a@${starts[0]}`, balance: amount - spent, held: 0n, used: spent, version },
  })

  t.test(
    'each period has all of the amount, and a call ends in the one that it was admitted in',
    async (t) => {
      const budget = new BudgetView(known({ spent: 90n }))
      const [before, after] = [MIDNIGHT + DAY_MS - 1, MIDNIGHT + DAY_MS]
      t.notOk(budget.at(before).admit(11n, true))
      t.ok(budget.at(before).admit(10n, true))
      t.ok(budget.at(after).admit(100n, true))
      t.equal(budget.resetsAt(before), after)
      budget.at(before).end(10n, 4n)
      t.same([budget.at(before).balance, budget.at(after).balance], [6n, 100n])
      t.equal(budget.at(after).inFlight, 100n)
      budget.at(after).end(100n, 50n)
      budget.applyBooked(20n)
      t.same([budget.at(before).unbooked, budget.at(after).unbooked], [0n, 34n], 'the oldest is booked first')
    },
  )

  t.test('a call ends in its period also where the budget was read again in the next one', async (t) => {
    const budget = new BudgetView(known())
    const late = MIDNIGHT + DAY_MS - 1
    t.ok(budget.at(late).admit(60n, true))
    const starts = STARTS.map((start) => start + DAY_MS)
    budget.renew(known({ starts }))
    t.ok(budget.at(starts[0]!).admit(30n, true))
    budget.at(late).end(60n, 50n)
    t.same([budget.at(late).inFlight, budget.at(late).balance], [0n, 50n])
    t.same([budget.at(starts[0]!).inFlight, budget.at(starts[0]!).balance], [30n, 100n])
    t.equal(
      budget.at(MIDNIGHT - 1),
      budget.at(starts[0]!),
      'one of a period that is not known counts in the first',
    )
  })

  t.test('of several periods that are over, a call ends in its own', async (t) => {
    const budget = new BudgetView(known())
    for (const [index, start] of STARTS.entries()) budget.at(start).admit(BigInt(index + 1), true)
    budget.renew(known({ starts: STARTS.map((start) => start + 2 * DAY_MS) }))
    t.same(
      STARTS.map((start) => budget.at(start + DAY_MS - 1).inFlight),
      [1n, 2n, 3n],
    )
  })

  t.test('what is booked is taken off each charge once, the oldest first', async (t) => {
    const budget = new BudgetView(known())
    for (const [index, cost] of [4n, 34n, 5n].entries()) {
      budget.at(STARTS[index]!).admit(cost, true)
      budget.at(STARTS[index]!).end(cost, cost)
    }
    budget.applyBooked(10n)
    t.same(
      STARTS.map((start) => budget.at(start).unbooked),
      [0n, 28n, 5n],
    )
  })

  t.test('another period or time zone starts counting from zero; another amount does not', async (t) => {
    const renewed = (change: object) => {
      const budget = new BudgetView(known())
      budget.at(MIDNIGHT).admit(10n, true)
      const { budget: before, ...rest } = known({ version: 2n })
      budget.renew({ ...rest, budget: { ...before, ...change } })
      return budget.at(MIDNIGHT).inFlight
    }
    t.equal(renewed({ period: 'month' }), 0n)
    t.equal(renewed({ timezone: 'Asia/Shanghai' }), 0n)
    t.equal(renewed({ amount: 7n }), 10n)
  })

  t.test('the wallet of a period names its budget and its beginning', async (t) => {
    t.same(parseWalletId(makeWalletId('bud_a', MIDNIGHT)), { budgetId: 'bud_a', startsAt: MIDNIGHT })
    t.equal(parseWalletId('acc_a'), null)
  })

  t.test('totals of a period reach it alone, and older ones are ignored', async (t) => {
    const budget = new BudgetView(known({ spent: 90n, version: 7n }))
    const totals = { accountId: '', balance: 70n, held: 0n, used: 30n, version: 1n }
    budget.update(STARTS[1]!, totals)
    budget.update(STARTS[0]!, { ...totals, version: 6n })
    t.same([budget.at(MIDNIGHT).balance, budget.at(STARTS[1]!).balance], [10n, 70n])
  })

  t.test('a period is forgotten when the second after it begins, unless a call of it goes on', async (t) => {
    const spentIn = (goesOn: boolean) => {
      const budget = new BudgetView(known({ spent: 90n }))
      if (goesOn) budget.at(MIDNIGHT).admit(1n, true)
      const balances = STARTS.map((start) => {
        budget.at(start)
        return budget.at(MIDNIGHT).balance
      })
      return balances.map((balance) => 100n - balance)
    }
    t.same(spentIn(false), [90n, 90n, 0n])
    t.same(spentIn(true), [90n, 90n, 90n])
  })

  t.test('totals of a period from before make none be forgotten', async (t) => {
    const budget = new BudgetView(known({ spent: 90n }))
    budget.at(STARTS[1]!)
    budget.update(MIDNIGHT - DAY_MS, { accountId: '', balance: 70n, held: 0n, used: 30n, version: 1n })
    t.equal(budget.at(MIDNIGHT).balance, 10n)
  })

  t.test('a budget that was changed is taken as it is now', async (t) => {
    const budget = new BudgetView(known({ spent: 90n }))
    budget.at(MIDNIGHT).admit(10n, true)
    budget.renew(known({ spent: 90n, amount: 200n, version: 2n }))
    t.same([budget.at(MIDNIGHT).balance, budget.at(MIDNIGHT).inFlight], [110n, 10n], 'calls under way go on')
    t.notOk(budget.isOutOfPeriods(STARTS[1]!))
    t.ok(budget.isOutOfPeriods(STARTS[2]!), 'the last known period has begun')
    t.equal(budget.resetsAt(STARTS[2]!), null)
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

t.test('public price lists are read exactly and compared', async (t) => {
  const litellm = (input: unknown, output: unknown = 0, more: object = {}) => ({
    input_cost_per_token: input,
    output_cost_per_token: output,
    ...more,
  })
  const read = (list: object) => readPriceList(JSON.stringify(list))
  const dev = (models: Record<string, object | null>) => ({
    models: Object.fromEntries(Object.entries(models).map(([name, cost]) => [name, { cost }])),
  })

  t.test('numbers as JavaScript prints them', async (t) => {
    const readInput = (value: unknown) => read({ m: litellm(value), other: litellm(1) }).get('m')?.input
    t.equal(readInput(3e-7), parseRate('0.3'))
    t.equal(readInput(0.0000025), parseRate('2.5'))
    t.equal(readInput(1.25e-6), parseRate('1.25'))
    t.equal(readInput(2), parseRate('2000000'))
    t.equal(readInput(12.25), parseRate('12250000'))
    t.equal(readInput(1e21), parseRate('1') * 10n ** 27n)
    t.equal(readInput(0), 0n)
    for (const none of [-1, '0.1', null, undefined]) t.equal(readInput(none), undefined, String(none))
    t.equal(readInput(1e-30), 0n, 'less than half of the last place')
    t.same([4e-19, 5e-19].map(readInput), [0n, 1n], 'half of it is one')
  })

  t.test('a model has a price of input and one of output; others may be absent', async (t) => {
    const list = read({
      whole: litellm(1e-6, 2e-6, {
        cache_read_input_token_cost: 1e-7,
        cache_creation_input_token_cost: 1.25e-6,
      }),
      plain: litellm(1e-6, 2e-6),
      image: { input_cost_per_token: 1e-6 },
      words: { output_cost_per_token: 1e-6 },
      note: 'no model',
      nothing: null,
    })
    t.same([...list.keys()], ['whole', 'plain'])
    t.same(list.get('plain'), { input: parseRate('1'), output: parseRate('2') })
    t.same(list.get('whole'), {
      input: parseRate('1'),
      output: parseRate('2'),
      cached_input: parseRate('0.1'),
      cache_write: parseRate('1.25'),
    })
    for (const none of [{}, [], { a: { input_cost_per_token: 1 } }, [litellm(1)]])
      t.throws(() => read(none), /no price list in the format/)
    t.throws(() => readPriceList('{'), /not JSON/)
  })

  t.test('a name has a price where all providers agree on each part of it', async (t) => {
    const cost = { input: 1, output: 2, cache_read: 0.5, cache_write: 3 }
    const both = (other: object) => read({ a: dev({ m: cost }), b: dev({ m: other }), c: dev({ m: cost }) })
    const price = {
      input: parseRate('1'),
      output: parseRate('2'),
      cached_input: parseRate('0.5'),
      cache_write: parseRate('3'),
    }
    t.same(both(cost).get('m'), price)
    for (const part of Object.keys(cost)) {
      const list = both({ ...cost, [part]: 9 })
      t.equal(list.get('m'), null, `they differ in ${part}, and stay different with a third`)
      t.same(list.get('a/m'), price)
    }
    const list = read({ a: dev({ m: cost, half: { input: 1 }, none: null }), b: { name: 'no models' } })
    t.same([...list.keys()], ['a/m', 'm'])
  })

  t.test('dollars become credits, rounded half up', async (t) => {
    t.equal(toCredits(3n, ONE_RATE / 2n), 2n)
    t.equal(toCredits(1n, ONE_RATE / 2n), 1n)
    t.equal(toCredits(5n, ONE_RATE * 7n), 35n)
  })

  t.test('the catalog differs where the price that holds does', async (t) => {
    const compare = (prices: object, listed: object, { ofCosts = false } = {}) => {
      const { models, channels } = configFile.parse({
        models: [
          { id: 'm', aliases: ['other'], pricing: { unit: '1M_tokens', input: '4', output: '8', ...prices } },
        ],
        channels: [
          {
            id: 'c',
            provider: 'openai',
            protocol: 'chat-completions',
            base_url: 'http://127.0.0.1:1',
            api_key: 'k',
            models: { m: 'upstream-m' },
            ...(ofCosts && { cost: { m: { unit: '1M_tokens', input: '4', output: '8' } } }),
          },
        ],
      })
      const list = read(listed)
      return compareCatalog({ models, channels }, list, {
        perUsd: ONE_RATE,
        ofCosts,
        listedAs: (provider) => [`${provider}-list`],
      })
    }
    const listed = (input: number, output: number, more: object = {}) =>
      litellm(input / 1e6, output / 1e6, more)
    const changed = (prices: object, list: object) =>
      compare(prices, list).changes.map(({ price, now, listed }) => [price, now, listed])

    t.same(compare({}, { m: listed(4, 8) }), { changes: [], unlisted: [] })
    t.same(compare({}, { elsewhere: listed(4, 8) }), { changes: [], unlisted: ['m'] })
    t.same(changed({}, { m: listed(4, 9) }), [['output', parseRate('8'), parseRate('9')]])
    t.same(changed({}, { other: listed(5, 8) }), [['input', parseRate('4'), parseRate('5')]], 'by an alias')
    const cached = (read: number, write: number) => ({
      cache_read_input_token_cost: read / 1e6,
      cache_creation_input_token_cost: write / 1e6,
    })
    t.same(changed({}, { m: listed(4, 8, cached(4, 5)) }), [], 'what follows from the price of input')
    t.same(changed({}, { m: listed(4, 8, cached(1, 6)) }), [
      ['cached_input', null, parseRate('1')],
      ['cache_write', null, parseRate('6')],
    ])
    t.same(changed({ cached_input: '1', cache_write: '6' }, { m: listed(4, 8, cached(1, 6)) }), [])
    t.same(
      changed({}, { m: listed(8, 8, cached(8, 10)) }),
      [['input', parseRate('4'), parseRate('8')]],
      'a default follows from the price that the list proposes',
    )
    const first = compare(
      {},
      { m: listed(1, 8), 'upstream-m': listed(2, 8), 'openai-list/upstream-m': listed(3, 8) },
    )
    t.match(first.changes, [
      { model: 'm', channel: null, listed_as: 'openai-list/upstream-m', price: 'input' },
    ])
    t.match(compare({}, { m: listed(1, 8), 'upstream-m': listed(2, 8) }).changes, [
      { listed_as: 'upstream-m' },
    ])
    t.same(
      changed({ output: undefined }, { m: listed(4, 5) }),
      [['output', null, parseRate('5')]],
      'a price of output follows from nothing',
    )
    const costs = compare({ input: '1' }, { m: listed(1, 1), 'upstream-m': listed(5, 8) }, { ofCosts: true })
    t.match(costs.changes, [
      { model: 'm', channel: 'c', price: 'input', now: parseRate('4'), listed: parseRate('5') },
    ])
    t.equal(costs.changes.length, 1)
    t.same(compare({}, { m: listed(1, 1) }, { ofCosts: true }), { changes: [], unlisted: ['m'] })
  })

  t.test(
    'each model is compared by its own channels, and no model that is not priced by tokens',
    async (t) => {
      const tokens = { unit: '1M_tokens', input: '4', output: '8' }
      const channel = (id: string, models: object, more: object = {}) => ({
        ...{ id, protocol: 'chat-completions', base_url: 'http://127.0.0.1:1', api_key: 'k', models },
        ...more,
      })
      const { models, channels } = configFile.parse({
        models: [
          { id: 'm', pricing: tokens },
          { id: 'n', pricing: tokens },
          { id: 'free', callable: false },
          { id: 'image', endpoint_type: 'images_generations', pricing: { unit: 'image', per_unit: '1' } },
        ],
        channels: [
          channel('one', { m: 'up-m' }, { cost: { m: tokens } }),
          channel('two', { n: 'up-n' }),
          channel('three', { m: 'up-m', n: 'up-n' }, { provider: 'openai' }),
        ],
      })
      const listed = ['up-m', 'up-n', 'image', 'free'].map((name) => [name, litellm(5e-6, 8e-6)])
      const list = read(Object.fromEntries([...listed, ['undefined', litellm(9e-6, 9e-6)]]))
      const compare = (ofCosts: boolean) =>
        compareCatalog({ models, channels }, list, {
          ...{ perUsd: ONE_RATE, ofCosts },
          listedAs(provider) {
            if (provider === undefined)
              throw new Error('a channel without a provider has no names in the list')
            return []
          },
        })
      const told = ({ changes }: ReturnType<typeof compare>) =>
        changes.map(({ model, channel, price, now }) => `${model} ${channel} ${price} ${now}`)
      const four = parseRate('4')
      t.same(told(compare(false)), [`m null input ${four}`, `n null input ${four}`])
      t.same(told(compare(true)), [
        ...[`m one input ${four}`, 'm three input null', 'm three output null'],
        ...['n two input null', 'n two output null', 'n three input null', 'n three output null'],
      ])
      t.same([compare(false).unlisted, compare(true).unlisted], [[], []])
    },
  )
})

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
