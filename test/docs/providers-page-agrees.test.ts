/** The page of providers has each preset in its table, and an example of each that is a sound channel. */
import t from 'tap'
import { channelAuth } from '../../schemas/config/channel-auth.ts'
import { protocolsOf } from '../../src/channels/providers/provider.ts'
import { PRESETS } from '../../src/channels/providers/registry.ts'
import { loadConfig } from '../../src/config/load.ts'
import { readText } from '../support/source-files.ts'

const page = readText('docs/providers.md')
const MODEL = 'models:\n  - { id: sonata-large, pricing: { unit: 1M_tokens, input: "1", output: "2" } }\n'
const examples = [...page.matchAll(/```yaml\n(.*?)```/gs)].map(([, text = '']) => text)

t.test('the table has each provider with its protocols, the usual one first', async (t) => {
  const rows = [...page.split('## Access')[0]!.matchAll(/^\| `(\w+)` \| ([^|]+) \| ([^|]+) \|/gm)]
  t.same(
    rows.map(([, provider, , protocols = '']) => [
      provider,
      [...protocols.matchAll(/`([^`]+)`/g)].map(([, name]) => name),
    ]),
    Object.entries(PRESETS).map(([provider, preset]) => [provider, protocolsOf(preset)]),
  )
})

t.test('each provider has an example of ten lines at most that is a sound channel', async (t) => {
  const shown = examples.flatMap((example) => /^ {2}provider: (\w+)$/m.exec(example)?.[1] ?? [])
  t.same([...new Set(shown)].sort(), Object.keys(PRESETS).sort())
  for (const example of examples) {
    t.ok(example.trimEnd().split('\n').length <= 10, example)
    const env = Object.fromEntries(
      [...example.matchAll(/\$\{(\w+)\}/g)].map(([, name = '']) => [name, 'k-0123456789']),
    )
    const text = `${MODEL}channels:\n${example.replace(/^/gm, '  ')}`
    const loaded = loadConfig({ path: 'c.yaml', digest: '', text, refusal: null }, env)
    t.ok(
      loaded.ok,
      loaded.ok ? '' : loaded.problems.map(({ field, message }) => `${field}: ${message}`).join('\n'),
    )
    if (loaded.ok) t.same(loaded.warnings, [])
  }
})

t.test('each field of each kind of access is named', async (t) => {
  const [, section = ''] = page.split('## Access without a key\n')
  for (const kind of channelAuth.options)
    for (const field of Object.keys(kind.shape)) t.match(section, `\`${field}\``)
})

t.test('a configuration of all examples starts, and names the keys that are missing', async (t) => {
  const text = `${MODEL}channels:\n${examples.join('').replace(/^/gm, '  ')}`
  const loaded = loadConfig({ path: 'c.yaml', digest: '', text, refusal: null }, {})
  if (!loaded.ok) throw new Error('the configuration is refused')
  t.equal(loaded.config.channels.length, examples.length)
  for (const { message } of loaded.warnings)
    t.match(
      message,
      /not set in the environment: [A-Z_]+_(API_KEY|CLIENT_SECRET|ACCESS_KEY|SECRET_KEY|CREDENTIALS)/,
    )
  t.equal(loaded.warnings.length, examples.length)
})
