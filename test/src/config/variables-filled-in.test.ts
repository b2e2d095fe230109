import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { CHAT_PROTOCOLS, MEDIA_ADAPTERS } from '../../../schemas/config/catalog.ts'
import { MEDIA_DIALECTS } from '../../../simulator/dialects.ts'
import {
  DEMONSTRATION_FILE,
  needsSimulator,
  SIMULATOR_URL_VARIABLE,
} from '../../../src/config/demonstration.ts'
import { type LoadResult, loadConfigFile } from '../../../src/config/load.ts'
import type { Environment } from '../../../src/config/source.ts'

const CONFIG = `
models: [{ id: a, pricing: { unit: 1M_tokens, input: 1, output: 2 } }]
channels:
  - id: x
    protocol: chat-completions
    base_url: \${BASE}/v1/
    api_key: \${KEY}
    models: { a: "\${PREFIX}-\${PREFIX}" }
    headers: { x-cost: "$5 {KEY} \${not a name}" }
`

function load(t: Test, env: Environment, text = CONFIG): LoadResult {
  const path = join(t.testdir(), 'c.yaml')
  writeFileSync(path, text)
  return loadConfigFile(path, env)
}

t.test('a variable is replaced within text values, and only that form', async (t) => {
  const result = load(t, { BASE: 'https://example.com', KEY: 'sk-1\n', PREFIX: 'p' })
  if (!result.ok) throw new Error(JSON.stringify(result.problems))
  const [channel] = result.config.channels
  t.match(channel, {
    base_url: 'https://example.com/v1',
    api_key: 'sk-1',
    models: { a: 'p-p' },
    headers: { 'x-cost': '$5 {KEY} $' + '{not a name}' },
  })
  t.same([...result.variables].sort(), ['BASE', 'KEY', 'PREFIX'])
})

t.test('a channel without a key stays in the configuration, off', async (t) => {
  const result = load(t, { BASE: 'https://example.com', PREFIX: 'p' })
  if (!result.ok) throw new Error(JSON.stringify(result.problems))
  t.match(result.config.channels, [{ id: 'x', api_key: '' }])
})

t.test('a value cannot add fields to the file', async (t) => {
  const result = load(t, {
    BASE: 'https://example.com',
    KEY: 'k, priority: 9',
    PREFIX: 'p"\n    weight: 3\n#',
  })
  t.match(result, { ok: false, problems: [{ field: 'channels[0].api_key' }] })
  t.notMatch(JSON.stringify(result), 'priority: 9', 'nor is a secret repeated in the problem')
})

t.test('a problem that comes from an unset variable names it', async (t) => {
  t.match(load(t, { KEY: 'k', PREFIX: 'p' }), {
    ok: false,
    problems: [{ line: 6, field: 'channels[0].base_url', message: /not set in the environment: BASE/ }],
  })
})

t.test('an anchor is unfolded where it is used', async (t) => {
  const text = `models:
  - { id: a, pricing: &p { unit: 1M_tokens, input: "\${P}", output: 2 } }
  - { id: b, pricing: *p }
`
  const result = load(t, { P: '3.5' }, text)
  if (!result.ok) throw new Error(JSON.stringify(result.problems))
  t.same(result.config.models[1]?.pricing, result.config.models[0]?.pricing)
  t.equal(result.config.models[1]?.pricing?.input, 3_500_000_000_000n)
})

t.test('the demonstration is a sound configuration of simulated models', async (t) => {
  const result = loadConfigFile(DEMONSTRATION_FILE, { [SIMULATOR_URL_VARIABLE]: 'http://127.0.0.1:7' })
  if (!result.ok) throw new Error(JSON.stringify(result.problems))
  t.ok(needsSimulator(result.variables))
  const { models, channels } = result.config
  t.ok(
    models.some(({ callable }) => !callable),
    'a placeholder is among them',
  )
  t.ok(models.some(({ pricing }) => pricing?.tiers[0]?.from_prompt_tokens === 272_000))
  t.ok(models.some(({ pricing }) => pricing?.tiers[0]?.from_prompt_tokens === 200_000))
  const on = channels.filter(({ api_key }) => api_key !== '')
  t.same([...new Set(on.map(({ base_url }) => new URL(base_url).origin))], ['http://127.0.0.1:7'])
  const simulated = MEDIA_ADAPTERS.filter((name) => MEDIA_DIALECTS.some((dialect) => dialect.name === name))
  t.same(new Set(on.map(({ protocol }) => protocol)), new Set([...CHAT_PROTOCOLS, ...simulated]))
  const served = new Set(on.flatMap((channel) => Object.keys(channel.models)))
  for (const { id, callable } of models) t.equal(served.has(id), callable, id)
  for (const name of on.flatMap((channel) => Object.values(channel.models))) t.match(name, /^sim-/)
})
