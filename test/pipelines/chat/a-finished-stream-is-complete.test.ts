/**
 * Once the last event of its protocol has been sent, a stream is a success, charged and kept for its Idempotency-Key,
 * whatever client, upstream and process do from then on.
 */
import { setImmediate, setTimeout } from 'node:timers/promises'
import t from 'tap'
import type { StoredReply } from '../../../pipelines/calls/claim.ts'
import { idempotent } from '../../../pipelines/calls/idempotency.ts'
import { calls } from '../../../pipelines/calls/pipeline.ts'
import { LateUsage } from '../../../pipelines/chat/forward/after-answer.ts'
import { forward } from '../../../pipelines/chat/forward/forward.ts'
import type { AdmittedCall } from '../../../pipelines/chat/precharge.ts'
import { AnswerMemory } from '../../../src/core/limits/answer-memory.ts'
import { workHere } from '../../support/work-here.ts'
import {
  clientCall,
  DONE,
  event,
  FINISH,
  type ForwardOptions,
  RunningCall,
  usageChunk,
  word,
} from './forward-support.ts'

const messages = [
  event({ type: 'message_start', message: { id: 'msg_1', model: 'm', usage: { input_tokens: 900 } } }),
  event({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } }),
  event({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'hello' } }),
  event({ type: 'content_block_stop', index: 0 }),
  event({ type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 40 } }),
  event({ type: 'message_stop' }),
]
const ofResponses = (type: string) => [
  event({ type: 'response.output_text.delta', delta: 'hello' }),
  event({ type, response: { usage: { input_tokens: 900, output_tokens: 40 } } }),
]
const said = { candidates: [{ content: { parts: [{ text: 'hello' }] } }] }
const finished = {
  candidates: [{ finishReason: 'STOP' }],
  usageMetadata: { promptTokenCount: 900, candidatesTokenCount: 40, totalTokenCount: 940 },
}

interface Stream {
  readonly name: string
  readonly client: ForwardOptions['client']
  readonly upstream?: ForwardOptions['upstream']
  readonly events: readonly string[]
  readonly contentType?: string
  /** No event says that it is the last one. */
  readonly isUnmarked?: true
}
const STREAMS: readonly Stream[] = [
  {
    name: 'chat-completions',
    client: clientCall('chat-completions', 'hi', true),
    events: [word('hello'), FINISH, usageChunk(900, 40), DONE],
  },
  { name: 'messages', client: clientCall('messages', 'hi', true), upstream: 'messages', events: messages },
  {
    name: 'messages for chat-completions',
    client: clientCall('chat-completions', 'hi', true),
    upstream: 'messages',
    events: messages,
  },
  ...['response.completed', 'response.incomplete'].map(
    (type): Stream => ({
      name: type,
      client: clientCall('responses', 'hi', true),
      upstream: 'responses',
      events: ofResponses(type),
    }),
  ),
  {
    name: 'generate-content as an array',
    client: { ...clientCall('generate-content', 'hi', true), query: '' },
    upstream: 'generate-content',
    contentType: 'application/json',
    events: [`[${JSON.stringify(said)}`, `,${JSON.stringify(finished)}]`],
  },
  {
    name: 'generate-content as events',
    client: clientCall('generate-content', 'hi', true),
    upstream: 'generate-content',
    events: [event(said), event(finished)],
    isUnmarked: true,
  },
]

const SUCCESS = { status: 'success', input_tokens: 900, output_tokens: 40, error_code: null }

/** Runs the call under an Idempotency-Key, and notes what becomes of its record. */
const withKey =
  (records: (StoredReply | 'freed' | null)[]): NonNullable<ForwardOptions['answer']> =>
  (deps, admitted) => {
    const header = (name: string) => (name === 'idempotency-key' ? 'intent' : '')
    const handler = calls((call) => ({ ...admitted, ...call }))
      .then(
        idempotent<AdmittedCall>({
          records: {
            claim: async () => ({ outcome: 'claimed' }),
            isAnswered: async () => false,
            store: async (_, answer) => void records.push(answer),
            free: async () => void records.push('freed'),
          },
          answerMemory: new AnswerMemory(),
          workOnLongBody: workHere,
          onRecordLost: (error) => t.fail(String(error)),
        }),
      )
      .then(forward(deps))
      .toHandler()
    return handler({ ...admitted.request, header, hasHeader: (name) => header(name) !== '' })
  }

type Then = (call: RunningCall, lateUsage: LateUsage) => void
const AFTERWARDS: Readonly<Record<string, Then>> = {
  'the client leaves': (call) => call.abort(),
  'the upstream ends': (call) => call.attempt.end(),
  'the upstream breaks off': (call) => call.attempt.fail('reset', { headReceived: true }),
  'the time is over': (call) => call.attempt.fail('deadline', { headReceived: true }),
  'the upstream breaks off behind a client that has left': (call) => {
    call.abort()
    call.attempt.fail('reset', { headReceived: true })
  },
  'the process ends': (call, lateUsage) => {
    lateUsage.close()
    call.abort()
  },
}

for (const { name, events, contentType, isUnmarked, ...options } of STREAMS)
  for (const [what, happens] of Object.entries(AFTERWARDS))
    t.test(`${name}: ${what}`, async (t) => {
      const lateUsage = new LateUsage()
      const records: (StoredReply | 'freed' | null)[] = []
      const call = new RunningCall({ ...options, lateUsage, answer: withKey(records) })
      await setImmediate()
      call.attempt.head(200, contentType === undefined ? {} : { 'content-type': contentType })
      for (const text of events) call.attempt.data(text)
      if (isUnmarked !== true) {
        t.match(call.settlement, SUCCESS, 'it is settled before its last event is out')
        t.equal(records.length, 1, 'and kept')
      }
      await setImmediate()
      happens(call, lateUsage)
      lateUsage.close()
      await setImmediate()
      t.match(call.settlement, SUCCESS)
      t.equal(call.error, null)
      t.match(records, [{ status: 200 }])
      t.equal(String((records[0] as StoredReply).body), call.sent, 'what is replayed is what was sent')
      t.equal(call.inFlight, 0)
      t.equal(call.view.inFlight, 0n)
    })

t.test('an upstream that does not end its stream does not keep the client waiting', async (t) => {
  const call = new RunningCall({ lateUsage: new LateUsage({ usageMs: 1 }) })
  call.attempt.head()
  call.attempt.data(word('hello') + FINISH + usageChunk(900, 40) + DONE)
  t.notOk(call.isComplete)
  while (!call.isComplete) await setTimeout(1)
  t.ok(call.attempt.isLeft)
  t.match(call.settlement, SUCCESS)
})

t.test('usage that comes behind the last event counts', async (t) => {
  for (const isLeft of [false, true]) {
    const call = new RunningCall({ lateUsage: new LateUsage() })
    call.attempt.head()
    call.attempt.data(word('hello') + FINISH + DONE)
    t.equal(call.sent, word('hello') + FINISH + DONE, 'nobody waits for it')
    t.equal(call.settlements.length, 0)
    if (isLeft) call.abort()
    call.attempt.data(usageChunk(900, 40))
    call.attempt.end()
    t.match(call.settlement, { ...SUCCESS, usage_source: 'upstream' })
    t.equal(call.isComplete, !isLeft)
  }
  const silent = new RunningCall({ lateUsage: new LateUsage({ usageMs: 1 }) })
  silent.attempt.head()
  silent.attempt.data(word('hello') + FINISH + DONE)
  silent.abort()
  while (silent.settlements.length === 0) await setTimeout(1)
  t.match(silent.settlement, { status: 'success', usage_source: 'estimate', output_tokens: 2 })
})

t.test('what the upstream sends behind the last event passes', async (t) => {
  const comment = ': cost 1\n\n'
  const call = new RunningCall({ lateUsage: new LateUsage() })
  call.attempt.head()
  call.attempt.data(word('hello') + FINISH + usageChunk(900, 40) + DONE)
  call.attempt.data(comment)
  call.attempt.end()
  t.equal(call.sent, word('hello') + FINISH + DONE + comment)
  t.ok(call.isComplete)
})

t.test('a response that failed is one, whichever side closes first', async (t) => {
  const failed = event({ type: 'response.failed', response: { error: { message: 'no capacity' } } })
  for (const happens of Object.values(AFTERWARDS)) {
    const lateUsage = new LateUsage()
    const client = clientCall('responses', 'hi', true)
    const call = new RunningCall({ client, upstream: 'responses', lateUsage })
    call.attempt.head()
    call.attempt.data(event({ type: 'response.output_text.delta', delta: 'hello' }) + failed)
    happens(call, lateUsage)
    t.match(call.settlement, { status: 'error', error_message: 'no capacity' })
    t.equal(call.error, null, 'the client has read why')
  }
})

t.test('generate-content that goes on behind a finish reason is not whole before its end', async (t) => {
  const client = clientCall('generate-content', 'hi', true)
  const call = new RunningCall({ client, upstream: 'generate-content', lateUsage: new LateUsage() })
  call.attempt.head()
  call.attempt.data(event(finished))
  call.abort()
  call.attempt.data(event(said))
  call.attempt.end()
  t.match(call.settlement, { status: 'interrupted' })
})
