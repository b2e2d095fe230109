/** A text that is cut keeps to its limit, and to whole characters: half of one is refused by parsers and engines. */
import fc from 'fast-check'
import t from 'tap'
import { DETAIL_TEXT_MAX_CHARS, textPiece } from '../../../src/core/call-log/detail-text.ts'
import { cutText, shortened } from '../../../src/core/json/cut.ts'
import { jobLines } from '../../../src/core/media/job-facts.ts'
import { REFUSED_MODEL_MAX_CHARS, refusedModel } from '../../../src/protocols/request/refused-model.ts'
import { ANY_CHARACTER } from '../../support/any-character.ts'

/** In one of them any limit is in the middle of a face. */
const FACES = ['', 'a'].map((start) => `${start}${'😀'.repeat(1_000)}`)

const keptOf = (piece: string): string => Object.values(JSON.parse(`{${piece.slice(1)}}`))[0] as string

for (const text of FACES) {
  t.test(`a text of the detail of faces${text.startsWith('a') ? ' behind a letter' : ''}`, async (t) => {
    const kept = keptOf(textPiece('reasoning_effort', text))
    t.ok(kept.isWellFormed())
    t.ok(kept.length <= DETAIL_TEXT_MAX_CHARS, `${kept.length} characters`)
    t.ok(kept.endsWith('😀…'))
  })

  t.test(`a line of a job of faces${text.startsWith('a') ? ' behind a letter' : ''}`, async (t) => {
    const video = { work: 'video', content: [], duration: 5, resolution: text, ratio: null, extra: {} }
    const [, kept = ''] = jobLines(video as never).find(([name]) => name === 'resolution') ?? []
    t.ok(kept.isWellFormed())
    t.ok(kept.length <= DETAIL_TEXT_MAX_CHARS, `${kept.length} characters`)
  })

  t.test(`a refused model of faces${text.startsWith('a') ? ' behind a letter' : ''}`, async (t) => {
    const kept = refusedModel(
      '/v1/chat/completions',
      Buffer.from(JSON.stringify({ model: text.slice(0, 403) })),
    )
    t.ok(kept.isWellFormed())
    t.ok(kept.length <= REFUSED_MODEL_MAX_CHARS && kept.length >= REFUSED_MODEL_MAX_CHARS - 1)
  })
}

t.test('any text', async () => {
  const text = fc.string({ unit: ANY_CHARACTER })
  fc.assert(
    fc.property(text, fc.nat({ max: 20 }), (whole, maxChars) => {
      const cut = cutText(whole, maxChars)
      return cut.isWellFormed() && whole.startsWith(cut) && cut.length <= maxChars
    }),
  )
  fc.assert(
    fc.property(text, fc.integer({ min: 1, max: 20 }), (whole, maxChars) => {
      const short = shortened(whole, maxChars)
      return short.isWellFormed() && short.length <= maxChars && (short === whole || short.endsWith('…'))
    }),
  )
})
