/**
 * Every recorded stream, split at every byte: same output, same usage.
 * See docs/failure-modes.md, "Streams", rows 30 and 31.
 */
import t from 'tap'
import { ChatCompletionsMeter } from '../../../../src/protocols/chat-completions/meter.ts'
import { MAX_READ_EVENT_BYTES } from '../../../../src/protocols/sse/framer.ts'
import { Random } from '../../../simulation/random.ts'
import { checkEverySplit, outputInPieces } from '../every-split.ts'
import { referenceOf, STREAMS, saidBy, weighed, withoutUsageChunks } from './reference.ts'

const SEED = 31
const RANDOM_SPLITS = 500

function run(stream: Buffer, cuts: readonly number[], withholdUsage: boolean) {
  const meter = new ChatCompletionsMeter({ withholdUsage })
  return { output: outputInPieces(meter, stream, cuts), said: saidBy(meter) }
}

for (const [name, stream] of STREAMS) {
  t.test(name, async (t) => {
    const text = stream.toString('utf8')
    // A stream that lacks its last empty line is read as if it had it.
    const said = referenceOf(`${text}\n\n`)
    for (const withholdUsage of [true, false]) {
      const expected = withholdUsage ? Buffer.from(withoutUsageChunks(text)) : stream
      const check = (cuts: readonly number[]) => {
        const got = run(stream, cuts, withholdUsage)
        if (got.output.equals(expected) && JSON.stringify(got.said) === JSON.stringify(said)) return true
        t.same(got.said, said, `said, cut at ${cuts} (withheld: ${withholdUsage})`)
        return t.equal(got.output.toString(), expected.toString(), `output, cut at ${cuts}`)
      }
      checkEverySplit(t, stream, { seed: SEED, pairs: RANDOM_SPLITS }, check)
    }
  })
}

t.test('an event too long to be kept is passed on and read however split, as is what follows', async (t) => {
  const chunk = (delta: object) => `data: ${JSON.stringify({ choices: [{ index: 0, delta }] })}\n\n`
  const usage = 'data: {"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2}}\n\n'
  const text = 'ä'.repeat(MAX_READ_EVENT_BYTES / 2)
  const characters = weighed(`before${text}after${text}`)
  const long = chunk({ content: text })
  const before = chunk({ content: 'before' })
  const after = chunk({ content: 'after' })
  const longFrom = before.length
  const longTo = longFrom + Buffer.byteLength(long)
  const stream = Buffer.from(before + long + after + usage + long + usage)
  const outputs = {
    true: Buffer.from(before + long + after + long),
    false: stream,
  }
  const near = (at: number) => [at - 2, at - 1, at, at + 1, at + 2]
  const places = [
    ...near(longFrom),
    ...near(longFrom + MAX_READ_EVENT_BYTES),
    ...near(longTo),
    ...near(longTo + after.length),
    ...near(longTo + after.length + usage.length),
    ...near(stream.length - usage.length),
  ].filter((at) => at < stream.length)
  const random = new Random(SEED)
  const splits = [
    [],
    ...places.map((at) => [at]),
    ...places
      .slice(0, 20)
      .map(() => [random.pick(places), random.int(0, stream.length)].sort((a, b) => a - b)),
    Array.from({ length: Math.floor(stream.length / 65_536) }, (_, i) => (i + 1) * 65_536),
  ]
  for (const cuts of splits) {
    for (const withholdUsage of [true, false] as const) {
      const { output, said } = run(stream, cuts, withholdUsage)
      if (!output.equals(outputs[`${withholdUsage}`])) t.fail(`output, cut at ${cuts}`)
      if (said.characters !== characters) t.fail(`${said.characters} characters, cut at ${cuts}`)
      if (said.usage?.output !== 2) t.fail(`usage, cut at ${cuts}`)
    }
  }
  t.ok(splits.length > 40)
})
