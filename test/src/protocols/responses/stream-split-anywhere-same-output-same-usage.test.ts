/**
 * Every recorded stream, split at every byte: same output, same usage.
 * See docs/failure-modes.md, "Streams", rows 30 and 31.
 */
import t from 'tap'
import { MAX_READ_EVENT_BYTES } from '../../../../src/protocols/sse/framer.ts'
import { Random } from '../../../simulation/random.ts'
import { checkEverySplit } from '../every-split.ts'
import { RESPONSES_STREAMS, referenceOf, runInPieces } from './streams.ts'

const SEED = 31
const RANDOM_SPLITS = 300

for (const [name, stream] of RESPONSES_STREAMS) {
  t.test(name, async (t) => {
    const said = referenceOf(name.endsWith('open-end') ? `${stream}\n\n` : stream.toString())
    const { firstError } = runInPieces(stream, [])
    t.equal(firstError !== null, name.endsWith('at-once'))
    const check = (cuts: readonly number[]): boolean => {
      const got = runInPieces(stream, cuts)
      const isSame = got.output.equals(stream) && got.firstError === firstError
      if (isSame && JSON.stringify(got.said) === JSON.stringify(said)) return true
      t.same(got.said, said, `said, cut at ${cuts}`)
      t.equal(got.firstError, firstError, `first error, cut at ${cuts}`)
      return t.equal(got.output.toString(), stream.toString(), `output, cut at ${cuts}`)
    }
    checkEverySplit(t, stream, { seed: SEED, pairs: RANDOM_SPLITS }, check)
  })
}

t.test('events with pictures and long answers are longer than is kept, and read all the same', async (t) => {
  const print = (event: object) => `data: ${JSON.stringify(event)}\n\n`
  const picture = 'A'.repeat(MAX_READ_EVENT_BYTES)
  const item = { id: 'ig_1', result: picture, status: 'completed', type: 'image_generation_call' }
  const text = `"usage":{"output_tokens":9},]}\\ ${'ä"\\'.repeat(MAX_READ_EVENT_BYTES / 4)}`
  const output = [
    { type: 'message', content: [{ type: 'output_text', text, logprobs: [[{ usage: 1 }]] }] },
    item,
  ]
  const usage = {
    input_tokens: 70,
    input_tokens_details: { cached_tokens: 64 },
    output_tokens: 30,
    output_tokens_details: { reasoning_tokens: 10 },
  }
  const partial = { type: 'response.image_generation_call.partial_image', partial_image_b64: picture }
  const response = { output, status: 'completed', instructions: text, usage, metadata: { a: '"' } }
  const parts = [
    print({ type: 'response.output_text.delta', delta: 'before' }),
    print(partial),
    print({ type: 'response.output_item.done', item }),
    print({ type: 'response.output_text.delta', delta: 'after' }),
    `event: response.completed\ndata: ${JSON.stringify({ response, type: 'response.completed' }, null, 1).replaceAll('\n', '\ndata: ')}\n\n`,
  ]
  const stream = Buffer.from(parts.join(''))
  const said = referenceOf(stream.toString())
  t.match(said, { isComplete: true, serverToolCalls: 1, usage: { cached: 64 }, characters: 11 })
  const edges = parts.map((_, i) => Buffer.byteLength(parts.slice(0, i + 1).join('')))
  const near = edges.flatMap((edge) => [edge - 2, edge - 1, edge, edge + 1, edge + MAX_READ_EVENT_BYTES])
  const random = new Random(SEED)
  const splits = [
    [],
    ...near.map((at) => [at]),
    ...near.map(() => [random.int(0, stream.length), random.int(0, stream.length)].sort((a, b) => a - b)),
    Array.from({ length: Math.floor(stream.length / 65_537) }, (_, i) => (i + 1) * 65_537),
  ].map((cuts) => cuts.filter((at) => at > 0 && at < stream.length))
  for (const cuts of splits) {
    const got = runInPieces(stream, cuts)
    if (!got.output.equals(stream)) t.fail(`output, cut at ${cuts}`)
    if (JSON.stringify(got.said) !== JSON.stringify(said)) t.same(got.said, said, `cut at ${cuts}`)
  }
  t.ok(splits.length > 40)
})

t.test('a long event that is broken off says nothing', async (t) => {
  const usage = '"usage":{"input_tokens":1,"output_tokens":1}'
  const text = 'x'.repeat(MAX_READ_EVENT_BYTES)
  const whole = `data: {"type":"response.completed","response":{${usage},"output":[{"text":"${text}"}]}}`
  t.match(runInPieces(Buffer.from(whole), []).said, { isComplete: true, usage: { output: 1 } })
  const broken = Buffer.from(whole.slice(0, -4))
  t.match(runInPieces(broken, []).said, { isComplete: false, usage: null })
})
