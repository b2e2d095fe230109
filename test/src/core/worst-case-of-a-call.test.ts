/** What the pre-charge takes for the worst case of a call. */
import fc from 'fast-check'
import t from 'tap'
import { modelEntry } from '../../../schemas/config/catalog.ts'
import { printCredits } from '../../../schemas/money.ts'
import {
  type EstimatedCall,
  estimateCharge,
  largestPart,
  specifiedCase,
  worstCase,
} from '../../../src/core/pricing/estimate.ts'
import { tokenCharge, tokenPrice } from '../../../src/core/pricing/pricing.ts'
import { extraOf, NO_USAGE } from '../../../src/core/pricing/usage.ts'

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

t.test('a call whose prompt may be summarised first is held twice, by the price of its prompt', async (t) => {
  const long = { ...call, promptBytes: 600_000, compacts: true }
  t.match(worstCase(model, long), { prompt: 300_000, output: 14 })
  t.match(worstCase(model, { ...long, choices: 3 }), { output: 28 })
  const tiers = [{ from_prompt_tokens: 200_000, input: '1000', output: '1000' }]
  for (const more of [{}, { reasoning: '2' }]) {
    const fields = { unit: '1M_tokens', input: '1', output: '1', tiers, ...more }
    const price = tokenPrice(modelEntry.parse({ id: 'm', pricing: fields }).pricing)!
    t.ok(printCredits(estimateCharge(price, model, long, WORST)).startsWith('0.3000'))
  }
})

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
  const cheap = modelEntry.parse({ id: 'm', estimate: { image_tokens: 5, file_tokens: 1, audio_tokens: 0 } })
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

t.test('the formula of the interface counts the conversation and the output, and nothing else', async (t) => {
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
})

t.test('the largest part of an estimate is found', async (t) => {
  const fields = { unit: '1M_tokens', input: '1', output: '1', server_tool_call: '2.022' }
  const price = tokenPrice(modelEntry.parse({ id: 'm', pricing: fields }).pricing)!
  const partOf = (more: Partial<EstimatedCall>, mode: 'specified' | 'worst_case' = 'worst_case') =>
    largestPart({ ...call, ...more }, (given) => estimateCharge(price, model, given, { mode, now: 0 }))
  const large = { conversationBytes: 4_000_000, promptBytes: 4_000_000 }
  t.same(partOf(large), { part: 'prompt', amount: 100_000_000n })
  t.same(partOf({ ...large, keptTokens: 900_000 }), { part: 'kept', amount: 90_000_000n })
  t.equal(partOf({ promptBytes: 4_000_000 }).part, 'tools_and_schemas')
  t.equal(partOf({ links: { image: 100, file: 0, audio: 0 } }).part, 'links')
  t.same(partOf({ outputLimit: 1_000_000 }), { part: 'output', amount: 100_000_000n })
  t.same(partOf({ outputLimit: null }), { part: 'output', amount: 3_276_800n })
  t.equal(partOf({ thinkingTokens: 30_000 }).part, 'thinking')
  t.same(partOf({ builtInTools: ['web_search'] }), { part: 'tool_calls', amount: 606_600_000n })
  t.equal(partOf({ conversationBytes: 0, promptBytes: 0, compacts: true, outputLimit: 1000 }).part, 'output')
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
    const extra = extraOf({
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
