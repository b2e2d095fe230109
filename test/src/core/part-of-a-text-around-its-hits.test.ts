import fc from 'fast-check'
import t from 'tap'
import { aroundHits, markedWords } from '../../../src/core/search/around-hits.ts'

t.test('the marked words of a snippet', async (t) => {
  t.same(markedWords('a <mark>Return</mark> &amp; <mark>R&amp;D</mark> <mark>return</mark> <mark> </mark>'), [
    'return',
    'r&d',
  ])
  t.same(markedWords('plain'), [])
})

t.test('a short text is whole, a long one begins where most of the words stand', async (t) => {
  t.equal(aroundHits('short\ntext', ['x'], 10), 'short\ntext')
  const line = (words: string) => `${words.padEnd(49, '.')}\n`
  const text = line('one alpha') + line('').repeat(20) + line('two alpha and beta') + line('').repeat(20)
  const part = aroundHits(text, ['alpha', 'beta'], 100)
  t.match(part, /^….*two alpha and beta.*…$/s)
  t.match(aroundHits(text, ['alpha'], 100), /^one alpha/, 'the beginning where that does as well')
  t.match(aroundHits(text, [], 100), /^one alpha/)
  const chinese = `${'甲。'.repeat(500)}乙丙丁。${'甲。'.repeat(500)}`
  t.match(
    aroundHits(chinese, ['丙'], 40),
    /^…(?:甲。){4,}乙丙丁。(?:甲。){4,}…$/,
    'where there are no lines, too',
  )
})

t.test('it is never longer than asked for, and nothing else than the text', async (t) => {
  const text = fc.string({ unit: fc.constantFrom('a', 'b', 'ß', 'İ', '😀', '\n', '. ', '。'), maxLength: 80 })
  fc.assert(
    fc.property(
      text,
      fc.array(fc.constantFrom('a', 'b', 'ab', '😀')),
      fc.integer({ min: 2, max: 40 }),
      (whole, words, max) => {
        const part = aroundHits(whole, words, max)
        t.ok([...part].length <= max)
        t.ok(whole.includes(part.replace(/^…/, '').replace(/…$/, '')))
      },
    ),
  )
})
