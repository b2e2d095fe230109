/** `tollgate connect`: what it writes for each client, and that it takes back exactly that. */
import t from 'tap'
import { CLIENTS, type SettingsFile } from '../../../schemas/clients.ts'
import { setFields, undoFields } from '../../../src/cli/connect/settings-text.ts'
import { fillFields, printSettings } from '../../../src/core/clients/settings.ts'
import { readText } from '../../support/source-files.ts'

const VALUES = { base_url: 'http://127.0.0.1:8080', key: 'sk-tollgate-KEY', model: 'MODEL' }
const FILES = Object.entries(CLIENTS).flatMap(([name, { files }]) =>
  files.map((file) => ({ name, file: fillFields(file, VALUES) })),
)

/** A user's own settings; each has a field that some client overwrites. */
const OWN: Readonly<Record<Exclude<SettingsFile['format'], 'by hand'>, string>> = {
  json: '{\n    "theme": "dark",\n    "model": "mine",\n    "env": { "OTHER": "1", "ANTHROPIC_MODEL": "mine" },\n    "big": [1, 2]\n}',
  toml: [
    '# mine',
    'model = "mine" # why',
    'notify = [',
    '  "sound",',
    ']',
    '',
    '[projects."/srv/app"]',
    'trust_level = "trusted"',
    '',
    '[mcp_servers.docs]',
    'model = "another"',
  ].join('\n'),
  yaml: '# mine\nname: My own # why\nmodels:\n  - name: Other\n    provider: openai\nmodel: mine\n',
  env: '# mine\nexport OTHER="a b"\nOPENAI_MODEL=mine\nGEMINI_MODEL=mine\n',
}

t.test('settings of the user stay, and undo restores the file', async (t) => {
  for (const { name, file } of FILES.filter(({ file }) => file.format !== 'by hand')) {
    const own = OWN[file.format as keyof typeof OWN]
    const after = setFields(own, file)!
    t.not(after, own, name)
    t.equal(setFields(after, file), after, `${name}: a second time changes nothing`)
    for (const line of ['mine', 'OTHER', 'theme', 'trust_level', 'sound', 'Other', '"another"'])
      if (own.includes(line)) t.match(after + own, line, `${name}: ${line}`)
    t.same(undoFields(after, file, { before: own, after }), { text: own, kept: [] }, name)
    const created = setFields('', file)!
    t.same(undoFields(created, file, { before: null, after: created }), { text: null, kept: [] }, name)
  }
})

t.test('a new file is printed as it is written', async (t) => {
  for (const { name, file } of FILES.filter(({ file }) => file.format !== 'by hand'))
    t.equal(printSettings(file), setFields('', file), name)
})

t.test('undo leaves what the user has changed since', async (t) => {
  const fileOf = (client: string) => FILES.find(({ name }) => name === client)!.file
  const undo = (client: string, before: string | null, edit: (after: string) => string) => {
    const after = setFields(before ?? '', fileOf(client))!
    return undoFields(edit(after), fileOf(client), { before, after })
  }
  const claude = undo('claude', OWN.json, (after) =>
    after.replace('"dark"', '"light"').replace('"http://127.0.0.1:8080"', '"http://elsewhere"'),
  )
  t.same(claude!.kept, ['env.ANTHROPIC_BASE_URL'])
  t.same(JSON.parse(claude!.text!), {
    theme: 'light',
    model: 'mine',
    env: { OTHER: '1', ANTHROPIC_MODEL: 'mine', ANTHROPIC_BASE_URL: 'http://elsewhere' },
    big: [1, 2],
  })
  t.equal(
    undo('codex', OWN.toml, (after) => `${after}\n[more]\na = 1\n`)!.text,
    `${OWN.toml}\n\n\n[more]\na = 1\n`,
  )
  t.equal(
    undo('continue', OWN.yaml, (after) => after.replace('Other', 'Others'))!.text,
    OWN.yaml.replace('Other', 'Others'),
  )
  t.equal(undo('qwen', OWN.env, (after) => `${after}MORE=1\n`)!.text, `${OWN.env}MORE=1\n`)
  t.same(
    undo('claude', null, (after) => after.replace('{', '{"theme": "dark",')),
    {
      text: '{\n  "theme": "dark"\n}\n',
      kept: [],
    },
  )
  t.equal(
    undo('claude', '{}', () => '{ // broken'),
    null,
    'what cannot be edited is left to the user',
  )
})

t.test('a file that an edit could damage is set by hand', async (t) => {
  const UNSAFE: Readonly<Record<string, readonly string[]>> = {
    claude: ['{ // mine\n}', '{"a": 1, "a": 2}', '{"a": 12345678901234567890}', '[]', '{"a":'],
    codex: [
      'a = """\nmodel = 1\n"""',
      'model_providers.tollgate.name = "x"',
      '["model_providers"]',
      '"model" = "x"',
    ],
    gemini: ['A="first\nGEMINI_API_KEY=x"'],
    aider: ['- a\n', 'a: [', 'a: 1\na: 2\n'],
  }
  for (const [client, texts] of Object.entries(UNSAFE)) {
    const { file } = FILES.find(({ name }) => name === client)!
    for (const text of texts) t.equal(setFields(text, file), null, `${client}: ${text}`)
  }
})

t.test('docs/clients.md shows what is written', async (t) => {
  const page = readText('docs/clients.md')
  for (const name of ['claude', 'codex']) {
    const { title, files } = CLIENTS[name]!
    const section = page.split(/^## /m).find((one) => one.startsWith(`${title}\n`)) ?? ''
    t.match(section, `connect ${name}\``, title)
    // The page may break the lines of JSON elsewhere.
    const read = (text: string) => (text.startsWith('{') ? JSON.parse(text) : text)
    t.same(
      [...section.matchAll(/```\w+\n(.*?)```/gs)].map(([, block = '']) => read(block)),
      files.map((file) => read(printSettings(fillFields(file, VALUES)))),
      title,
    )
    for (const { names } of files) t.match(section, names.at(-1)!, title)
  }
})
