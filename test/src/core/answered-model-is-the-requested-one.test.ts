/** A snapshot of the model that was asked for is that model; another model is not. */
import t from 'tap'
import { isRequestedModel } from '../../../src/core/routing/answered-model.ts'

t.test('a name of one snapshot stands for a name that leaves it open', async (t) => {
  for (const [asked, answered] of [
    ['gpt-x', 'gpt-x'],
    ['gpt-x', 'gpt-x-2026-01-01'],
    ['gpt-x-latest', 'gpt-x-2026-01-01'],
    ['gpt-x-2026-01-01', 'gpt-x'],
    ['sonata-4-5', 'sonata-4-5-20250929'],
    ['sonata-4-5@20250929', 'sonata-4-5-20250929'],
    ['sonata-4-5@default', 'sonata-4-5-20250929'],
    ['flash-2.5-001@default', 'flash-2.5-001'],
    ['demo@tps=8,fault=reset:2000', 'demo'],
    ['@vendor/gpt-x', 'gpt-x'],
    ['flash-2.5', 'models/flash-2.5-001'],
    ['vendor/gpt-x', 'GPT-X'],
    ['gpt-4', 'gpt-4-0613'],
  ] as const)
    t.equal(isRequestedModel(asked, answered), true, `${asked}: ${answered}`)
})

t.test('another model, or another snapshot than the one asked for, is a difference', async (t) => {
  for (const [asked, answered] of [
    ['gpt-x', 'gpt-x-mini'],
    ['gpt-x', 'gpt-x-mini-2026-01-01'],
    ['gpt-x-2026-01-01', 'gpt-x-2025-01-01'],
    ['sonata-4', 'sonata-4-5'],
    ['gpt-x', ''],
    ['sonata-4@default', 'sonata-4-5'],
    ['demo@tps=8', 'demo@tps=9'],
  ] as const)
    t.equal(isRequestedModel(asked, answered), false, `${asked}: ${answered}`)
})
