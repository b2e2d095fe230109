/** The playground's own sum must be the gateway's: by estimated tokens while the answer grows, by reported ones after. */
import t from 'tap'
import { NO_ANSWER, withChunk } from '../../console/src/pages/playground/answer.ts'
import { costAfter, costOf, priceOf, promptOf } from '../../console/src/pages/playground/cost.ts'
import { printCredits } from '../../schemas/money.ts'

const PRICING = {
  unit: '1M_tokens',
  input: '0.5',
  output: '2',
  cached_input: '0.05',
  cache_write: '0.625',
  cache_write_1h: '1',
  reasoning: '2',
  input_audio: '5',
  output_audio: '2',
  input_image: '0.5',
  output_image: '2',
  per_unit: null,
  variants: null,
  pixel_tiers: [],
  tiers: [
    {
      from_prompt_tokens: 1000,
      input: '1',
      cached_input: '0.1',
      cache_write: '1.25',
      cache_write_1h: null,
      reasoning: null,
      input_audio: null,
      output_audio: null,
      input_image: null,
      output_image: null,
      output: '4',
    },
  ],
  server_tool_call: null,
  server_tools: null,
  service_tiers: { flex: '0.5' },
  minimum: null,
  changes: [],
  discount: '0.5',
  discount_until: '2026-01-01T00:00:00.000Z',
} as const
const BEFORE = Date.parse('2025-12-31T23:59:59Z')
const AFTER = Date.parse('2026-01-01T00:00:00Z')

const price = priceOf({ ...PRICING, pixel_tiers: [], tiers: [...PRICING.tiers], changes: [] })!
const text = (content: string) => ({ choices: [{ delta: { content } }] })

t.test('an unfinished answer is priced by its length', async (t) => {
  const prompt = promptOf({ messages: [{ role: 'user', content: 'Hello!' }] })
  t.equal(prompt.bytes, 36, 'the bytes that the gateway counts too')
  const empty = costOf(price, prompt, NO_ANSWER, AFTER)
  t.match(empty, { promptTokens: 9, outputTokens: 0, isEstimate: true })
  t.equal(printCredits(empty.credits), '0.0000045')
  const grown = ['Good ', 'morn', 'ing'].map(text).reduce(withChunk, NO_ANSWER)
  t.equal(grown.text, 'Good morning')
  t.match(costOf(price, prompt, grown, AFTER), { outputTokens: 3, isEstimate: true })
  t.equal(costOf(price, prompt, withChunk(NO_ANSWER, text('你好')), AFTER).outputTokens, 2, 'by script')
})

t.test('pictures have no bytes of text', async (t) => {
  const picture = { type: 'image_url', image_url: { url: `data:image/png;base64,${'A'.repeat(1000)}` } }
  t.ok(promptOf({ messages: [{ role: 'user', content: [picture] }] }).bytes < 100)
})

t.test('reported usage replaces the estimate: cached tokens, tiers and discounts hold', async (t) => {
  const reported = (prompt: number, cached: number, output: number) =>
    withChunk(NO_ANSWER, {
      choices: [],
      usage: {
        prompt_tokens: prompt,
        completion_tokens: output,
        prompt_tokens_details: { cached_tokens: cached },
      },
    })
  const cost = (answer: typeof NO_ANSWER, now: number) =>
    printCredits(costOf(price, { bytes: 4, laterBytes: 0 }, answer, now).credits)
  t.equal(cost(reported(100, 40, 10), AFTER), '0.000052')
  t.equal(cost(reported(100, 40, 10), BEFORE), '0.000026')
  t.equal(cost(reported(1000, 0, 10), AFTER), '0.00104')
})

t.test('tool calls grow in pieces, each at its index', async (t) => {
  const piece = (index: number, given: string, first?: { id: string; name: string }) => ({
    choices: [
      {
        delta: {
          tool_calls: [{ index, ...(first && { id: first.id }), function: { ...first, arguments: given } }],
        },
      },
    ],
  })
  const answer = [
    piece(0, '', { id: 'call_a', name: 'weather' }),
    piece(0, '{"city":'),
    piece(1, '{}', { id: 'call_b', name: 'time' }),
    piece(0, '"Bern"}'),
    { choices: [{ delta: {}, finish_reason: 'tool_calls' }] },
  ].reduce(withChunk, NO_ANSWER)
  t.same(answer.toolCalls, [
    { id: 'call_a', name: 'weather', arguments: '{"city":"Bern"}' },
    { id: 'call_b', name: 'time', arguments: '{}' },
  ])
  t.equal(answer.finishReason, 'tool_calls')
  t.ok(answer.characters > 0, 'their text is output')
})

t.test('an error in the stream keeps what came before it', async (t) => {
  const answer = [text('Half'), { error: { message: 'The upstream went away.' } }].reduce(
    withChunk,
    NO_ANSWER,
  )
  t.match(answer, { text: 'Half', error: 'The upstream went away.' })
})

t.test('kinds of tokens and service tiers cost what they do in the gateway', async (t) => {
  const answer = withChunk(NO_ANSWER, {
    choices: [],
    service_tier: 'flex',
    usage: { prompt_tokens: 100, completion_tokens: 10, prompt_tokens_details: { audio_tokens: 40 } },
  })
  // (60 x 0.5 + 40 x 5 + 10 x 2) / 1,000,000 x 0.5
  const { credits } = costOf(price, { bytes: 4, laterBytes: 0 }, answer, AFTER)
  t.equal(printCredits(credits), '0.000125')
})

t.test('a call that failed before its answer has no cost', async (t) => {
  const prompt = promptOf({ messages: [{ role: 'user', content: 'Hello!' }] })
  const failure = new Error('The upstream failed.')
  t.equal(costAfter(failure, price, prompt, NO_ANSWER, AFTER), null)
  const begun = withChunk(NO_ANSWER, text('Half of it'))
  t.match(costAfter(failure, price, prompt, begun, AFTER), { outputTokens: 3 }, 'what came is charged')
  t.match(costAfter(null, price, prompt, NO_ANSWER, AFTER), { promptTokens: 9 }, 'while it is awaited')
})
