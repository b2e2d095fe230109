/** A form changes one entry of a configuration: only the lines of its fields differ. */
import { readFileSync } from 'node:fs'
import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import t from 'tap'
import { listChangedLines } from '../../../pipelines/management/configuration/difference.ts'
import { channelEntry, modelEntry } from '../../../schemas/config/catalog.ts'
import { DEMONSTRATION_FILE } from '../../../src/config/demonstration.ts'
import { CONFIGURATION_EDITOR } from '../../../src/config/entries.ts'

const { change, add, remove, read, find } = CONFIGURATION_EDITOR

const TEXT = `# The shop.
limits: { requests_per_minute: 60 }
models:
  # The large one.
  - id: sonata
    family: sonata   # two spaces
    aliases: [sonata-2025, "s"]
    pricing:
      unit: 1M_tokens
      input: "12.5"    # agreed in May
      output: '100'
    capabilities: { vision: true }
  - id: voice
    pricing: { unit: 1000_characters, per_unit: "125.36" }

channels:
  - id: primary
    protocol: responses
    api_key: \${EXAMPLE_API_KEY}   # from the vault
    models:
      sonata: example-large
    weight: 1
`
/** Lists and maps in blocks, with comments within. */
const BLOCKS = `models:
  - id: sonata
    pricing:
      unit: 1M_tokens
      tiers:
        # Long prompts.
        - from_prompt_tokens: 200000   # tokens
          input: "25"
          output: 150
        - { from_prompt_tokens: 400000, input: "50", output: "300" }
      service_tiers: { flex: "0.5", priority: "2" }
channels:
  - id: primary
    api_keys:
      - \${KEY_ONE}   # Monday
      - "********2"
      - '********3'
    headers:
      X-Team: "********"   # secret
      X-Region: \${REGION}
    auth: { type: azure-entra, tenant_id: t, client_secret: "********" }
    cost:
      sonata: { unit: 1M_tokens, input: "5", output: "10" }   # agreed
`
const listDifference = (after: string) =>
  listChangedLines(TEXT, after)
    .filter(({ kind }) => kind !== 'same')
    .map(({ kind, text }) => `${kind === 'added' ? '+' : '-'}${text.trim()}`)
const editBlocks = (path: string, value: unknown, list: 'models' | 'channels' = 'channels') => {
  const id = list === 'models' ? 'sonata' : 'primary'
  return listChangedLines(BLOCKS, change(BLOCKS, list, id, [{ path: path.split('.'), value }]))
    .filter(({ kind }) => kind !== 'same')
    .map(({ kind, text }) => `${kind === 'added' ? '+' : '-'}${text.trim()}`)
}
const edit = (path: string, value: unknown, list: 'models' | 'channels' = 'models', id = 'sonata') =>
  listDifference(change(TEXT, list, id, [{ path: path.split('.'), value }]))

t.test('only the lines of the field differ', async (t) => {
  t.same(edit('pricing.input', '13'), [
    '-input: "12.5"    # agreed in May',
    '+input: "13"    # agreed in May',
  ])
  t.same(edit('pricing.output', "it's"), ["-output: '100'", "+output: 'it''s'"])
  t.same(edit('family', 'x'), ['-family: sonata   # two spaces', '+family: x   # two spaces'])
  t.same(edit('aliases', ['a']), ['-aliases: [sonata-2025, "s"]', '+aliases: [a]'])
  t.same(edit('pricing.discount', '0.8'), ['+discount: "0.8"'])
  t.same(edit('capabilities.vision', null), ['-capabilities: { vision: true }', '+capabilities: {  }'])
  t.same(edit('capabilities.reasoning', true), [
    '-capabilities: { vision: true }',
    '+capabilities: { vision: true, reasoning: true }',
  ])
  t.same(edit('context_window', 400000), ['+context_window: 400000'])
  t.same(edit('family', null), ['-family: sonata   # two spaces'])
  t.same(edit('pricing.per_unit', '1', 'models', 'voice'), [
    '-pricing: { unit: 1000_characters, per_unit: "125.36" }',
    '+pricing: { unit: 1000_characters, per_unit: "1" }',
  ])
  t.same(edit('weight', 3, 'channels', 'primary'), ['-weight: 1', '+weight: 3'])
  t.same(edit('models', { sonata: 'b', voice: 'v' }, 'channels', 'primary'), [
    '-sonata: example-large',
    '+sonata: b',
    '+voice: v',
  ])
  t.same(edit('models.voice', 'v', 'channels', 'primary'), ['+voice: v'])
  t.same(edit('api_key', '${OTHER_KEY}', 'channels', 'primary'), [
    '-api_key: ${EXAMPLE_API_KEY}   # from the vault',
    '+api_key: ${OTHER_KEY}   # from the vault',
  ])
  t.same(edit('weight', 1, 'channels', 'primary'), [], 'the same value changes nothing')
})

t.test('of lists and maps, only the lines of what differs change', async (t) => {
  const [first, second] = [
    { from_prompt_tokens: 200000, input: '25', output: 150 },
    { from_prompt_tokens: 400000, input: '50', output: '300' },
  ]
  const editTiers = (...tiers: object[]) => editBlocks('pricing.tiers', tiers, 'models')
  t.same(editTiers({ ...first, input: '26' }, second), ['-input: "25"', '+input: "26"'])
  t.same(editTiers(first, { ...second, cached_input: '5' }), [
    '-- { from_prompt_tokens: 400000, input: "50", output: "300" }',
    '+- { from_prompt_tokens: 400000, input: "50", output: "300", cached_input: "5" }',
  ])
  t.same(editTiers(first), ['-- { from_prompt_tokens: 400000, input: "50", output: "300" }'])
  t.same(editTiers(second).length, 3, 'the first tier goes, with its three lines')
  t.same(editTiers(first, second, { from_prompt_tokens: 1000000, input: '60', output: '400' }), [
    '+- { from_prompt_tokens: 1000000, input: "60", output: "400" }',
  ])
  t.same(editBlocks('pricing.service_tiers', { flex: '0.6' }, 'models'), [
    '-service_tiers: { flex: "0.5", priority: "2" }',
    '+service_tiers: { flex: "0.6" }',
  ])
  t.same(editBlocks('pricing.variants', { '1K': '3' }, 'models'), ['+variants: { 1K: "3" }'])
  t.same(editBlocks('api_keys', ['${KEY_ONE}', '********3']), ['-- "********2"'])
  t.same(editBlocks('api_keys', ['${KEY_ONE}', '********2', '********3', '${KEY_TWO}']), ['+- ${KEY_TWO}'])
  t.same(editBlocks('headers', { 'X-Team': '********' }), ['-X-Region: ${REGION}'])
  t.same(editBlocks('headers', { 'X-Region': '${REGION}', 'X-New': '${NEW}' }), [
    '-X-Team: "********"   # secret',
    '+X-New: ${NEW}',
  ])
  t.same(editBlocks('auth', { type: 'azure-entra', tenant_id: 'u', client_secret: '********' }), [
    '-auth: { type: azure-entra, tenant_id: t, client_secret: "********" }',
    '+auth: { type: azure-entra, tenant_id: u, client_secret: "********" }',
  ])
  t.same(editBlocks('cost', { sonata: { unit: '1M_tokens', input: '6', output: '10' } }), [
    '-sonata: { unit: 1M_tokens, input: "5", output: "10" }   # agreed',
    '+sonata: { unit: 1M_tokens, input: "6", output: "10" }   # agreed',
  ])
  t.same(find(BLOCKS, 'channels', 'primary', ['headers', 'X-Region']), { line: 20, column: 7 })
  t.same(
    find(BLOCKS, 'channels', 'primary', ['weight']),
    { line: 13, column: 5 },
    'what is not there is near',
  )
})

const word = fc.stringMatching(/^[a-z][a-z0-9]{0,5}$/)
const price = fc.oneof(
  fc.integer({ min: 1, max: 99 }).map(String),
  word.map((name) => `\${${name}}`),
)
const tier = fc.record(
  { from_prompt_tokens: fc.integer({ min: 1 }), input: price, output: price },
  { noNullPrototype: true },
)
const newChange = fc.oneof(
  fc.tuple(fc.constant('pricing.tiers'), fc.array(tier, { maxLength: 4 })),
  fc.tuple(
    fc.constantFrom('pricing.variants', 'headers', 'models'),
    fc.dictionary(word, price, { maxKeys: 4, noNullPrototype: true }),
  ),
  fc.tuple(fc.constantFrom('api_keys', 'aliases'), fc.array(price, { maxLength: 4 })),
  fc.tuple(fc.constantFrom('family', 'pricing.input', 'weight'), fc.oneof(price, fc.constant(null))),
)

t.test(
  'any edits one after another: each value arrives, and every comment outside of them stays',
  async () => {
    fc.assert(
      fc.property(fc.array(newChange, { minLength: 1, maxLength: 8 }), (changes) => {
        const edited = changes.reduce(
          (text, [path, value]) => change(text, 'models', 'sonata', [{ path: path.split('.'), value }]),
          TEXT,
        )
        const [model] = read(edited, 'models')
        for (const [path, value] of new Map<string, unknown>(changes)) {
          const found = path
            .split('.')
            .reduce<unknown>((at, name) => (at as Record<string, unknown>)?.[name], model)
          if (!isDeepStrictEqual(found ?? null, value)) return false
        }
        return ['# The shop.', '  # The large one.', '# from the vault', '${EXAMPLE_API_KEY}'].every((kept) =>
          edited.includes(kept),
        )
      }),
    )
  },
)

t.test('entries are added and removed', async (t) => {
  const added = add(TEXT, 'models', { id: 'new', pricing: { unit: 'call', per_unit: '1' } })
  t.same(listDifference(added), ['+- id: new', '+pricing:', '+unit: call', '+per_unit: "1"'])
  t.same(
    read(added, 'models').map(({ id }) => id),
    ['sonata', 'voice', 'new'],
  )
  t.throws(() => add(TEXT, 'models', { id: 'voice' }), /already/)
  t.equal(remove(added, 'models', 'new'), TEXT)
  t.throws(() => remove(TEXT, 'channels', 'primary'), /edit the text/)
})

t.test('what the form cannot change is said', async (t) => {
  t.throws(() => edit('id', null), /edit the text/)
  t.throws(() => edit('family', 'x', 'models', 'none'), /no none/)
  t.throws(() => change('models: [', 'models', 'a', [{ path: ['family'], value: 'x' }]), /problems|no a/)
  const aliased = `models:\n  - id: a\n    pricing: &p { unit: call, per_unit: "1" }\n  - id: b\n    pricing: *p\n`
  const priced = [{ path: ['pricing', 'per_unit'], value: '2' }]
  t.throws(() => change(aliased, 'models', 'b', priced), /edit the text/)
})

t.test('every scalar of the demonstration can be changed, and nothing else changes with it', async (t) => {
  const text = readFileSync(DEMONSTRATION_FILE, 'utf8')
  for (const list of ['models', 'channels'] as const)
    for (const entry of read(text, list))
      for (const [name, value] of Object.entries(entry)) {
        if (name === 'id' || typeof value === 'object') continue
        const next = typeof value === 'number' ? value + 1 : typeof value === 'boolean' ? !value : `${value}x`
        const changed = change(text, list, String(entry.id), [{ path: [name], value: next }])
        const lines = listChangedLines(text, changed).filter(({ kind }) => kind !== 'same')
        t.equal(lines.length, 2, `${entry.id}.${name}`)
      }
})

t.test('the forms have each field of a model and a channel, or lead to its line', async (t) => {
  // Not a static import: what it imports is compiled with the console.
  const load = (name: string) =>
    import(new URL(`../../../console/src/pages/catalog/${name}.ts`, import.meta.url).href)
  const { listGroups, ONLY_IN_TEXT } = await load('fields')
  const { fitsForm, parseField, printField } = await load('field-text')
  const { pricing, ...model } = modelEntry.shape
  const known = {
    models: [...Object.keys(model), ...Object.keys(pricing.unwrap().shape).map((name) => `pricing.${name}`)],
    channels: Object.keys(channelEntry.shape),
  }
  for (const list of ['models', 'channels'] as const) {
    const specs = listGroups(list).flatMap(({ fields }: { fields: { path: string[] }[] }) => fields)
    const paths = [...specs, ...ONLY_IN_TEXT[list].map((path: string[]) => ({ path }))]
    t.same(['id', ...paths.map(({ path }) => path.join('.'))].sort(), known[list].sort())
    for (const entry of [...read(readFileSync(DEMONSTRATION_FILE, 'utf8'), list), ...read(BLOCKS, list)])
      for (const spec of specs) {
        const value = spec.path.reduce(
          (at: Record<string, unknown> | undefined, name: string) => at?.[name],
          entry,
        )
        if (value === undefined) continue
        t.ok(fitsForm(spec, value), `${entry.id}: ${spec.path}`)
        t.same(parseField(printField(value, spec.kind), spec, value), value)
      }
  }
  const spec = (path: string, kind: string) => ({ path: [path], label: '', kind })
  t.notOk(fitsForm(spec('auth', 'map'), { type: 'google', scopes: ['a', 'b'] }), 'a list within a map')
  t.notOk(fitsForm(spec('changes', 'rows'), [{ from: 'x', tiers: [] }]), 'a list within a row')
  t.same(parseField('from_prompt_tokens: 5, input: 2', spec('tiers', 'rows'), null), [
    { from_prompt_tokens: 5, input: '2' },
  ])
  t.throws(() => parseField('five', spec('tiers', 'rows'), null), /five/)
})
