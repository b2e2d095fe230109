/** A model family with cache writes bills cache hits at a tenth of the input where it has no price for them. */
import t from 'tap'
import { configFile } from '../../../schemas/config/file.ts'
import { printCredits } from '../../../schemas/money.ts'
import { tokenCharge } from '../../../src/core/pricing/pricing.ts'
import { NO_USAGE } from '../../../src/core/pricing/usage.ts'
import { createCatalog } from '../../../src/core/routing/catalog.ts'

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
    ],
    channels: [
      {
        ...channel('m', 'messages', ['other-name']),
        cost: { 'other-name': { unit: '1M_tokens', input: '5', output: '0' } },
      },
      channel('c', 'chat-completions', ['written', 'hour', 'sibling', 'own-price', 'plain']),
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
  t.equal(hits('plain'), '10')
})

t.test('tiers and planned prices too', async (t) => {
  t.equal(hits('written', 2), '4')
  t.equal(hits('written', 1, Date.parse('2100-01-01T00:00:00Z')), '3')
})

t.test('the operator pays a tenth as well', async (t) => {
  const [route] = catalog.routes(modelNamed('by-channel'), 'messages')
  const used = { ...NO_USAGE, prompt: 1_000_000, cached: 1_000_000 }
  t.equal(printCredits(tokenCharge(route!.cost!, used, 0)), '0.5')
})
