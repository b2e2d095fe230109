/** An upstream's counts are charged up to what one call can use, and no further. */
import fc from 'fast-check'
import t from 'tap'
import { modelEntry, SERVER_TOOLS } from '../../../schemas/config/catalog.ts'
import { tokenCharge, tokenPrice } from '../../../src/core/pricing/pricing.ts'
import { extraOf, MAX_REPORTED_TOKENS, NO_USAGE, type TokenUsage } from '../../../src/core/pricing/usage.ts'
import { boundedUsage, MAX_CONTEXT_TOKENS, trustedUsage } from '../../../src/core/pricing/usage-bounds.ts'

const pricing = { unit: '1M_tokens', input: '1', output: '2' }
const plain = modelEntry.parse({ id: 'plain', pricing })
const small = modelEntry.parse({ id: 'small', context_window: 8000, max_output_tokens: 1000, pricing })
const PLAIN = { builtInTools: [], toolCallLimit: null }
const ONE = { ...PLAIN, outputLimit: null, choices: 1 }
const SEARCH = { ...ONE, builtInTools: ['web_search'] } as const
const used = (usage: Partial<TokenUsage>): TokenUsage => ({ ...NO_USAGE, ...usage })

t.test('what a call can use stands as it was reported', async (t) => {
  const usage = used({ prompt: 8000, cached: 3000, cacheWrite: 5000, output: 1000, reasoning: 1000 })
  const bounded = boundedUsage(usage, small, ONE)
  t.equal(bounded.usage, usage)
  t.same(bounded.beyond, [])
})

t.test('what no call can use is cut to its bound, and named', async (t) => {
  const cases = [
    [{ prompt: 8001 }, ONE, { prompt: 8000 }, 'prompt 8001 > 8000'],
    [{ output: 1001 }, ONE, { output: 1000 }, 'output 1001 > 1000'],
    [{ output: 3001 }, { ...PLAIN, outputLimit: 50, choices: 3 }, { output: 3000 }, 'output 3001 > 3000'],
    [{ output: 5001 }, { ...PLAIN, outputLimit: 5000, choices: 1 }, { output: 5000 }, 'output 5001 > 5000'],
    [{ prompt: 8, cached: 9 }, ONE, { prompt: 8, cached: 8 }, 'cached 9 > 8'],
    [{ output: 8, reasoning: 9 }, ONE, { output: 8, reasoning: 8 }, 'reasoning 9 > 8'],
    [
      { prompt: 16_000, serverToolCalls: 1e9 },
      SEARCH,
      { prompt: 16_000, serverToolCalls: 100 },
      'serverToolCalls 1000000000 > 100',
    ],
    [
      { serverToolCalls: 5 },
      { ...SEARCH, toolCallLimit: 2 },
      { serverToolCalls: 2 },
      'serverToolCalls 5 > 2',
    ],
    // A model that searches without being asked to.
    [{ serverToolCalls: 101 }, ONE, { serverToolCalls: 100 }, 'serverToolCalls 101 > 100'],
  ] as const
  for (const [reported, call, charged, beyond] of cases)
    t.same(boundedUsage(used(reported), small, call), { usage: used(charged), beyond: [beyond] })
  t.match(boundedUsage(used({ prompt: 1e9, output: 1e9 }), plain, ONE).usage, {
    prompt: MAX_CONTEXT_TOKENS,
    output: MAX_CONTEXT_TOKENS,
  })
})

t.test('calls of tools beyond the estimate are charged where the client sets no limit', async (t) => {
  const tokens = { prompt: 20_000, output: 900 }
  const two = { ...ONE, builtInTools: ['web_search', 'mcp'] } as const
  for (const [call, count] of [
    [ONE, 11],
    [SEARCH, 100],
    [two, 200],
  ] as const) {
    const usage = used({ ...tokens, serverToolCalls: count })
    t.same(boundedUsage(usage, small, call), { usage, beyond: [] })
  }
  const { beyond } = boundedUsage(used({ serverToolCalls: 3 }), small, { ...SEARCH, toolCallLimit: 2 })
  t.same(beyond, ['serverToolCalls 3 > 2'])
})

t.test('a prompt is read once more behind each tool that the upstream ran', async (t) => {
  const usage = used({ prompt: 24_000, serverToolCalls: 2 })
  t.same(boundedUsage(usage, small, SEARCH), { usage, beyond: [] })
  t.match(boundedUsage(used({ prompt: 24_001, serverToolCalls: 2 }), small, SEARCH).usage, { prompt: 24_000 })
})

t.test('a prompt may be read behind each call of tools that no report counts', async (t) => {
  for (const tool of ['mcp', 'code_interpreter'] as const) {
    const call = { ...ONE, builtInTools: ['web_search', tool] } as const
    const usage = used({ prompt: 201 * 8000 })
    t.same(boundedUsage(usage, small, call), { usage, beyond: [] }, tool)
    t.same(boundedUsage(used({ prompt: 201 * 8000 + 1 }), small, call).beyond, ['prompt 1608001 > 1608000'])
    const limited = boundedUsage(used({ prompt: 24_001 }), small, { ...call, toolCallLimit: 2 })
    t.same(limited.beyond, ['prompt 24001 > 24000'])
  }
})

t.test('each summary reads the prompt and writes once more, as often as the prompt is read', async (t) => {
  const compacted = (count: number, counts: Partial<TokenUsage>) =>
    used({ ...counts, ...extraOf({ compaction: { count, largestPrompt: 8000 } }) })
  const usage = compacted(1, { prompt: 16_000, output: 2000 })
  t.same(boundedUsage(usage, small, ONE), { usage, beyond: [] })
  t.match(boundedUsage(compacted(9, { prompt: 16_001, output: 2001 }), small, ONE), {
    usage: { prompt: 16_000, output: 2000 },
    beyond: ['prompt 16001 > 16000', 'output 2001 > 2000'],
  })
  const searched = compacted(2, { prompt: 32_000, serverToolCalls: 1 })
  t.same(boundedUsage(searched, small, SEARCH).beyond, [])
})

t.test('bounded usage is within its bounds, and its tools within what is believed', async (t) => {
  const count = fc.oneof(fc.nat(20_000), fc.nat(3 * MAX_REPORTED_TOKENS))
  const usage = fc.record({
    prompt: count,
    cached: count,
    cacheWrite: count,
    output: count,
    reasoning: count,
    serverToolCalls: count,
  })
  const asked = fc.record({
    outputLimit: fc.constant(null),
    choices: fc.integer({ min: 1, max: 8 }),
    builtInTools: fc.subarray([...SERVER_TOOLS]),
    toolCallLimit: fc.option(fc.nat(30)),
  })
  fc.assert(
    fc.property(usage, asked, (reported, call) => {
      const once = boundedUsage(reported, small, call)
      const twice = boundedUsage(once.usage, small, call)
      const { prompt, cached, cacheWrite, output, reasoning, serverToolCalls } = once.usage
      const believed = 100 * Math.max(1, call.builtInTools.length)
      const mostCalls = call.builtInTools.length === 0 ? 100 : (call.toolCallLimit ?? believed)
      const isCounted = call.builtInTools.every((tool) => tool === 'web_search' || tool === 'url_context')
      return (
        twice.beyond.length === 0 &&
        serverToolCalls <= mostCalls &&
        prompt <= 8000 * (1 + (isCounted ? serverToolCalls : mostCalls)) &&
        output <= 1000 * call.choices &&
        cached + cacheWrite <= prompt &&
        reasoning <= output
      )
    }),
  )
  t.pass('every run held')
})

t.test('a report that contradicts itself bills no more than the formula for the delivery', async (t) => {
  const price = tokenPrice({
    ...small.pricing!,
    ...{ cache_write: 9_000_000_000_000n, output_audio: 90_000_000_000_000n },
    server_tool_call: 1_000_000_000_000n,
  })!
  const count = fc.nat(30_000)
  const extra = fc.record({
    cacheWrite1h: count,
    inputAudio: count,
    inputImage: count,
    outputAudio: count,
    outputImage: count,
    tools: fc.constant({}),
  })
  const reported = fc.record({
    ...{ prompt: count, cached: count, cacheWrite: count, output: count, reasoning: count },
    ...{ serverToolCalls: fc.nat(20), extra },
  })
  const delivered = fc.record({ prompt: fc.nat(9000), output: fc.nat(2000), serverToolCalls: fc.nat(10) })
  fc.assert(
    fc.property(reported, delivered, (usage, most) => {
      const billed = tokenCharge(price, trustedUsage(boundedUsage(usage, small, ONE).usage, most), 0)
      return billed >= 0n && billed <= tokenCharge(price, { ...NO_USAGE, ...most }, 0)
    }),
  )
  t.pass('every run held')
})
