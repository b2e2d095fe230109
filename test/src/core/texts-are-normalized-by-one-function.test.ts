/** Texts are normalized as the runtime does it, but for long runs of combining marks; and nowhere else. */
import fc from 'fast-check'
import t from 'tap'
import { normalizeText } from '../../../src/core/normalize-text.ts'
import { ANY_CHARACTER } from '../../support/any-character.ts'
import { everyRun } from '../../support/every-run.ts'
import { readText, sourceFiles } from '../../support/source-files.ts'

const FORMS = ['NFC', 'NFD', 'NFKC', 'NFKD'] as const
const JOINER = '\u034f'
const MARKS = /^[\p{M}\uff9e\uff9f]$/u

t.test('a usual text is normalized as the runtime does it', async (t) => {
  const texts = [fc.string({ unit: ANY_CHARACTER, maxLength: 20 }), fc.constantFrom(...FORMS)] as const
  everyRun(t, { seed: 5, numRuns: 2_000 }, [...texts], (text, form) => {
    if (normalizeText(text, form) !== text.normalize(form)) throw new Error(JSON.stringify(text))
  })
  t.equal(
    normalizeText(`a${'\u0316\u0301'.repeat(15)}`, 'NFC'),
    `a${'\u0316\u0301'.repeat(15)}`.normalize('NFC'),
  )
})

t.test('in a run of more than thirty marks a joiner follows each thirty', async (t) => {
  const run = (marks: number) => '\u0316'.repeat(marks)
  t.equal(normalizeText(`a${run(30)}b`, 'NFD'), `a${run(30)}b`)
  t.equal(normalizeText(`a${run(31)}b`, 'NFD'), `a${run(30)}${JOINER}${run(1)}b`)
  t.equal(normalizeText(`a${run(60)}b`, 'NFD'), `a${run(30)}${JOINER}${run(30)}b`)
  const half = normalizeText('\uff9e\u0301'.repeat(100), 'NFKC')
  t.equal(normalizeText(half, 'NFKC'), half, 'again it is the same')
})

t.test('only marks, and two letters, become marks at the beginning of their compatible form', async (t) => {
  const others: string[] = []
  for (let code = 0; code < 0x110000; code++) {
    if (code >= 0xd800 && code < 0xe000) continue
    const character = String.fromCodePoint(code)
    const [first = ''] = character.normalize('NFKD')
    if (!MARKS.test(character) && MARKS.test(first)) others.push(code.toString(16))
  }
  // The vowels am of Thai and Lao: their first part is not sorted.
  t.same(others, ['e33', 'eb3'])
})

t.test('no other file normalizes texts', async (t) => {
  const files = sourceFiles('schemas', 'pipelines', 'src').filter(
    ({ path }) => path !== 'src/core/normalize-text.ts',
  )
  const normalizing = files.filter(({ path }) => /\.normalize\(['"]NF/.test(readText(path)))
  t.same(
    normalizing.map(({ path }) => path),
    [],
  )
})
