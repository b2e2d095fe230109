import t from 'tap'
import { termsOf } from '../../../src/core/search/terms.ts'
import { readPage } from '../../../src/markdown/page.ts'
import { FileProblemError } from '../../../src/markdown/problem.ts'
import { PAGE_MAX_BYTES } from '../../../src/markdown/text.ts'

const problems = (content: string) => {
  try {
    readPage(Buffer.from(content), 'a.md')
  } catch (error) {
    if (error instanceof FileProblemError) return error.problems
    throw error
  }
  return []
}

/** Of the size that a page may have: each would take minutes to days. */
const filled = (unit: string): string => unit.repeat((PAGE_MAX_BYTES - 1_000) / Buffer.byteLength(unit))

const ENDLESS: Readonly<Record<string, string>> = {
  'emphasis that mixes its marks': filled('*_a'),
  'emphasis within words': filled('x__'),
  'brackets that stay open': filled('['),
  'images that stay open': filled('!['),
  'empty links': filled('[]'),
  'code of many lengths': filled('`a'),
  'tags that stay open': filled('<a '),
  'strokes that stay open': filled('~~a'),
  'an address that ends in brackets': `http://a${filled(')')}`,
  'emphasis within emphasis': `${filled('*a ').slice(0, 500_000)}${filled('b* ').slice(0, 500_000)}`,
  'a table with more columns than text': `${'|a'.repeat(50_000)}\n${'|-'.repeat(50_000)}\n${'|a\n'.repeat(50_000)}`,
}

for (const [what, text] of Object.entries(ENDLESS))
  t.test(`${what}: named with its line, at once`, async (t) => {
    const found = problems(`---\ntitle: x\n---\nFirst.\n\n${text}`)
    t.match(found, [{ file: 'a.md', line: 6, message: /too much markup.*Part it by empty lines/ }])
    t.equal(found.length, 1)
  })

t.test('quotations in one another are too deep, however long the line is', async (t) => {
  t.match(problems(filled('> - ')), [{ line: 1, message: /too much markup|nested too deeply/ }])
})

t.test('front matter of many names and aliases is read once', async (t) => {
  const aliases = Array.from({ length: 4_500 }, (_, i) => `k${i}: *x\n`).join('')
  const { ignored, tags } = readPage(Buffer.from(`---\ntags: &x [b]\n${aliases}---\n`), 'a.md')
  t.same(tags, ['b'])
  t.equal(ignored.length, 4_500)
})

t.test('long runs of white space cost nothing', async (t) => {
  const gap = filled(' ')
  const { text } = readPage(Buffer.from(`\`\`\`\na${gap}b\n\n  c  \n\`\`\``), 'a.md')
  t.equal(text, `a${gap}b\nc`)
})

t.test('what people write is far from the bound', async (t) => {
  const sentence =
    'See the [handbook](http://a.test/b), *all* of [[Holidays|days off]] and `snake_case_name`. '
  const paragraph = sentence.repeat(20)
  const page = `${paragraph}\n\n`.repeat(Math.floor(PAGE_MAX_BYTES / (paragraph.length + 2)))
  t.same(readPage(Buffer.from(page), 'a.md').links, ['Holidays'])
  const list = filled(`- ${sentence}\n`)
  t.same(readPage(Buffer.from(list), 'a.md').links, ['Holidays'], 'a list without empty lines')
  const table = `| a | b |\n|---|---|\n${`| ${sentence.replace('|', ' ')} | 2 |\n`.repeat(10_000)}`
  t.match(readPage(Buffer.from(table), 'a.md').text, /^a b\nSee the handbook, all of/)
  t.same(problems(sentence.repeat(500)), [], 'one line of 45,000 characters')
  t.same(problems(`![x](data:image/png;base64,${filled('A')})`), [], 'an image within the page')
})

t.test('a long text without spaces has its terms', async (t) => {
  t.equal(termsOf('한'.repeat(200_000)).length, 200_000)
})
