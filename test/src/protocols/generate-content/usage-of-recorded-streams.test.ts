/**
 * The same golden usage in both framings, whether the stream passes or is translated.
 * See docs/failure-modes.md, "Money", rows 5, 8 and 12.
 */
import t from 'tap'
import { extraOf, NO_USAGE, type TokenUsage } from '../../../../src/core/pricing/usage.ts'
import { GenerateContentMeter, readWholeAnswer } from '../../../../src/protocols/generate-content/meter.ts'
import { chatCall, runInPieces } from '../messages/streams.ts'
import { ARRAY_STREAMS, EVENT_STREAMS, TO_GENERATE_CONTENT, translatedStream } from './streams.ts'

const CALLS = { prompt: 57, output: 104, reasoning: 71 }
const golden: Readonly<Record<string, Partial<TokenUsage> | null>> = {
  'usage-cumulative': { prompt: 9, output: 12 },
  'escapes-with-done': { prompt: 9, output: 12 },
  'thoughts-and-parallel-calls': CALLS,
  compact: CALLS,
  'max-tokens-while-thinking': { prompt: 5, output: 60, reasoning: 60 },
  'prompt-blocked': { prompt: 14, output: 0 },
  'several-candidates': { prompt: 3, output: 7 },
  'search-cached': {
    ...{ prompt: 100 + 20, cached: 64, output: 3, serverToolCalls: 2 },
    ...extraOf({ tools: { web_search: 2 } }),
  },
  'code-and-picture': {
    ...{ prompt: 8, output: 1302, serverToolCalls: 1 },
    ...extraOf({ tools: { code_interpreter: 1 } }),
  },
  'comments-multi-line-open-end': { prompt: 2, output: 7 },
  'no-usage': null,
  'error-first': null,
  'error-alone': null,
  'error-in-the-middle': { prompt: 7, output: 2 },
  'cut-off': { prompt: 30, output: 3, reasoning: 3 },
}

const WAYS = [
  ['events', EVENT_STREAMS, () => new GenerateContentMeter('sse')],
  ['array', ARRAY_STREAMS, () => new GenerateContentMeter('array')],
  ['translated', EVENT_STREAMS, translatedStream],
] as const

for (const [way, streams, open] of WAYS) {
  t.test(`golden usage, ${way}`, async (t) => {
    for (const [name, stream] of streams) {
      const expected = golden[name]
      t.not(expected, undefined, name)
      const { usage } = runInPieces(open(), stream, []).said
      t.same(usage, expected === null ? null : { ...NO_USAGE, ...expected }, name)
    }
  })
  t.test(`what an interrupted stream said after its last figure is to be estimated, ${way}`, async (t) => {
    const { said } = runInPieces(open(), streams.get('cut-off')!, [])
    const after = 'is forty-two and th'.length
    t.match(said, {
      characters: 'The answer'.length + after,
      charactersSinceUsage: after,
      isComplete: false,
    })
    const complete = runInPieces(open(), streams.get('usage-cumulative')!, []).said
    t.match(complete, { charactersSinceUsage: 0, isComplete: true })
  })
}

const TEXT = { candidates: [{ content: { parts: [{ text: 'Hello' }] }, finishReason: 'STOP' }] }

t.test('whole answers: what is left out is no zero once something was said', async (t) => {
  type Row = readonly [
    usage: object | undefined,
    told: Partial<TokenUsage> | null,
    beyond: number,
    suspect?: string,
  ]
  const rows: readonly Row[] = [
    [undefined, null, 5],
    [{}, null, 5],
    [{ promptTokenCount: 5 }, { prompt: 5 }, 5],
    [{ candidatesTokenCount: 5 }, { output: 5 }, 0],
    [{ promptTokenCount: -5, candidatesTokenCount: 1 }, { output: 1 }, 0, 'promptTokenCount -5'],
    [{ promptTokenCount: 5, candidatesTokenCount: 2 }, { prompt: 5, output: 2 }, 0],
    [
      { promptTokenCount: 5, candidatesTokenCount: 2, thoughtsTokenCount: 7 },
      { prompt: 5, output: 9, reasoning: 7 },
      0,
    ],
    [{ promptTokenCount: 0, totalTokenCount: 0 }, {}, 5],
    [{ promptTokenCount: 5, totalTokenCount: 5 }, { prompt: 5 }, 5],
    [
      { promptTokenCount: 5, thoughtsTokenCount: 7, totalTokenCount: 12 },
      { prompt: 5, output: 7, reasoning: 7 },
      5,
    ],
    [
      { promptTokenCount: 5, thoughtsTokenCount: 7, totalTokenCount: 14 },
      { prompt: 5, output: 9, reasoning: 7 },
      0,
    ],
    [{ promptTokenCount: 5, toolUsePromptTokenCount: 3, totalTokenCount: 10 }, { prompt: 8, output: 2 }, 0],
    [
      { promptTokenCount: 5, cachedContentTokenCount: 9, candidatesTokenCount: 1 },
      { prompt: 5, cached: 5, output: 1 },
      0,
      'cached 9 > prompt 5',
    ],
    [{ promptTokenCount: 5, candidatesTokenCount: 1e300 }, { prompt: 5 }, 5, 'candidatesTokenCount 1e+300'],
    [{ promptTokenCount: '5', candidatesTokenCount: 1 }, { output: 1 }, 0],
    [{ promptTokenCount: 5, candidatesTokenCount: 0 }, { prompt: 5 }, 5],
  ]
  for (const [usageMetadata, told, beyond, suspect] of rows) {
    const body = Buffer.from(JSON.stringify({ ...TEXT, usageMetadata }))
    const usage = told === null ? null : { ...NO_USAGE, ...told }
    const isUsageWhole = usage !== null && usage.prompt > 0 && (beyond === 0 || isToldZero(usageMetadata))
    const metered = {
      usage,
      characters: 5,
      charactersSinceUsage: beyond,
      isUsageWhole,
      ...(suspect && { suspect }),
    }
    const { metered: read, ...answer } = readWholeAnswer(body)
    const { reported, ...native } = read
    t.same({ ...answer, metered: native }, { body, metered, isAnswer: true }, JSON.stringify(usageMetadata))
    if (suspect !== undefined) t.same(reported, usageMetadata)
    const { reported: _, ...translated } = TO_GENERATE_CONTENT.readWhole(chatCall(), body).metered
    t.same(translated, metered, `${JSON.stringify(usageMetadata)}, translated`)
  }
})

/** A zero that is written is a report: no text is estimated where an answer ends with it. */
const isToldZero = (usage: object | undefined): boolean =>
  (usage as { candidatesTokenCount?: number } | undefined)?.candidatesTokenCount === 0

for (const [way, , open] of WAYS)
  t.test(`a thought that is counted alone leaves the text to be estimated, ${way}`, async (t) => {
    const chunk = (parts: object[], usageMetadata: object) => ({
      candidates: [{ content: { parts } }],
      usageMetadata: { promptTokenCount: 5, ...usageMetadata },
    })
    const thought = { text: 'Hm, a thought.', thought: true }
    const chunks = [
      chunk([thought], { thoughtsTokenCount: 40, totalTokenCount: 45 }),
      chunk([{ text: 'x'.repeat(100) }], { thoughtsTokenCount: 40, totalTokenCount: 45 }),
    ]
    const stream =
      way === 'array'
        ? JSON.stringify(chunks)
        : chunks.map((each) => `data: ${JSON.stringify(each)}\n\n`).join('')
    const { said } = runInPieces(open(), Buffer.from(stream), [])
    t.match(said, { usage: { output: 40, reasoning: 40 }, charactersSinceUsage: 100, isUsageWhole: false })
  })
