/** The glossary defines words that are in use, each once, in order. */
import t from 'tap'
import { filesUnder, readText } from '../support/source-files.ts'

const PAGE = 'docs/glossary.md'
const LEAST_TERMS = 20
const LEAST_FILES = 2

const terms = [...readText(PAGE).matchAll(/^\| ([a-z -]+) \| (.+) \|$/gm)].flatMap(
  ([, term = '', meaning]) => (term === 'term' ? [] : [{ term, meaning }]),
)

/** As prose has a term, and as a name in code has it: `usage row`, `usage_row`, `UsageRow`, `bookedUsageRow`. */
function patternOf(term: string): RegExp {
  const words = term.split(/[ -]/)
  const inProse = words.map((word) => `[${word[0]}${word[0]?.toUpperCase()}]${word.slice(1)}`).join('[ _-]?')
  const inName = words.map((word) => `${word[0]?.toUpperCase()}${word.slice(1)}`).join('')
  return new RegExp(`(?<![A-Za-z])${inProse}|[a-z]${inName}`)
}

t.test('terms are in alphabetical order, each once', async (t) => {
  t.ok(terms.length >= LEAST_TERMS)
  const names = terms.map(({ term }) => term)
  t.same(names, [...new Set(names)].sort())
})

t.test('each term is used in code or in pages', async (t) => {
  const texts = filesUnder('schemas', 'pipelines', 'src', 'docs')
    .filter((path) => /\.(ts|md|sql)$/.test(path) && path !== PAGE)
    .map(readText)
  for (const { term } of terms) {
    const pattern = patternOf(term)
    t.ok(texts.filter((text) => pattern.test(text)).length >= LEAST_FILES, term)
  }
})
