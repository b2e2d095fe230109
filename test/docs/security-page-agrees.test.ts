/** The page about security has a row for every setting that the public profile fills, with both values. */
import t from 'tap'
import { COLLECTION_LIMITS } from '../../schemas/collection-limits.ts'
import { configFile } from '../../schemas/config/file.ts'
import { withProfile } from '../../src/config/profile.ts'
import { readText } from '../support/source-files.ts'

type Group = Readonly<Record<string, unknown>>

const isGroup = (value: unknown): value is Group => typeof value === 'object' && value !== null

/** The values within a group, by the path that leads to each: `models[].after_client_leaves`. */
function listLeaves(value: unknown, path = ''): readonly (readonly [path: string, value: unknown])[] {
  if (Array.isArray(value)) return value.flatMap((item) => listLeaves(item, `${path}[]`))
  if (!isGroup(value)) return [[path, value]]
  return Object.entries(value).flatMap(([name, item]) =>
    listLeaves(item, path === '' ? name : `${path}.${name}`),
  )
}

const GIVEN = { profile: 'public', models: [{ capabilities: { reasoning: true } }] }

const page = readText('docs/security.md')
const section = page.split('## In front of strangers')[1]?.split('\n## ')[0] ?? ''
const HEAD = '| setting | without a profile | `profile: public` | what a client sees |\n|---|---|---|---|\n'
const rows = (section.split(HEAD)[1]?.split('\n\n')[0] ?? '')
  .split('\n')
  .map((line) => line.slice(2, -2).split(' | '))

const inWords = (value: unknown): string => (value === null || value === undefined ? 'none' : `\`${value}\``)

t.test('every setting that the public profile fills is a row, with its default and its value', async (t) => {
  const given = new Set(listLeaves(GIVEN).map(([path]) => path))
  const filled = listLeaves(withProfile(GIVEN)).filter(([path]) => !given.has(path))
  t.not(filled.length, 0)
  const defaults = new Map(listLeaves(configFile.parse({})))
  for (const [path, value] of filled) {
    const row = rows.find(([setting]) => setting?.startsWith(`\`${path}\``))
    // A model that does not set a field has that of the file.
    const byDefault = defaults.get(path.replace('models[].', ''))
    t.match(row?.slice(1, 3), [inWords(byDefault), inWords(value)], path)
    t.ok(row?.[3], `${path} says what a client sees`)
  }
})

t.test('every limit of a collection is a row, with its number', async (t) => {
  for (const [limit, most] of Object.entries(COLLECTION_LIMITS))
    t.ok(page.includes(`\n| \`${limit}\` | ${most.toLocaleString('en')} | `), limit)
})
