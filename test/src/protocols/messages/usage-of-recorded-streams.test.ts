/**
 * The same golden usage, whether the stream passes or is translated.
 * See docs/failure-modes.md, "Money", rows 7, 8, 12 and 13.
 */
import t from 'tap'
import { pricing } from '../../../../schemas/config/catalog.ts'
import { tokenCharge, tokenPrice } from '../../../../src/core/pricing/pricing.ts'
import { extraOf, NO_USAGE, type TokenUsage } from '../../../../src/core/pricing/usage.ts'
import type { AnswerStream } from '../../../../src/protocols/dialect.ts'
import { MessagesMeter, readWholeMessage } from '../../../../src/protocols/messages/meter.ts'
import { weighed } from '../chat-completions/reference.ts'
import { chatCall, MESSAGES_STREAMS, runInPieces, TO_MESSAGES, translatedStream } from './streams.ts'

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

t.test('a character beyond the basic plane is weighed once, also if its halves come apart', async (t) => {
  const stream = MESSAGES_STREAMS.get('escapes-and-open-end')!
  for (const [way, open] of WAYS)
    t.equal(runInPieces(open(), stream, []).said.characters, weighed('café 😀 done'), way)
})

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
  t.test(`an error is known by its event's name, or by the shape of most others, ${way}`, async (t) => {
    for (const stream of ['event: error\r\ndata: "no"\r\n\r\n', 'data: {"error":{"message":"no"}}\n\n'])
      t.match(runInPieces(open(), Buffer.from(stream), []).said.firstError?.toString(), /no/, stream)
    const block = '{"type":"content_block_start","content_block":{"type":"tool_use","name":"f"}}'
    const late = 'data: {"error":{"message":"late"}}\n\n'
    const none = `data: {"type":"x","error":null}\n\ndata: ${block}\n\n${late}`
    t.equal(runInPieces(open(), Buffer.from(none), []).said.firstError, null)
  })

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

const SUMMARY = 'The user asked for a plan.'
/** A prompt that the upstream summarises before it answers. */
const COMPACTED = {
  start: { input_tokens: 60_000, output_tokens: 1 },
  end: {
    ...{
      input_tokens: 2,
      cache_read_input_tokens: 3146,
      cache_creation_input_tokens: 445,
      output_tokens: 74,
    },
    iterations: [
      {
        type: 'compaction',
        ...{ input_tokens: 106_576, cache_read_input_tokens: 20, cache_creation_input_tokens: 3146 },
        cache_creation: { ephemeral_5m_input_tokens: 3000, ephemeral_1h_input_tokens: 146 },
        output_tokens: 312,
      },
      { type: 'compaction', input_tokens: 100, output_tokens: 10 },
      { type: 'message', input_tokens: 2, cache_read_input_tokens: 3146, output_tokens: 74 },
    ],
  },
}
const COMPACTED_USAGE = {
  prompt: 2 + 3146 + 445 + 106_576 + 20 + 3146 + 100,
  ...{ cached: 3146 + 20, cacheWrite: 445 + 3146, output: 74 + 312 + 10, reasoning: 0, serverToolCalls: 0 },
  ...extraOf({ cacheWrite1h: 146, compaction: { count: 2, largestPrompt: 106_576 + 20 + 3146 } }),
}
const sse = (events: readonly object[]): Buffer =>
  Buffer.from(events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join(''))
const compactedEvents = (start: object, ends: readonly object[], padding = '') => [
  { type: 'message_start', message: { id: 'm', usage: start } },
  { type: 'content_block_start', index: 0, content_block: { type: 'compaction', content: null } },
  { type: 'content_block_delta', index: 0, delta: { type: 'compaction_delta', content: SUMMARY } },
  { type: 'content_block_stop', index: 0 },
  ...ends.map((usage) => ({ x: padding, type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage })),
  { type: 'message_stop' },
]

for (const [way, open] of WAYS)
  t.test(`summaries of the prompt are charged beside the message, ${way}`, async (t) => {
    const { start, end } = COMPACTED
    const endings = {
      once: [end],
      'by the last report': [{ ...end, iterations: [{ ...end.iterations[0]!, input_tokens: 5 }] }, end],
      'kept by a report without them': [end, { output_tokens: 74 }],
    }
    for (const [what, ends] of Object.entries(endings)) {
      const { said } = runInPieces(open(), sse(compactedEvents(start, ends)), [])
      t.same(said.usage, COMPACTED_USAGE, what)
      t.match(said, { suspect: '', isUsageWhole: true }, what)
    }
    const long = compactedEvents(start, [end], 'x'.repeat(600_000))
    t.same(runInPieces(open(), sse(long), []).said.usage, COMPACTED_USAGE, 'in a long event')
  })

t.test('a call that ends with the summary costs what it took, and is not suspect', async (t) => {
  const iterations = [{ type: 'compaction', input_tokens: 54_453, output_tokens: 883 }]
  const usage = { input_tokens: 0, output_tokens: 0, iterations }
  const expected = { ...NO_USAGE, prompt: 54_453, output: 883 }
  const content = [{ type: 'compaction', content: SUMMARY }]
  const body = Buffer.from(JSON.stringify({ type: 'message', content, stop_reason: 'compaction', usage }))
  t.match(readWholeMessage(body), {
    isAnswer: true,
    metered: { usage: expected, characters: SUMMARY.length },
  })
  const { metered } = TO_MESSAGES.readWhole(chatCall(), body)
  t.match(metered, { usage: expected })
  // The gateway's own count of the prompt at the start is the larger one.
  for (const input_tokens of [0, 54_460])
    for (const [way, open] of WAYS) {
      const { said } = runInPieces(open(), sse(compactedEvents({ input_tokens }, [usage])), [])
      t.match(said, { usage: expected, suspect: '', isUsageWhole: true }, `${way}: ${input_tokens}`)
    }
})

t.test('of a stream that is cut behind the summary, the summary is left to be estimated', async (t) => {
  const { said } = runInPieces(
    new MessagesMeter(),
    sse(compactedEvents({ input_tokens: 0 }, []).slice(0, 4)),
    [],
  )
  t.match(said, { characters: SUMMARY.length, charactersSinceUsage: SUMMARY.length, isUsageWhole: false })
})

t.test('a count of a summary that cannot be makes the report suspect', async (t) => {
  const iterations = [{ type: 'compaction', input_tokens: -1, output_tokens: 883 }]
  const body = Buffer.from(
    JSON.stringify({ content: [], usage: { input_tokens: 1, output_tokens: 1, iterations } }),
  )
  t.match(readWholeMessage(body).metered, { suspect: 'input_tokens -1' })
})

const RESULT = 'web_search_tool_result'
/** One search, one page, one search that failed, and code: the upstream bills no call of that. */
const SERVER_TOOLS: ReadonlyArray<readonly [block: object, searches: number, pages: number]> = [
  [{ type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: {} }, 1, 0],
  [{ type: RESULT, tool_use_id: 'srvtoolu_1', content: [{ type: 'web_search_result' }] }, 1, 0],
  [{ type: 'server_tool_use', id: 'srvtoolu_2', name: 'web_fetch', input: {} }, 1, 1],
  [{ type: 'web_fetch_tool_result', content: { type: 'web_fetch_result', url: 'https://a.example' } }, 1, 1],
  [{ type: 'server_tool_use', id: 'srvtoolu_3', name: 'web_search', input: {} }, 2, 1],
  [{ type: RESULT, content: { type: 'web_search_tool_result_error', error_code: 'x' } }, 1, 1],
  [{ type: 'server_tool_use', id: 'srvtoolu_4', name: 'code_execution', input: {} }, 1, 1],
  [{ type: 'tool_use', id: 'toolu_1', name: 'web_search', input: {} }, 1, 1],
]
const toolsUsed = (searches: number, pages: number) => ({
  serverToolCalls: searches + pages,
  extra: { tools: { web_search: searches, ...(pages > 0 && { url_context: pages }) } },
})

for (const [way, open] of WAYS)
  t.test(`tools that have run count before their report, which replaces the count, ${way}`, async (t) => {
    const stream = open()
    const send = (event: object) => stream.push(Buffer.from(`data: ${JSON.stringify(event)}\n\n`))
    send({ type: 'message_start', message: { id: 'msg_1', usage: { input_tokens: 9, output_tokens: 1 } } })
    for (const [index, [content_block, searches, pages]] of SERVER_TOOLS.entries()) {
      const before = stream.usage
      send({ type: 'content_block_start', index, content_block })
      if ('input' in content_block) t.same(stream.usage, before, 'a tool runs when its input has ended')
      send({ type: 'content_block_stop', index })
      t.match(stream.usage, { prompt: 9, ...toolsUsed(searches, pages) }, JSON.stringify(content_block))
    }
    send({ type: 'content_block_delta', index: 9, delta: { type: 'text_delta', text: 'Rain.' } })
    t.match(stream, { isUsageWhole: false, suspect: '', usage: { output: 0, serverToolCalls: 2 } })
    send({ type: 'message_delta', delta: {}, usage: { output_tokens: 5 } })
    t.match(stream, { isUsageWhole: true, suspect: '', usage: { output: 5, serverToolCalls: 0 } })
  })

t.test('a whole message without usage has used the tools that it shows', async (t) => {
  const content = SERVER_TOOLS.map(([block]) => block)
  const body = Buffer.from(JSON.stringify({ type: 'message', content }))
  t.match(readWholeMessage(body).metered.usage, toolsUsed(1, 1))
  t.match(TO_MESSAGES.readWhole(chatCall(), body).metered.usage, toolsUsed(1, 1), 'translated')
  const usage = { input_tokens: 1, output_tokens: 1 }
  const reported = Buffer.from(JSON.stringify({ type: 'message', content, usage }))
  t.match(readWholeMessage(reported).metered.usage, { serverToolCalls: 0 })
  t.match(TO_MESSAGES.readWhole(chatCall(), reported).metered.usage, { serverToolCalls: 0 }, 'translated')
})
