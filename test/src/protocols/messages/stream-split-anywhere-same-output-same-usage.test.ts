/**
 * Every recorded stream, split at every byte: same output, same usage, native and translated.
 * See docs/failure-modes.md, "Streams", rows 30 and 31.
 */
import t, { type Test } from 'tap'
import type { AnswerStream } from '../../../../src/protocols/dialect.ts'
import { MessagesMeter } from '../../../../src/protocols/messages/meter.ts'
import { Random } from '../../../simulation/random.ts'
import { GOLDEN, MESSAGES_STREAMS, runInPieces, translatedStream } from './streams.ts'

const SEED = 30
const RANDOM_SPLITS = 200

function checkEverySplit(t: Test, open: () => AnswerStream, stream: Buffer, output: Buffer): void {
  const whole = runInPieces(open(), stream, [])
  // Where an event was cut off by the end, whether it counts as begun depends on nothing but its bytes.
  const check = (cuts: readonly number[]): boolean => {
    const got = runInPieces(open(), stream, cuts)
    if (got.output.equals(output) && JSON.stringify(got.said) === JSON.stringify(whole.said)) return true
    t.same(got.said, whole.said, `said, cut at ${cuts}`)
    return t.equal(got.output.toString(), output.toString(), `output, cut at ${cuts}`)
  }
  t.ok(check([]), 'whole')
  for (let cut = 1; cut < stream.length; cut++) if (!check([cut])) return
  const random = new Random(SEED)
  for (let i = 0; i < RANDOM_SPLITS; i++) {
    const cuts = [random.int(0, stream.length), random.int(0, stream.length)].sort((a, b) => a - b)
    if (!check(cuts)) return
  }
  const everyByte = Array.from({ length: stream.length - 1 }, (_, i) => i + 1)
  t.ok(check(everyByte), 'byte by byte')
}

t.test('there is a golden translation of every recorded stream', async (t) => {
  t.not(MESSAGES_STREAMS.size, 0)
  t.same([...GOLDEN.keys()].sort(), [...MESSAGES_STREAMS.keys()].sort())
})

for (const [name, stream] of MESSAGES_STREAMS) {
  t.test(`${name}, native: not a byte changed`, async (t) => {
    checkEverySplit(t, () => new MessagesMeter(), stream, stream)
  })
  t.test(`${name}, translated: as golden`, async (t) => {
    checkEverySplit(t, translatedStream, stream, GOLDEN.get(name)!)
  })
}
