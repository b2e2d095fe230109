/**
 * The same golden usage, whether the stream passes or is translated.
 * See docs/failure-modes.md, "Money", rows 7, 8, 12 and 13.
 */
import t from 'tap'
import { pricing } from '../../../../schemas/config/catalog.ts'
import { tokenCharge, tokenPrice } from '../../../../src/core/pricing/pricing.ts'
import { extraOf, NO_USAGE, type TokenUsage } from '../../../../src/core/pricing/usage.ts'
import type { AnswerStream } from '../../../../src/protocols/dialect.ts'
import { MessagesMeter } from '../../../../src/protocols/messages/meter.ts'
import { weighed } from '../chat-completions/reference.ts'
import { MESSAGES_STREAMS, runInPieces, translatedStream } from './streams.ts'

const golden: Readonly<Record<string, Partial<TokenUsage> | null>> = {
  'text-with-cache': { prompt: 20 + 300 + 1200, cached: 1200, cacheWrite: 300, output: 31 },
  'thinking-and-parallel-tools': { prompt: 412, output: 88 },
  'crlf-comments-multi-line': { prompt: 7, output: 4 },
  'web-search': {
    ...{ prompt: 2310 + 64, cached: 64, output: 120, serverToolCalls: 3 },
    ...extraOf({ tools: { web_search: 2, url_context: 1 } }),
  },
  'usage-cumulative': { prompt: 33 + 5, cached: 5, output: 8 },
  'escapes-and-open-end': { prompt: 3, output: 6 },
  'no-output-usage': { prompt: 40, output: 0 },
  'error-first': null,
  'error-in-the-middle': { prompt: 50, output: 0 },
  'cut-off': { prompt: 1000, cached: 100, output: 0 },
}

const WAYS: ReadonlyArray<readonly [string, () => AnswerStream]> = [
  ['native', () => new MessagesMeter()],
  ['translated', translatedStream],
]

for (const [way, open] of WAYS)
  t.test(`golden usage, ${way}`, async (t) => {
    t.same(Object.keys(golden).sort(), [...MESSAGES_STREAMS.keys()].sort())
    for (const [name, stream] of MESSAGES_STREAMS) {
      const expected = golden[name]
      const { usage } = runInPieces(open(), stream, []).said
      t.same(usage, expected === null ? null : { ...NO_USAGE, ...expected }, name)
    }
  })

for (const [way, open] of WAYS)
  t.test(`what an interrupted stream said is left to be estimated, ${way}`, async (t) => {
    const stream = MESSAGES_STREAMS.get('cut-off')!
    const { said } = runInPieces(open(), stream, [])
    const spoken = 'Hmm.The answer is forty-two and th'.length
    t.match(said, { characters: spoken, charactersSinceUsage: spoken, isComplete: false })
    const complete = runInPieces(open(), MESSAGES_STREAMS.get('text-with-cache')!, []).said
    t.match(complete, { charactersSinceUsage: 0, isComplete: true })
    t.ok(complete.characters > 0)
  })

t.test(
  'a character beyond the basic plane is weighed once, also where its halves come in two events',
  async (t) => {
    const stream = MESSAGES_STREAMS.get('escapes-and-open-end')!
    for (const [way, open] of WAYS)
      t.equal(runInPieces(open(), stream, []).said.characters, weighed('café 😀 done'), way)
  },
)

for (const [way, open] of WAYS)
  t.test(`an error as the first event is the answer's error, a later one is not, ${way}`, async (t) => {
    const first = runInPieces(open(), MESSAGES_STREAMS.get('error-first')!, []).said
    t.same(JSON.parse(String(first.firstError)), {
      type: 'error',
      error: { type: 'overloaded_error', message: 'Overloaded' },
    })
    t.equal(first.hasBegun, false, 'neither a ping nor an error begins an answer')
    const later = runInPieces(open(), MESSAGES_STREAMS.get('error-in-the-middle')!, []).said
    t.match(later, { firstError: null, isComplete: false })
  })

for (const [way, open] of WAYS)
  t.test(
    `an error is known by the event's name, or by the shape that most others have, ${way}`,
    async (t) => {
      for (const stream of ['event: error\r\ndata: "no"\r\n\r\n', 'data: {"error":{"message":"no"}}\n\n'])
        t.match(runInPieces(open(), Buffer.from(stream), []).said.firstError?.toString(), /no/, stream)
      const block = '{"type":"content_block_start","content_block":{"type":"tool_use","name":"f"}}'
      const late = 'data: {"error":{"message":"late"}}\n\n'
      const none = `data: {"type":"x","error":null}\n\ndata: ${block}\n\n${late}`
      t.equal(runInPieces(open(), Buffer.from(none), []).said.firstError, null)
    },
  )

t.test('cache writes are charged 1.25 of the input price once, cache hits at their own', async (t) => {
  const price = tokenPrice(
    pricing.parse({ unit: '1M_tokens', input: '100', cached_input: '10', output: '200' }),
  )!
  for (const [way, open] of WAYS) {
    const { usage } = runInPieces(open(), MESSAGES_STREAMS.get('text-with-cache')!, []).said
    const credits = Number(tokenCharge(price, usage!, 0)) / 1e8
    t.equal(credits, (20 * 100 + 300 * 125 + 1200 * 10 + 31 * 200) / 1e6, way)
  }
})

for (const [way, open] of WAYS)
  t.test(`an answer without an output count is not one of no output, ${way}`, async (t) => {
    const { said } = runInPieces(open(), MESSAGES_STREAMS.get('no-output-usage')!, [])
    t.match(said, { characters: 8, charactersSinceUsage: 8, isComplete: true, isUsageWhole: false })
    const told = runInPieces(open(), MESSAGES_STREAMS.get('text-with-cache')!, []).said
    t.match(told, { charactersSinceUsage: 0, isComplete: true, isUsageWhole: true })
  })

t.test('no one is billed by a count that cannot be', async (t) => {
  const event = (data: object) => `data: ${JSON.stringify(data)}\n\n`
  for (const input_tokens of [-1, 1e12, '7', null, Number.NaN])
    for (const [way, open] of WAYS) {
      const stream = Buffer.from(
        event({ type: 'message_start', message: { id: 'm', usage: { input_tokens, output_tokens: 1 } } }) +
          event({ type: 'message_delta', delta: {}, usage: { output_tokens: 5 } }) +
          event({ type: 'message_stop' }),
      )
      const { usage, isUsageWhole } = runInPieces(open(), stream, []).said
      t.same([usage, isUsageWhole], [{ ...NO_USAGE, output: 5 }, false], `${way}: ${input_tokens}`)
    }
})
