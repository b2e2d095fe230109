/** A form changes one entry of a configuration: only the lines of its fields differ. */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { listChangedLines } from '../../../pipelines/management/configuration/difference.ts'
import { DEMONSTRATION_FILE } from '../../../src/config/demonstration.ts'
import { CONFIGURATION_EDITOR } from '../../../src/config/entries.ts'

const { change, add, remove, read } = CONFIGURATION_EDITOR

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
const listDifference = (after: string) =>
  listChangedLines(TEXT, after)
    .filter(({ kind }) => kind !== 'same')
    .map(({ kind, text }) => `${kind === 'added' ? '+' : '-'}${text.trim()}`)
const edit = (path: string, value: unknown, list: 'models' | 'channels' = 'models', id = 'sonata') =>
  listDifference(change(TEXT, list, id, [{ path: path.split('.'), value }]))

t.test('only the lines of the field differ', async (t) => {
  t.same(edit('pricing.input', '13'), [
    '-input: "12.5"    # agreed in May',
    '+input: "13"    # agreed in May',
  ])
  t.same(edit('pricing.output', "it's"), ["-output: '100'", "+output: 'it''s'"])
  t.same(edit('family', 'x'), ['-family: sonata   # two spaces', '+family: x   # two spaces'])
  t.same(edit('aliases', ['a']), ['-aliases: [sonata-2025, "s"]', '+aliases: [ a ]'])
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
    '-models:',
    '-sonata: example-large',
    '+models: { sonata: b, voice: v }',
  ])
  t.same(edit('models.voice', 'v', 'channels', 'primary'), ['+voice: v'])
  t.same(edit('api_key', '${OTHER_KEY}', 'channels', 'primary'), [
    '-api_key: ${EXAMPLE_API_KEY}   # from the vault',
    '+api_key: ${OTHER_KEY}   # from the vault',
  ])
  t.same(edit('weight', 1, 'channels', 'primary'), [], 'the same value changes nothing')
})

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
