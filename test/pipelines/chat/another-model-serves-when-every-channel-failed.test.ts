/** Fallbacks of a model: when they serve, and what is billed and named. */
import t from 'tap'
import { printCredits } from '../../../schemas/money.ts'
import { RetryBudget } from '../../../src/core/routing/retry-budget.ts'
import { type ForwardOptions, MODEL, RunningCall, STAND_IN, word } from './forward-support.ts'

const CHAIN: ForwardOptions = { channels: ['first', 'second'], standIns: ['third'] }

const headOf = (call: RunningCall) => {
  const head = call.replies.find((reply) => reply.type !== 'data')
  return head === undefined ? {} : Object.fromEntries(head.headers)
}

t.test('every channel failed: the next model answers, is billed by its price, and is named', async (t) => {
  const call = new RunningCall(CHAIN)
  call.attempt.refuse(500)
  call.attempt.fail('connect')
  t.equal(call.attempt.request.upstreamModel, 'upstream-name-of-third')
  call.attempt.succeed(10, 5)
  t.match(call.settlement, {
    status: 'success',
    model: STAND_IN,
    channel_id: 'third',
    attempts_count: 3,
    // 10 x 2 + 5 x 4 credits: the price of the model that served.
    cost: (40n * 100_000_000n).toString(),
  })
  t.equal(printCredits(BigInt(call.settlement.cost)), '40')
  t.match(call.settlement.detail, `"model_as_asked":"${MODEL}"`)
  t.equal(headOf(call)['x-served-model'], STAND_IN)
})

t.test('a model that serves itself is not named', async (t) => {
  const call = new RunningCall(CHAIN)
  call.attempt.succeed(10, 5)
  t.notOk('x-served-model' in headOf(call))
  t.match(call.settlement, { model: MODEL, cost: (20n * 100_000_000n).toString() })
})

t.test('a whole answer names the model too', async (t) => {
  const call = new RunningCall({ ...CHAIN, channels: ['first'], request: { stream: false } })
  call.attempt.refuse(503)
  call.attempt.answer({
    choices: [{ message: { role: 'assistant', content: 'fine' } }],
    usage: { prompt_tokens: 1, completion_tokens: 1 },
  })
  t.equal(headOf(call)['x-served-model'], STAND_IN)
  t.match(call.settlement, { status: 'success', model: STAND_IN })
})

t.test('no other model serves after the first byte, a mistake of the customer, or a timeout', async (t) => {
  const broken = new RunningCall({ ...CHAIN, channels: ['first'] })
  broken.attempt.head()
  broken.attempt.data(word('half'))
  broken.attempt.fail('reset', { headReceived: true })
  t.equal(broken.attempts.length, 1)
  t.match(broken.settlement, { status: 'error', model: MODEL })

  const mistaken = new RunningCall({ ...CHAIN, channels: ['first'] })
  mistaken.attempt.refuse(400)
  t.equal(mistaken.attempts.length, 1)

  const late = new RunningCall({ ...CHAIN, channels: ['first'] })
  late.attempt.fail('deadline')
  t.equal(late.attempts.length, 1)
  t.match(late.settlement, { status: 'interrupted', model: MODEL })
})

t.test("a channel that refuses the operator's key has failed", async (t) => {
  const call = new RunningCall({ ...CHAIN, channels: ['first'] })
  call.attempt.refuse(401)
  call.attempt.succeed(10, 5)
  t.match(call.settlement, { status: 'success', model: STAND_IN })
})

t.test('each model has its own retries; the budget that all calls share holds', async (t) => {
  const call = new RunningCall({ ...CHAIN, retries: 1, standIns: ['third', 'fourth'] })
  for (let i = 0; i < 3; i++) call.attempt.refuse(500)
  call.attempt.succeed(10, 5)
  t.same(
    call.attempts.map(({ request }) => request.channel.id),
    ['first', 'second', 'third', 'fourth'],
  )

  const retryBudget = new RetryBudget()
  while (retryBudget.take());
  const poor = new RunningCall({ ...CHAIN, retryBudget })
  poor.attempt.refuse(500)
  t.equal(poor.attempts.length, 1)
  t.match(poor.settlement, { status: 'error', model: MODEL, cost: '0' })
})

t.test('the same channel may serve the other model', async (t) => {
  const call = new RunningCall({
    channels: ['only'],
    standIns: ['unused'],
    channelFields: { only: { models: { [MODEL]: 'one', [STAND_IN]: 'two' } } },
  })
  call.attempt.refuse(500)
  t.match(call.attempt.request, { upstreamModel: 'two', channel: { id: 'only' } })
  call.attempt.succeed(10, 5)
  t.match(call.settlement, { model: STAND_IN, channel_id: 'only' })
})

t.test('all models failed: the last failure is the answer, and nothing is charged', async (t) => {
  const call = new RunningCall({ ...CHAIN, channels: ['first'] })
  call.attempt.refuse(500)
  call.attempt.refuse(503)
  t.match(call.error, { status: 503 })
  t.match(call.settlement, { status: 'error', cost: '0', attempts_count: 2 })
  t.equal(call.settlements.length, 1)
})

t.test('a model that cannot have the request is passed over', async (t) => {
  const sound = { type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } }
  const request = { messages: [{ role: 'user', content: [sound] }] }
  const translated = { protocol: 'messages' }
  const failed = new RunningCall({ ...CHAIN, request, channelFields: { third: translated } })
  failed.attempt.refuse(500)
  failed.attempt.refuse(503)
  t.equal(failed.attempts.length, 2)
  t.match(failed.error, { status: 503, message: 'no' })
  t.match(failed.settlement, {
    status: 'error',
    model: MODEL,
    error_code: 'upstream_error',
    channel_id: 'second',
    attempts: { length: 2 },
  })
  t.equal(failed.inFlight, 0)
  const served = new RunningCall({ ...CHAIN, request, channelFields: { second: translated } })
  served.attempt.refuse(500)
  t.equal(served.attempt.request.upstreamModel, 'upstream-name-of-third')
  served.attempt.succeed(10, 5)
  t.match(served.settlement, { status: 'success', model: STAND_IN, attempts_count: 2 })
  const first = new RunningCall({ ...CHAIN, request, channelFields: { first: translated } })
  t.match(first.error, { code: 'invalid_request' }, 'as before where it is the first that is asked')
  t.match(first.settlement, { status: 'rejected', attempts_count: 0 })
})
