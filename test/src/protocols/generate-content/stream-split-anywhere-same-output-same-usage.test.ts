/**
 * Every recorded stream, split at every byte: same output, same usage, as events and as an array, native and
 * translated. See docs/failure-modes.md, "Streams", rows 30 and 31.
 */
import t, { type Test } from 'tap'
import type { AnswerStream } from '../../../../src/protocols/dialect.ts'
import { GenerateContentMeter, readWholeAnswer } from '../../../../src/protocols/generate-content/meter.ts'
import { Random } from '../../../simulation/random.ts'
import { checkEverySplit } from '../every-split.ts'
import { runInPieces } from '../messages/streams.ts'
import {
  ARRAY_STREAMS,
  chunksOfArray,
  chunksOfEvents,
  EVENT_STREAMS,
  GOLDEN,
  saidIn,
  translatedStream,
  withoutChance,
} from './streams.ts'

const SEED = 30
const SPLITS = { seed: SEED, pairs: 100 }

/** Not a byte changed, and the facts of the stream are those of its chunks. */
function checkNative(t: Test, framing: 'sse' | 'array', stream: Buffer, chunks: readonly unknown[]): void {
  const whole = runInPieces(new GenerateContentMeter(framing), stream, [])
  const { characters, isComplete, firstError } = whole.said
  const error = firstError === null ? null : JSON.parse(firstError.toString()).error
  t.same({ characters, isComplete, firstError: error }, saidIn(chunks))
  checkEverySplit(t, stream, SPLITS, (cuts) => {
    const got = runInPieces(new GenerateContentMeter(framing), stream, cuts)
    if (got.output.equals(stream) && JSON.stringify(got.said) === JSON.stringify(whole.said)) return true
    t.same(got.said, whole.said, `said, cut at ${cuts}`)
    return t.equal(got.output.toString(), stream.toString(), `output, cut at ${cuts}`)
  })
}

function checkTranslated(t: Test, open: () => AnswerStream, stream: Buffer, golden: string): void {
  const whole = runInPieces(open(), stream, [])
  checkEverySplit(t, stream, SPLITS, (cuts) => {
    const got = runInPieces(open(), stream, cuts)
    const output = withoutChance(got.output)
    if (output === golden && JSON.stringify(got.said) === JSON.stringify(whole.said)) return true
    t.same(got.said, whole.said, `said, cut at ${cuts}`)
    return t.equal(output, golden, `output, cut at ${cuts}`)
  })
}

t.test('there is a golden translation of every recorded stream of events', async (t) => {
  t.not(EVENT_STREAMS.size, 0)
  t.not(ARRAY_STREAMS.size, 0)
  t.same([...GOLDEN.keys()].sort(), [...EVENT_STREAMS.keys()].sort())
})

for (const [name, stream] of EVENT_STREAMS) {
  t.test(`${name}, events`, async (t) => checkNative(t, 'sse', stream, chunksOfEvents(stream)))
  t.test(`${name}, translated: as golden`, async (t) =>
    checkTranslated(t, translatedStream, stream, GOLDEN.get(name)!.toString()),
  )
}

for (const [name, stream] of ARRAY_STREAMS)
  t.test(`${name}, array`, async (t) => checkNative(t, 'array', stream, chunksOfArray(stream)))

t.test('an event of any length is read', async (t) => {
  const megabytes = 3
  const picture = 'QUJD'.repeat((megabytes * 1024 * 1024) / 4)
  const chunk = {
    candidates: [
      {
        content: { parts: [{ inlineData: { data: picture } }, { text: 'done' }], role: 'model' },
        finishReason: 'STOP',
      },
    ],
    usageMetadata: { promptTokenCount: 3, candidatesTokenCount: 1290, totalTokenCount: 1293 },
  }
  const stream = Buffer.from(`data: ${JSON.stringify(chunk)}\r\n\r\n`)
  const cuts = Array.from({ length: Math.floor(stream.length / 65_536) }, (_, i) => (i + 1) * 65_536)
  for (const open of [() => new GenerateContentMeter('sse'), translatedStream]) {
    const { said } = runInPieces(open(), stream, cuts)
    t.match(said, { characters: 4, isComplete: true, usage: { prompt: 3, output: 1290 } })
  }
})

t.test('malformed bytes make fewer facts, never an error', async (t) => {
  const whole = [...ARRAY_STREAMS.values(), ...EVENT_STREAMS.values()]
  const random = new Random(SEED)
  for (let run = 0; run < 1000; run++) {
    const bytes = Buffer.from(random.pick(whole))
    for (let i = random.int(1, 5); i > 0; i--) {
      const at = random.int(0, bytes.length - 1)
      const byte = random.pick([...Buffer.from('"{}[],:\\\n u')])
      bytes[at] = byte
    }
    const framing = random.pick(['sse', 'array'] as const)
    const { output, said } = runInPieces(new GenerateContentMeter(framing), bytes, [])
    if (!output.equals(bytes)) t.fail('bytes were changed')
    if (!(said.characters >= 0 && said.characters <= 1.5 * bytes.length))
      t.fail(`${said.characters} characters`)
    readWholeAnswer(bytes)
    runInPieces(translatedStream(), bytes, [])
  }
  t.pass()
})
