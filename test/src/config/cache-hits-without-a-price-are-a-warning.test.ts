import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { loadConfigFile } from '../../../src/config/load.ts'

t.test('a family with cache writes and no price for cache hits is a warning', async (t) => {
  const path = join(t.testdir(), 'c.yaml')
  const priced = (more: string) => `pricing: { unit: 1M_tokens, input: 1, output: 2${more} }`
  const text = `models:
  - { id: a, family: f, ${priced(', cache_write: 1.25')} }
  - { id: b, family: f, ${priced('')} }
  - { id: c, ${priced('')} }
  - { id: d, ${priced(', cached_input: 0.1')} }
  - { id: e, ${priced('')} }
channels:
  - { id: x, protocol: messages, base_url: https://x.test, api_key: k, models: { c: c, d: d } }
  - { id: y, protocol: chat-completions, base_url: https://y.test/v1, api_key: k, models: { a: a, b: b, e: e } }
`
  writeFileSync(path, text)
  const loaded = loadConfigFile(path, {})
  const warnings = loaded.ok ? loaded.warnings : []
  t.same(
    warnings.map(({ field }) => field),
    ['models[0].pricing', 'models[1].pricing', 'models[2].pricing'],
  )
  for (const { message } of warnings)
    t.match(message, /^has no cached_input: cache hits are billed at input x 0\.1/)
})
