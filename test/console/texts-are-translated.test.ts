/** Every text of the console has a translation, and no translation is left over. */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { readText, sourceFiles } from '../support/source-files.ts'

const CALL = /\bt\(\s*(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)")/g
const NAVIGATION = /(?:name|title): '([^']*)'/g

const unquoted = (text: string): string => text.replace(/\\(.)/g, '$1')

const texts = new Set(
  sourceFiles('console').flatMap(({ path }) => {
    const source = readText(path)
    const called = [...source.matchAll(CALL)].map(([, single, double]) => unquoted(single ?? double ?? ''))
    const named = path.endsWith('/navigation.ts')
      ? [...source.matchAll(NAVIGATION)].map(([, text = '']) => text)
      : []
    return [...called, ...named]
  }),
)

t.test('the Chinese catalogue has every text', async (t) => {
  const file = new URL('../../console/src/locales/zh.json', import.meta.url)
  const translations: Record<string, string> = JSON.parse(readFileSync(file, 'utf8'))
  t.ok(texts.size > 0)
  t.same(
    [...texts].filter((text) => !translations[text]),
    [],
    'without a translation',
  )
  t.same(
    Object.keys(translations).filter((text) => !texts.has(text)),
    [],
    'left over',
  )
  const values = (text: string) => [...text.matchAll(/\{(\w+)/g)].map(([, name]) => name).sort()
  for (const [text, translation] of Object.entries(translations))
    t.same(values(translation), values(text), text)
})
