/**
 * What a client owes that leaves a stream just before its usage: the upstream is read on for it behind the finish
 * reason, in every protocol, and nowhere else; what stays unknown is estimated by script.
 */
import t from 'tap'
import { LATE_USAGE_MAX_BYTES, LateUsage } from '../../../pipelines/chat/forward/after-answer.ts'
import { clientCall, event, FINISH, RunningCall, usageChunk, word } from './forward-support.ts'

const REPORTED = { status: 'interrupted', input_tokens: 900, output_tokens: 4000, usage_source: 'upstream' }
const ofMessages = {
  said:
    event({ type: 'message_start', message: { id: 'msg_1', model: 'm' } }) +
    event({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } }) +
    event({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'hello' } }),
  finish: event({ type: 'content_block_stop', index: 0 }),
  goesOn: event({ type: 'content_block_start', index: 1, content_block: { type: 'thinking', thinking: '' } }),
  usage: event({
    type: 'message_delta',
    delta: { stop_reason: 'end_turn' },
    usage: { input_tokens: 900, output_tokens: 4000 },
  }),
}
const candidate = (more: object) => ({ candidates: [{ content: { parts: [{ text: 'hello' }] }, ...more }] })
const ofGenerateContent = {
  said: event(candidate({})),
  finish: event({ candidates: [{ finishReason: 'STOP' }] }),
  goesOn: null,
  usage: event({
    candidates: [{ finishReason: 'STOP' }],
    usageMetadata: { promptTokenCount: 900, candidatesTokenCount: 4000, totalTokenCount: 4900 },
  }),
}
const STREAMS = [
  {
    client: 'chat-completions',
    upstream: 'chat-completions',
    said: word('hello'),
    finish: FINISH,
    goesOn: null,
    usage: usageChunk(900, 4000),
  },
  { client: 'messages', upstream: 'messages', ...ofMessages },
  { client: 'chat-completions', upstream: 'messages', ...ofMessages },
  { client: 'generate-content', upstream: 'generate-content', ...ofGenerateContent },
  { client: 'chat-completions', upstream: 'generate-content', ...ofGenerateContent },
  {
    client: 'responses',
    upstream: 'responses',
    said: event({ type: 'response.output_text.delta', delta: 'hello' }),
    finish: event({ type: 'response.output_item.done', item: { type: 'message' } }),
    goesOn: event({ type: 'response.output_item.added', item: { type: 'reasoning' } }),
    usage: event({
      type: 'response.completed',
      response: { usage: { input_tokens: 900, output_tokens: 4000 } },
    }),
  },
] as const

for (const { client, upstream, said, finish, goesOn, usage } of STREAMS)
  t.test(`${client} over ${upstream}`, async (t) => {
    // No chunk of generate-content says that it is the last: one with a finish reason is, where nothing follows it.
    const isUnmarked = client === 'generate-content'
    const leftBehindFinish = { status: isUnmarked ? 'success' : 'interrupted', usage_source: 'estimate' }
    const hadLast = isUnmarked || client === 'responses'
    const lateUsage = new LateUsage()
    const left = (...events: string[]) => {
      const call = new RunningCall({ client: clientCall(client, 'hi', true), upstream, lateUsage })
      call.attempt.head()
      for (const text of events) call.attempt.data(text)
      call.abort()
      return call
    }
    const early = left(said)
    t.equal(early.attempt.isLeft, true, 'before the finish reason the upstream is ended at once')
    t.match(early.settlement, { status: 'interrupted', usage_source: 'estimate' })

    const late = left(said, finish)
    t.equal(late.settlements.length, 0)
    const { sent } = late
    for (const byte of Buffer.from(usage)) late.attempt.data(Buffer.from([byte]))
    t.match(late.settlement, REPORTED)
    t.equal(late.attempt.isLeft, true, 'nothing more is read')
    t.equal(late.sent, sent, 'nothing is sent to a client that has left')
    t.equal(late.inFlight, 0)

    const known = left(said, finish, usage)
    if (isUnmarked) known.attempt.end()
    t.match(known.settlement, { ...REPORTED, status: hadLast ? 'success' : 'interrupted' })

    const silent = left(said, finish)
    for (let bytes = 0; bytes <= LATE_USAGE_MAX_BYTES; bytes += 8192)
      silent.attempt.data(`: ${'x'.repeat(8188)}\n\n`)
    t.match(silent.settlement, { status: 'interrupted', usage_source: 'estimate' })

    const broken = left(said, finish)
    broken.attempt.fail('reset')
    t.match(broken.settlement, leftBehindFinish)

    if (goesOn !== null) {
      const further = left(said, finish)
      further.attempt.data(goesOn)
      t.equal(further.attempt.isLeft, true, 'a model that goes on has not finished')
      t.equal(further.settlements.length, 1)
    }

    const waiting = left(said, finish)
    lateUsage.close()
    t.match(waiting.settlement, leftBehindFinish)
    t.equal(left(said, finish).settlements.length, 1, 'a process that ends waits for nothing')
  })

t.test('the time is bounded', async (t) => {
  const call = new RunningCall({ lateUsage: new LateUsage({ usageMs: 1 }) })
  call.attempt.head()
  call.attempt.data(word('hello') + FINISH)
  call.abort()
  while (call.settlements.length === 0) await new Promise((resolve) => setTimeout(resolve, 1))
  t.match(call.settlement, { status: 'interrupted', usage_source: 'estimate' })
  t.equal(call.attempt.isLeft, true)
})

t.test('an estimated prompt counts by script', async (t) => {
  const promptTokens = (content: string) => {
    const call = new RunningCall({ request: { messages: [{ role: 'user', content }] } })
    call.attempt.head()
    call.attempt.data(word('x'))
    call.abort()
    return call.settlement.input_tokens
  }
  const empty = promptTokens('')
  t.equal(promptTokens('x'.repeat(4000)) - empty, 1000, 'four letters of ASCII are a token')
  t.equal(promptTokens('中'.repeat(4000)) - empty, 4000, 'a Chinese character is one')
  t.equal(promptTokens('я'.repeat(4000)) - empty, 2500)
})

t.test('a whole answer whose time runs out is estimated from what came', async (t) => {
  for (const [body, output_tokens] of [
    ['', 0],
    [`{"choices":[{"message":{"content":"${'x'.repeat(40)}"}}`, 10],
  ] as const) {
    const call = new RunningCall({ request: { stream: false } })
    call.attempt.head(200, { 'content-type': 'application/json' })
    if (body !== '') call.attempt.data(body)
    call.attempt.fail('deadline', { headReceived: true })
    t.match(call.settlement, { status: 'interrupted', usage_source: 'estimate', output_tokens })
    t.ok(call.settlement.input_tokens > 0)
  }
  const unanswered = new RunningCall()
  unanswered.attempt.fail('deadline')
  t.match(unanswered.settlement, { cost: '0', usage_source: 'none' })
})
