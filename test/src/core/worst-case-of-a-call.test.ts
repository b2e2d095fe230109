/** What the pre-charge takes for the worst case of a call. */
import t from 'tap'
import { modelEntry } from '../../../schemas/catalog.ts'
import { type EstimatedCall, worstCase } from '../../../src/core/estimate.ts'

const model = modelEntry.parse({ id: 'm' })
const call: EstimatedCall = { promptBytes: 41, outputLimit: 7, choices: 1, builtInTools: [] }

t.test('a plain call: bytes of the prompt, and its limit for each choice', async (t) => {
  t.match(worstCase(model, call), { prompt: 11, output: 7, serverToolCalls: 0 })
  t.match(worstCase(model, { ...call, choices: 3 }), { prompt: 11, output: 21, serverToolCalls: 0 })
})

t.test('each server tool counts as many calls as the model says', async (t) => {
  const search: EstimatedCall = { ...call, builtInTools: ['web_search', 'code_interpreter'] }
  t.match(worstCase(model, search), { prompt: 11, output: 7, serverToolCalls: 20 })
  const bounded = modelEntry.parse({ id: 'm', estimate: { server_tool_calls: 3 } })
  t.match(worstCase(bounded, search), { serverToolCalls: 6 })
})
