/** What the pre-charge takes for the worst case of a call. */
import t from 'tap'
import { modelEntry } from '../../../schemas/config/catalog.ts'
import { type EstimatedCall, worstCase } from '../../../src/core/pricing/estimate.ts'

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
