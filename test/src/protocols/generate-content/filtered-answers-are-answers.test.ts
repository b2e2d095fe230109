/** A generate-content answer that a filter took, without content and usage, is an answer natively as it is translated. */
import t from 'tap'
import { GenerateContentMeter, readWholeAnswer } from '../../../../src/protocols/generate-content/meter.ts'
import { translatedStream } from './streams.ts'

const answerOf = (finishReason: string) => JSON.stringify({ candidates: [{ finishReason }] })

for (const [reason, isAnswer] of [
  ['SAFETY', true],
  ['RECITATION', true],
  ['IMAGE_SAFETY', true],
  ['STOP', false],
  ['MAX_TOKENS', false],
] as const)
  t.test(reason, async (t) => {
    const body = Buffer.from(answerOf(reason))
    t.equal(readWholeAnswer(body).isAnswer, isAnswer, 'whole')
    const native = new GenerateContentMeter('sse')
    const translated = translatedStream()
    for (const byte of Buffer.from(`data: ${answerOf(reason)}\n\n`)) {
      native.push(Buffer.from([byte]))
      translated.push(Buffer.from([byte]))
    }
    t.match(native, { isAnswer, isComplete: true })
    translated.end()
    t.equal(translated.isAnswer, isAnswer, 'translated')
  })
