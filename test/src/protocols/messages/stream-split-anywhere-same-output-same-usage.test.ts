/**
 * Every recorded stream, split at every byte: same output, same usage, native and translated.
 * See docs/failure-modes.md, "Streams", rows 30 and 31.
 */
import t, { type Test } from 'tap'
import type { AnswerStream } from '../../../../src/protocols/dialect.ts'
import { MessagesMeter } from '../../../../src/protocols/messages/meter.ts'
import { checkEverySplit } from '../every-split.ts'
import { GOLDEN, MESSAGES_STREAMS, runInPieces, translatedStream } from './streams.ts'

const SEED = 30
const RANDOM_SPLITS = 200

function checkStream(t: Test, open: () => AnswerStream, stream: Buffer, output: Buffer): void {
  const whole = runInPieces(open(), stream, [])
  // Where an event was cut off by the end, whether it counts as begun depends on nothing but its bytes.
  const check = (cuts: readonly number[]): boolean => {
    const got = runInPieces(open(), stream, cuts)
    if (got.output.equals(output) && JSON.stringify(got.said) === JSON.stringify(whole.said)) return true
    t.same(got.said, whole.said, `said, cut at ${cuts}`)
    return t.equal(got.output.toString(), output.toString(), `output, cut at ${cuts}`)
  }
  checkEverySplit(t, stream, { seed: SEED, pairs: RANDOM_SPLITS }, check)
}

t.test('there is a golden translation of every recorded stream', async (t) => {
  t.not(MESSAGES_STREAMS.size, 0)
  t.same([...GOLDEN.keys()].sort(), [...MESSAGES_STREAMS.keys()].sort())
})

for (const [name, stream] of MESSAGES_STREAMS) {
  t.test(`${name}, native: not a byte changed`, async (t) => {
    checkStream(t, () => new MessagesMeter(), stream, stream)
  })
  t.test(`${name}, translated: as golden`, async (t) => {
    checkStream(t, translatedStream, stream, GOLDEN.get(name)!)
  })
}
