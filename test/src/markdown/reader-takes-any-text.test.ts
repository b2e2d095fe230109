import fc from 'fast-check'
import t from 'tap'
import { nameKey } from '../../../src/core/search/name-key.ts'
import { readPage } from '../../../src/markdown/page.ts'
import { plainPage } from '../../../src/markdown/plain-text.ts'
import { FileProblemError } from '../../../src/markdown/problem.ts'
import { ANY_CHARACTER } from '../../support/any-character.ts'
import { everyRun } from '../../support/every-run.ts'

const RUNS = 300

const text = fc.string({ unit: ANY_CHARACTER, maxLength: 400 })
const fragment = fc.constantFrom(
  ...[
    '---',
    '\n',
    '\r\n',
    '# ',
    '- ',
    '> ',
    '```',
    '[[',
    ']]',
    '|',
    '#',
    '`',
    '*',
    '&amp;',
    '&#0;',
    '<',
    '<!--',
  ],
  ...[
    'title: ',
    'tags: [',
    ']',
    'source: ',
    '{',
    '}',
    '"',
    '\\',
    '&a ',
    '*a',
    ': ',
    '\t',
    '\0',
    'a',
    '中',
    '\ufeff',
  ],
)
const markup = fc.array(fc.oneof(fragment, text), { maxLength: 60 }).map((parts) => parts.join(''))
const file = fc.oneof(
  markup,
  markup.map((inner) => `---\n${inner}\n---\n`),
)

const isPage = (bytes: Buffer): boolean => {
  try {
    readPage(bytes, 'a.md')
    return true
  } catch (error) {
    if (error instanceof FileProblemError) return false
    throw error
  }
}

t.test('a reader of any bytes and any text throws nothing but what it has to say', async () => {
  everyRun(t, { numRuns: RUNS }, [fc.uint8Array({ maxLength: 300 })], (bytes) => {
    isPage(Buffer.from(bytes))
  })
  everyRun(t, { numRuns: RUNS }, [file], (content) => {
    isPage(Buffer.from(content))
  })
})

t.test('the body is what is under the front matter, whatever it is', async (t) => {
  everyRun(t, { numRuns: RUNS }, [markup], (content) => {
    const body = content.toWellFormed().replaceAll('\0', '').replace(/\r\n?/g, '\n')
    const read = readPage(Buffer.from(`---\ntitle: x\n---\n${body}`), 'a.md')
    return read.body === body.replace(/^(?:[ \t]*\n)+/, '').trimEnd()
  })
  t.pass()
})

t.test('what PostgreSQL cannot store is nowhere in a page', async (t) => {
  everyRun(t, { numRuns: RUNS }, [file], (content) => {
    const bytes = Buffer.from(content)
    if (!isPage(bytes)) return true
    const { ignored, ...page } = readPage(bytes, 'a.md')
    const told = JSON.stringify(page)
    return !told.includes('\\u0000') && !/\\ud[89a-f]/.test(told)
  })
  t.pass()
})

t.test('a link that was found is found again by what it names', async (t) => {
  const name = fc
    .string({ unit: 'grapheme', minLength: 1, maxLength: 40 })
    .filter((one) => !/[[\]|#\n\r\\`<>*_&~!]/.test(one))
  everyRun(t, { numRuns: RUNS }, [name], (target) => {
    if (nameKey(target) === '') return true
    const links = plainPage(`see [[${target}]] and [[${target.toUpperCase()}|x]]`)?.links ?? []
    return links.length === 1 && nameKey(links[0] ?? '') === nameKey(target)
  })
  t.pass()
})

t.test('names compare by what they say', async (t) => {
  for (const [one, other] of [
    ['Straße', 'STRASSE'],
    ['ＡＰＩ　Keys', ' api  keys '],
    ['Café', 'Cafe\u0301'],
    ['ΣΑΣ', 'σας'],
    ['ﬁne', 'FINE'],
  ] as const)
    t.equal(nameKey(one), nameKey(other))
  t.not(nameKey('Résumé'), nameKey('Resume'))
})
