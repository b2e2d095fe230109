/**
 * `after_client_leaves: read_on`: a call whose client leaves is read to its end, and costs what reading it would have.
 * Where its upstream does not say, hidden reasoning is estimated by time. Until then it keeps its slot and its hold.
 */
import { setTimeout } from 'node:timers/promises'
import t from 'tap'
import { CallEnds } from '../../../pipelines/calls/pipeline.ts'
import { LateUsage } from '../../../pipelines/chat/forward/after-answer.ts'
import { OutputRates, UNMEASURED_TOKENS_PER_SECOND } from '../../../src/core/routing/output-rates.ts'
import {
  clientCall,
  DONE,
  ESTIMATE,
  event,
  FINISH,
  type ForwardOptions,
  RunningCall,
  usageChunk,
  word,
} from './forward-support.ts'

const REASONING = {
  after_client_leaves: 'read_on',
  capabilities: { reasoning: true },
  max_output_tokens: 100_000,
}
const REPORTED = { status: 'interrupted', input_tokens: 900, output_tokens: 4000, usage_source: 'upstream' }
/** Tokens for each millisecond, of a model that was measured. */
const PER_MS = 2

const measured = (): OutputRates => {
  const rates = new OutputRates()
  rates.measure('model-a', PER_MS * 1000, 1000)
  return rates
}

const running = (options: ForwardOptions = {}) =>
  new RunningCall({ modelFields: REASONING, lateUsage: new LateUsage(), outputRates: measured(), ...options })

const thinking = event({
  type: 'message_start',
  message: { id: 'msg_1', model: 'm', usage: { input_tokens: 900, output_tokens: 1 } },
})
const WAYS: Readonly<Record<string, { options: ForwardOptions; begun: string; rest: readonly string[] }>> = {
  'chat-completions': {
    options: {},
    begun: event({ choices: [{ index: 0, delta: { role: 'assistant', content: '' } }] }),
    rest: [word('hello'), FINISH, usageChunk(900, 4000), DONE],
  },
  messages: {
    options: { client: clientCall('messages', 'hi', true), upstream: 'messages' },
    begun: thinking,
    rest: [
      event({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } }),
      event({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'hello' } }),
      event({ type: 'content_block_stop', index: 0 }),
      event({ type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 4000 } }),
      event({ type: 'message_stop' }),
    ],
  },
  responses: {
    options: { client: clientCall('responses', 'hi', true), upstream: 'responses' },
    begun: event({ type: 'response.created', response: { id: 'resp_1', usage: null } }),
    rest: [
      event({ type: 'response.output_text.delta', delta: 'hello' }),
      event({ type: 'response.completed', response: { usage: { input_tokens: 900, output_tokens: 4000 } } }),
    ],
  },
  'generate-content': {
    options: { client: clientCall('generate-content', 'hi', true), upstream: 'generate-content' },
    begun: event({ candidates: [{ content: { parts: [{ text: 'a' }] } }] }),
    rest: [
      event({
        candidates: [{ content: { parts: [{ text: 'hello' }] }, finishReason: 'STOP' }],
        usageMetadata: { promptTokenCount: 900, candidatesTokenCount: 4000, totalTokenCount: 4900 },
      }),
    ],
  },
}

for (const [name, { options, begun, rest }] of Object.entries(WAYS))
  t.test(`${name}, left at its beginning`, async (t) => {
    const call = running(options)
    call.attempt.head()
    call.attempt.data(begun)
    const { sent } = call
    call.abort()
    t.equal(call.settlements.length, 0, 'it is not settled')
    t.equal(call.attempt.isLeft, false, 'its upstream goes on')
    t.equal(call.view.inFlight, ESTIMATE, 'what it may cost stays reserved')
    for (const text of rest) call.attempt.data(text)
    call.attempt.end()
    t.match(call.settlement, REPORTED)
    t.equal(call.sent, sent, 'nothing more goes out')
    t.equal(call.view.inFlight, 0n)

    const early = running(options)
    early.abort()
    early.attempt.head()
    for (const text of [begun, ...rest]) early.attempt.data(text)
    early.attempt.end()
    t.match(early.settlement, REPORTED, 'and so is one that was left before any answer')

    const aborted = running({ ...options, modelFields: { ...REASONING, after_client_leaves: 'abort' } })
    aborted.attempt.head()
    aborted.attempt.data(begun)
    aborted.abort()
    t.equal(aborted.attempt.isLeft, true, 'where the setting is abort it ends at once')
    t.ok(aborted.settlement.output_tokens <= 1)
  })

t.test('a whole call is read on as well', async (t) => {
  const call = running({ request: { stream: false } })
  call.abort()
  t.equal(call.attempt.isLeft, false)
  call.attempt.answer({
    choices: [{ index: 0, message: { content: 'hi' }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 900, completion_tokens: 4000 },
  })
  t.match(call.settlement, REPORTED)
})

t.test('without a report, what is hidden is estimated by time and the measured rate', async (t) => {
  for (const stream of [true, false]) {
    const lateUsage = new LateUsage({ readOnMs: 60 })
    const begun = performance.now()
    const call = running({ lateUsage, request: { stream } })
    call.attempt.head(200, stream ? {} : { 'content-type': 'application/json' })
    if (stream) call.attempt.data(word('hello'))
    call.abort()
    while (call.settlements.length === 0) await setTimeout(5)
    const most = PER_MS * (performance.now() - begun)
    const { output_tokens, reasoning_tokens, ...row } = call.settlement
    t.match(row, { status: 'interrupted', usage_source: 'estimate' })
    t.ok(output_tokens >= PER_MS * 60 && output_tokens <= most + 1, `${output_tokens} of ${most}`)
    t.equal(reasoning_tokens, output_tokens - (stream ? 2 : 0), 'what was said is no reasoning')
    t.equal(call.attempt.isLeft, true)
  }
})

t.test("the call's own limit bounds it", async (t) => {
  const lateUsage = new LateUsage({ readOnMs: 60 })
  const hidden = running({ lateUsage, request: { max_tokens: 7 } })
  hidden.attempt.head()
  hidden.abort()
  while (hidden.settlements.length === 0) await setTimeout(5)
  t.equal(hidden.settlement.output_tokens, 7)

  const said = running({ request: { max_tokens: 7 } })
  said.attempt.head()
  said.abort()
  for (let i = 0; i < 7; i++) said.attempt.data(word('four'))
  t.equal(said.attempt.isLeft, true, 'no more is read than it may say')
  t.match(said.settlement, { output_tokens: 7 })
})

t.test(
  'a model that hides nothing costs what it said, and one that was not measured a usual rate',
  async (t) => {
    const plain = running({
      lateUsage: new LateUsage({ readOnMs: 1 }),
      modelFields: { after_client_leaves: 'read_on' },
    })
    plain.attempt.head()
    plain.attempt.data(word('hello'))
    plain.abort()
    while (plain.settlements.length === 0) await setTimeout(1)
    t.match(plain.settlement, { output_tokens: 2, reasoning_tokens: 0 })
    t.equal(new OutputRates().tokensIn('model-a', 2000), 2 * UNMEASURED_TOKENS_PER_SECOND)
  },
)

t.test('an abandoned call that its upstream refuses costs nothing, and is not tried elsewhere', async (t) => {
  const call = running({ channels: ['first', 'second'] })
  call.abort()
  call.attempt.refuse(500)
  t.equal(call.attempts.length, 1)
  t.match(call.settlement, { status: 'error', cost: '0' })
})

t.test('a process that ends settles it by what is known', async (t) => {
  const lateUsage = new LateUsage()
  const call = running({ lateUsage })
  call.attempt.head()
  call.attempt.data(word('hello'))
  call.abort()
  lateUsage.close()
  t.match(call.settlement, { status: 'interrupted', usage_source: 'estimate' })
})

t.test('what a call holds is given back once it is settled, not when its client leaves', async (t) => {
  const ends = new CallEnds()
  let runs = 0
  ends.add(() => runs++)
  ends.hold()
  ends.unsubscribe()
  t.equal(runs, 0)
  ends.add(() => runs++)
  ends.release()
  t.equal(runs, 2)
  ends.add(() => runs++)
  t.equal(runs, 3, 'at once where it is over')
  ends.unsubscribe()
  t.equal(runs, 3)
})
