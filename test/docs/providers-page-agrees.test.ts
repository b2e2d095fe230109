/** The page of providers has each preset in its table, and an example of each, and of each protocol of media, that works. */
import t from 'tap'
import { channelAuth } from '../../schemas/config/channel-auth.ts'
import type { MediaWork } from '../../schemas/media/job.ts'
import { mediaAdapterOf, worksOf } from '../../src/channels/media/registry.ts'
import { PRESETS } from '../../src/channels/providers/presets.ts'
import { protocolsOf } from '../../src/channels/providers/provider.ts'
import { loadConfig } from '../../src/config/load.ts'
import { CHAT_PROVIDERS } from '../support/chat-providers.ts'
import { readText } from '../support/source-files.ts'

const page = readText('docs/providers.md')
const blocks = [...page.matchAll(/```yaml\n(.*?)```/gs)].map(([, text = '']) => text)
const [media = ''] = blocks.filter((text) => text.startsWith('models:'))
const examples = blocks.filter((text) => text !== media)
/** Models of the examples: those of the page, and one of chat. */
const MODELS = `${media}  - { id: sonata-large, pricing: { unit: 1M_tokens, input: "1", output: "2", cached_input: "0.1" } }\n`

/** Kinds of work by the endpoint at which a model is called. */
const WORKS: Readonly<Record<string, MediaWork>> = {
  images_generations: 'image',
  videos_generations: 'video',
  music_generations: 'music',
  audio_speech: 'speech',
}

/** Returns the configuration of the example and its models alone, its environment filled in. */
function loaded(example: string) {
  const env = Object.fromEntries(
    [...example.matchAll(/\$\{(\w+)\}/g)].map(([, name = '']) => [name, 'k-0123456789']),
  )
  const isServed = (line: string) => example.includes(`${/ id: ([\w-]+),/.exec(line)?.[1]}: `)
  const models = MODELS.split('\n').filter((line) => line === 'models:' || isServed(line))
  const text = `${models.join('\n')}\nchannels:\n${example.replace(/^/gm, '  ')}`
  return loadConfig({ path: 'c.yaml', digest: '', text, refusal: null }, env)
}

t.test('the table has each provider with its name and its protocols, the usual one first', async (t) => {
  const rows = [...page.split('## Access')[0]!.matchAll(/^\| `(\w+)` \| ([^|]+) \| ([^|]+) \|/gm)]
  const listed = rows.map(([, provider = '', title, protocols = '']) => [
    provider,
    [title, [...protocols.matchAll(/`([^`]+)`/g)].map(([, name]) => name)],
  ])
  t.equal(listed.length, Object.keys(PRESETS).length)
  t.same(
    Object.fromEntries(listed),
    Object.fromEntries(
      Object.entries(PRESETS).map(([provider, preset]) => [provider, [preset.title, protocolsOf(preset)]]),
    ),
  )
})

t.test('each provider has an example of ten lines at most that is a sound channel', async (t) => {
  const shown = examples.flatMap((example) => /^ {2}provider: (\w+)$/m.exec(example)?.[1] ?? [])
  t.same([...new Set(shown)].sort(), Object.keys(PRESETS).sort())
  for (const example of examples) {
    t.ok(example.trimEnd().split('\n').length <= 10, example)
    const read = loaded(example)
    t.ok(read.ok, read.ok ? '' : read.problems.map(({ field, message }) => `${field}: ${message}`).join('\n'))
    if (read.ok) t.same(read.warnings, [])
  }
})

t.test('each protocol of media of each provider has an example, whose models it makes', async (t) => {
  const shown = examples.flatMap((example) => {
    const read = loaded(example)
    if (!read.ok) throw new Error(example)
    const [channel] = read.config.channels
    const { provider, protocol, models } = channel!
    const works = worksOf(protocol)
    if (works.length === 0) return []
    for (const id of Object.keys(models)) {
      const { endpoint_type } = read.config.models.find((model) => model.id === id)!
      t.ok(works.includes(WORKS[endpoint_type!]!), `${provider} ${protocol}: ${id}`)
    }
    return [`${provider} ${protocol}`]
  })
  const made = Object.entries(PRESETS).flatMap(([provider, preset]) =>
    protocolsOf(preset)
      .filter((protocol) => worksOf(protocol).length > 0)
      .map((protocol) => `${provider} ${protocol}`),
  )
  t.same(shown.sort(), made.sort())
})

t.test('each job that is polled has a row that says what its adapter can do', async (t) => {
  const [, section = ''] = page.split('## Jobs of media\n')
  const rows = [...section.matchAll(/^\| `([\w-]+)` \| (yes|no) \| (yes|no) \|/gm)].map(
    ([, protocol = '', found, cancelled]) => [protocol, { found, cancelled }],
  )
  const said = (is: unknown): string => (is === undefined ? 'no' : 'yes')
  const polled = [...new Set(Object.values(PRESETS).flatMap(protocolsOf))].flatMap((protocol) => {
    const { follow = null } = mediaAdapterOf(protocol) ?? {}
    if (follow === null) return []
    return [[protocol, { found: said(follow.find), cancelled: said(follow.cancel) }]]
  })
  t.same(Object.fromEntries(rows), Object.fromEntries(polled))
})

t.test('the page of prices says how each provider of chat models reports usage', async (t) => {
  const [, section = ''] = readText('docs/pricing.md').split('| family | what it reports in its own way |\n')
  const table = section.split('\n\n')[0] ?? ''
  for (const provider of CHAT_PROVIDERS) t.match(table, `\`${provider}\``)
})

t.test('each field of each kind of access is named', async (t) => {
  const [, section = ''] = page.split('## Access without a key\n')
  for (const kind of channelAuth.options)
    for (const field of Object.keys(kind.shape)) t.match(section, `\`${field}\``)
})

t.test('a configuration of all examples starts, and names the keys that are missing', async (t) => {
  const text = `${MODELS}channels:\n${examples.join('').replace(/^/gm, '  ')}`
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
