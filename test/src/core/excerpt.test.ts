import fc from 'fast-check'
import t from 'tap'
import { excerpt } from '../../../src/core/search/excerpt.ts'
import { ANY_CHARACTER } from '../../support/any-character.ts'

t.test('what is short enough stays as it is', async (t) => {
  t.same(excerpt('', 3), { text: '', isCut: false })
  t.same(excerpt('abc', 3), { text: 'abc', isCut: false })
  t.same(excerpt('😀😀😀', 3), { text: '😀😀😀', isCut: false })
})

t.test('what is longer is cut behind the last whole character', async (t) => {
  t.same(excerpt('abcd', 3), { text: 'abc', isCut: true })
  t.same(excerpt('😀😀😀', 2), { text: '😀😀', isCut: true })
  t.same(excerpt('a😀b', 2), { text: 'a😀', isCut: true })
  t.same(excerpt('知识库', 2), { text: '知识', isCut: true })
  t.same(excerpt('\ud83d\ud83d\ude00x', 2), { text: '\ud83d😀', isCut: true }, 'half a pair is one too')
})

t.test('it is what the first characters are, of any text', async () => {
  fc.assert(
    fc.property(fc.string({ unit: ANY_CHARACTER }), fc.nat({ max: 20 }), (text, max) => {
      const characters = [...text]
      const { text: cut, isCut } = excerpt(text, max)
      return cut === characters.slice(0, max).join('') && isCut === characters.length > max
    }),
  )
})
