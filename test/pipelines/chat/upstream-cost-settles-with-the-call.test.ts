/**
 * What a call costs the operator: computed at its settlement from the usage that is charged, by the cost of the channel.
 * Prices in these tests are credits a token.
 */
import t from 'tap'
import { parseCredits } from '../../../schemas/money.ts'
import { DONE, FINISH, MODEL, RunningCall, STAND_IN, usageChunk, word } from './forward-support.ts'

const costing = (input: string, output: string, model = MODEL) => ({
  cost: {
    [model]: { unit: '1M_tokens', input, output, service_tiers: { flex: '0.5' }, cached_input: '100000' },
  },
})
const ONLY = { only: costing('400000', '900000') }
const units = (credits: string): string => String(parseCredits(credits))

function answer({ attempt }: RunningCall, text: string): void {
  attempt.stream(text)
}

t.test('a streamed and a whole answer', async (t) => {
  const streamed = new RunningCall({ channelFields: ONLY })
  answer(streamed, word('fine') + FINISH + usageChunk(100, 10) + DONE)
  // 100 x 1 + 10 x 2, and 100 x 0.4 + 10 x 0.9
  t.match(streamed.settlement, { cost: units('120'), upstream_cost: units('49') })
  const whole = new RunningCall({ channelFields: ONLY, request: { stream: false } })
  whole.attempt.answer({
    choices: [{ index: 0, message: { content: 'fine' }, finish_reason: 'stop' }],
    service_tier: 'flex',
    usage: { prompt_tokens: 100, completion_tokens: 10, prompt_tokens_details: { cached_tokens: 50 } },
  })
  // (50 x 0.4 + 50 x 0.1 + 10 x 0.9) x 0.5: the model has no factor for the tier, the channel has
  t.match(whole.settlement, { cost: units('120'), upstream_cost: units('17') })
})

t.test('no cost: the channel has none, has one of another model, or was not called', async (t) => {
  for (const only of [{}, costing('1', '1', STAND_IN)]) {
    const call = new RunningCall({ channelFields: { only } })
    answer(call, word('fine') + FINISH + usageChunk(1, 1) + DONE)
    t.equal(call.settlement.upstream_cost, null)
  }
  const unsent = new RunningCall({
    channelFields: ONLY,
    admit: (_, written) => {
      written(new Error('The disk is full.'))
      return { requestId: 'req_test' }
    },
  })
  t.equal(unsent.settlement.upstream_cost, null)
})

t.test('a client that leaves: the same usage as is charged', async (t) => {
  const call = new RunningCall({ channelFields: ONLY })
  call.attempt.head()
  call.attempt.data(word('four') + word('five'))
  call.abort()
  const { input_tokens, output_tokens, upstream_cost } = call.settlement
  t.ok(input_tokens > 0 && output_tokens > 0)
  // Both prices have one decimal.
  t.equal(upstream_cost, String(BigInt(input_tokens * 4 + output_tokens * 9) * 10_000_000n))
})

t.test('another model costs by its own cost, and the attempt that failed nothing', async (t) => {
  const call = new RunningCall({
    channels: ['first'],
    standIns: ['second'],
    channelFields: { ...ONLY, second: costing('1500000', '1000000', STAND_IN) },
  })
  call.attempt.fail('connect')
  answer(call, word('fine') + FINISH + usageChunk(8, 3) + DONE)
  // 8 x 1.5 + 3 x 1
  t.match(call.settlement, { model: STAND_IN, upstream_cost: units('15') })
})

t.test('a call that is not charged costs what was reported of it', async (t) => {
  const refused = new RunningCall({ channelFields: ONLY })
  refused.attempt.refuse(400)
  t.match(refused.settlement, { cost: '0', upstream_cost: '0' })
  const silent = new RunningCall({ channelFields: ONLY })
  silent.attempt.head()
  silent.attempt.data(usageChunk(100, 0))
  silent.attempt.fail('reset', { headReceived: true })
  // 100 x 0.4
  t.match(silent.settlement, { cost: '0', upstream_cost: units('40') })
})

t.test('usage that is not believed costs what it is charged by, and its numbers are kept', async (t) => {
  const call = new RunningCall({ channelFields: ONLY })
  answer(
    call,
    word('fine') +
      FINISH +
      'data: {"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":1,"note":"text","prompt_tokens_details":' +
      '{"cached_tokens":6}}}\n\n' +
      DONE,
  )
  const { input_tokens, cached_tokens, output_tokens, upstream_cost, detail } = call.settlement
  const fresh = input_tokens - cached_tokens
  t.equal(upstream_cost, String(BigInt(fresh * 4 + cached_tokens + output_tokens * 9) * 10_000_000n))
  const { usage_suspect, usage_reported } = JSON.parse(detail!)
  t.equal(usage_suspect, 'cached 6 > prompt 5')
  t.same(JSON.parse(usage_reported), {
    prompt_tokens: 5,
    completion_tokens: 1,
    prompt_tokens_details: { cached_tokens: 6 },
  })
})
