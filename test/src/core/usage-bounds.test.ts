/** The most that one call can use and cost. */
import fc from 'fast-check'
import t from 'tap'
import { modelEntry, SERVER_TOOLS } from '../../../schemas/config/catalog.ts'
import { printCredits } from '../../../schemas/money.ts'
import {
  type EstimatedCall,
  estimateCharge,
  largestPart,
  specifiedCase,
  worstCase,
} from '../../../src/core/pricing/estimate.ts'
import { tokenCharge, tokenPrice } from '../../../src/core/pricing/pricing.ts'
import { keepExtra, MAX_REPORTED_TOKENS, NO_USAGE, type TokenUsage } from '../../../src/core/pricing/usage.ts'
import { boundUsage, limitUsage, MAX_CONTEXT_TOKENS } from '../../../src/core/pricing/usage-bounds.ts'

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
