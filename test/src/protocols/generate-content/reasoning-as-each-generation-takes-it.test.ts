/** Reasoning is asked for as each generation of models takes it. See docs/translation.md, "The request". */
import t from 'tap'
import { configOf, REDUCED, sent, user } from './requests.ts'

t.test('reasoning_effort: thinkingBudget, or thinkingLevel where the model has it; never both', async (t) => {
  const thinking = (reasoning_effort: string, upstreamModel: string) =>
    configOf({ reasoning_effort }, { upstreamModel })?.thinkingConfig
  const rows: readonly (readonly [model: string, effort: string, expected: object])[] = [
    ['gemini-2.5-flash', 'low', { thinkingBudget: 1024 }],
    ['gemini-2.5-flash', 'medium', { thinkingBudget: 8192 }],
    ['gemini-2.5-flash', 'high', { thinkingBudget: 24_576 }],
    ['gemini-2.5-flash', 'none', { thinkingBudget: 0 }],
    ['gemini-2.5-pro', 'none', { thinkingBudget: 128 }],
    ['gemini-flash-latest', 'minimal', { thinkingBudget: 1024 }],
    ['gemini-3-flash-preview', 'none', { thinkingLevel: 'minimal' }],
    ['gemini-3-flash-preview', 'minimal', { thinkingLevel: 'minimal' }],
    ['gemini-3-flash-preview', 'medium', { thinkingLevel: 'medium' }],
    ['gemini-3-pro-preview', 'minimal', { thinkingLevel: 'low' }],
    ['gemini-3-pro-preview', 'medium', { thinkingLevel: 'high' }],
    ['gemini-3.5-flash', 'none', { thinkingLevel: 'minimal' }],
    ['gemini-3.5-flash-lite', 'none', { thinkingLevel: 'minimal' }],
    ['gemini-3.7-flash', 'none', { thinkingLevel: 'low' }],
    ['gemini-3.10-flash', 'minimal', { thinkingLevel: 'low' }],
    ['gemini-3.8-flash-lite', 'minimal', { thinkingLevel: 'minimal' }],
    ['gemini-3.10-pro', 'medium', { thinkingLevel: 'medium' }],
    ['gemini-3.1-pro', 'medium', { thinkingLevel: 'medium' }],
    ['gemini-3.1-pro', 'xhigh', { thinkingLevel: 'high' }],
    ['gemini-3.1-pro', 'max', { thinkingLevel: 'high' }],
    ['gemini-2.5-flash', 'max', { thinkingBudget: 24_576 }],
  ]
  for (const [name, effort, expected] of rows) {
    const shown = effort === 'none' ? {} : { includeThoughts: true }
    t.strictSame(thinking(effort, name), { ...expected, ...shown }, `${name}, ${effort}`)
  }
  t.strictSame(
    sent({ reasoning_effort: 'low' }, REDUCED).dropped,
    ['reasoning_effort'],
    'a model that does not think',
  )
  t.strictSame(sent({ reasoning_effort: 'none' }, REDUCED).dropped, [])
  t.strictSame(sent({ reasoning_effort: 'toString' }), {
    contents: [user({ text: 'Hi' })],
    dropped: ['reasoning_effort'],
  })
})

t.test('reasoning turned off is the least of models that always reason, and named', async (t) => {
  const named = ['reasoning_effort (this model always reasons: it is asked for the least)']
  for (const upstreamModel of ['gemini-2.5-pro', 'gemini-3-pro-preview', 'gemini-3.7-flash'])
    t.strictSame(sent({ reasoning_effort: 'none' }, { upstreamModel }).dropped, named, upstreamModel)
  for (const upstreamModel of ['gemini-2.5-flash', 'gemini-3-flash-preview', 'gemini-2.0-flash'])
    t.strictSame(sent({ reasoning_effort: 'none' }, { upstreamModel }).dropped, [], upstreamModel)
  for (const effort of ['minimal', 'low'])
    t.strictSame(sent({ reasoning_effort: effort }, { upstreamModel: 'gemini-3.7-flash' }).dropped, [])
})

t.test('thinking, reasoning and enable_thinking say what reasoning_effort says', async (t) => {
  const rows: readonly (readonly [model: string, body: object, expected: object | undefined])[] = [
    ['gemini-2.5-flash', { thinking: { type: 'enabled', budget_tokens: 300 } }, { thinkingBudget: 300 }],
    ['gemini-2.5-pro', { thinking: { type: 'enabled', budget_tokens: 5 } }, { thinkingBudget: 128 }],
    ['gemini-3-flash', { thinking: { type: 'enabled', budget_tokens: 300 } }, { thinkingBudget: 300 }],
    ['gemini-2.5-flash', { thinking: { type: 'adaptive' } }, { thinkingBudget: -1 }],
    ['gemini-3-flash', { reasoning: { enabled: true } }, { thinkingLevel: 'medium' }],
    ['gemini-3-flash', { enable_thinking: true, thinking_budget: 99 }, { thinkingBudget: 99 }],
  ]
  for (const [upstreamModel, body, expected] of rows) {
    const { generationConfig, dropped } = sent(body, { upstreamModel })
    t.strictSame(
      generationConfig.thinkingConfig,
      { ...expected, includeThoughts: true },
      JSON.stringify(body),
    )
    t.same(dropped, [])
  }
  t.strictSame(configOf({ thinking: { type: 'disabled' } }), { thinkingConfig: { thinkingBudget: 0 } })
  t.strictSame(configOf({ reasoning: { effort: 'low', exclude: true } }), {
    thinkingConfig: { thinkingBudget: 1024 },
  })
  t.strictSame(sent({ thinking: { type: 'enabled' } }, REDUCED).dropped, ['thinking'])
  t.strictSame(sent({ thinking: { type: 'disabled' } }, REDUCED).dropped, [])
})
