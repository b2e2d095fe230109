/** What the pre-charge takes for the worst case of a call. */
import fc from 'fast-check'
import t from 'tap'
import { modelEntry } from '../../../schemas/config/catalog.ts'
import { printCredits } from '../../../schemas/money.ts'
import { type EstimatedCall, estimateCharge, worstCase } from '../../../src/core/pricing/estimate.ts'
import { tokenCharge, tokenPrice } from '../../../src/core/pricing/pricing.ts'
import { extraOf, NO_USAGE } from '../../../src/core/pricing/usage.ts'

const model = modelEntry.parse({ id: 'm' })
const call: EstimatedCall = {
  promptBytes: 41,
  outputLimit: 7,
  choices: 1,
  builtInTools: [],
  toolCallLimit: null,
  links: { image: 0, file: 0, audio: 0 },
}

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
    t.ok(printCredits(estimateCharge(price, model, long, 0)).startsWith('0.3000'))
  }
})

t.test('each server tool counts as many calls as the model says', async (t) => {
  const search: EstimatedCall = { ...call, builtInTools: ['web_search', 'code_interpreter'] }
  t.match(worstCase(model, search), { prompt: 11, output: 7, serverToolCalls: 20 })
  const bounded = modelEntry.parse({ id: 'm', estimate: { server_tool_calls: 3 } })
  t.match(worstCase(bounded, search), { serverToolCalls: 6 })
  t.match(
    worstCase(bounded, { ...search, toolCallLimit: 2 }),
    { serverToolCalls: 2 },
    'the limit of the client',
  )
  t.match(worstCase(bounded, { ...search, toolCallLimit: 7 }), { serverToolCalls: 6 })
})

t.test('a part given by URL counts as many tokens as the model says', async (t) => {
  const links = { image: 2, file: 1, audio: 1 }
  t.match(worstCase(model, { ...call, links }), { prompt: 11 + 2 * 1600 + 16_000 + 2000, output: 7 })
  const cheap = modelEntry.parse({ id: 'm', estimate: { image_tokens: 5, file_tokens: 1, audio_tokens: 0 } })
  t.match(worstCase(cheap, { ...call, links }), { prompt: 22 })
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
    ...{ searches: fc.nat(10), runs: fc.nat(10) },
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
    const estimate = estimateCharge(price, model, asked, 0)
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
