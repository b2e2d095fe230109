/** Streams to the client: keep-alives, and when a finished stream is complete. */
import { setImmediate, setTimeout } from 'node:timers/promises'
import t from 'tap'
import type { StoredReply } from '../../../pipelines/calls/claim.ts'
import { idempotent } from '../../../pipelines/calls/idempotency.ts'
import { calls } from '../../../pipelines/calls/pipeline.ts'
import { LateUsage } from '../../../pipelines/chat/forward/after-answer.ts'
import { type Ending, toEnding } from '../../../pipelines/chat/forward/call-record.ts'
import { forward } from '../../../pipelines/chat/forward/forward.ts'
import {
  type AnswerReceiver,
  SilenceWatch,
  StreamAnswer,
  type Waiting,
} from '../../../pipelines/chat/forward/stream-answer.ts'
import type { AdmittedCall } from '../../../pipelines/chat/precharge.ts'
import { DEFAULT_CHAT_SECONDS } from '../../../schemas/config/catalog.ts'
import { AnswerMemory } from '../../../src/core/limits/answer-memory.ts'
import { ChatCompletionsMeter } from '../../../src/protocols/chat-completions/meter.ts'
import type { AnswerStream } from '../../../src/protocols/dialect.ts'
import { MessagesMeter } from '../../../src/protocols/messages/meter.ts'
import { ResponsesMeter } from '../../../src/protocols/responses/meter.ts'
import { translatedStream as fromGenerateContent } from '../../src/protocols/generate-content/streams.ts'
import { translatedStream as fromMessages } from '../../src/protocols/messages/streams.ts'
import { until } from '../../support/eventually.ts'
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

t.test('silence is filled', async (t) => {
  // Where `keep_alive_seconds` is set, a client that waits gets the head of its stream and a comment once the upstream has
  // sent its own head, and comments while the stream is silent, only between events. Without it no byte is added, and to a
  // native stream of generate-content never.
  const COMMENT = ': keep-alive\n\n'
  const EVENTS = 'text/event-stream'
  const TICK_MS = 2
  const KEEP_ALIVE_SECONDS = 0.005
  const SILENCE_MS = 50
  const NEVER_SECONDS = 3_600
  const [SECOND, THIRD] = [{ channels: ['first', 'second'] }, { channels: ['first', 'second', 'third'] }]

  const silence = { silence: new SilenceWatch(TICK_MS), keepAliveSeconds: KEEP_ALIVE_SECONDS }
  const comments = (text: string) => text.split(COMMENT).length - 1

  t.test('before the first event: head and comment, and no other attempt from then on', async (t) => {
    const call = new RunningCall({ ...SECOND, ...silence })
    t.same(call.replies, [])
    await setTimeout(SILENCE_MS)
    t.same(call.replies, [], 'not before the upstream has sent its own head')
    call.attempt.head()
    await until('a comment', async () => comments(call.sent) > 1)
    t.match(call.replies[0], { type: 'head', status: 200 })
    const error = event({ error: { message: 'overloaded' } })
    call.attempt.data(error)
    call.attempt.end()
    t.equal(call.attempts.length, 1)
    t.equal(call.sent.replaceAll(COMMENT, ''), error, "the upstream's own error event is passed")
    t.ok(call.isComplete, 'and the stream ends as the upstream ended it')
    t.match(call.settlement, { status: 'error', cost: '0', attempts_count: 1, ttfb_ms: Number })
  })

  t.test('an attempt that failed before its head is tried elsewhere, however long that took', async (t) => {
    const call = new RunningCall({ ...THIRD, ...silence })
    await setTimeout(SILENCE_MS)
    call.attempt.head(503)
    call.attempt.end()
    call.attempt.head(200, { 'content-type': 'application/json' })
    await setTimeout(SILENCE_MS)
    t.same(call.replies, [], 'an answer in one piece is not filled')
    call.attempt.data('{}')
    call.attempt.end()
    t.equal(call.attempts.length, 3)
    call.attempt.stream(word('abcd') + FINISH + DONE)
    t.equal(call.sent, word('abcd') + FINISH + DONE)
    t.match(call.settlement, { status: 'success', attempts_count: 3 })
  })

  t.test('a stream that ends in silence, or is left in it', async (t) => {
    const ended = new RunningCall({ ...SECOND, ...silence })
    ended.attempt.head()
    await until('a comment', async () => comments(ended.sent) > 0)
    ended.attempt.end()
    t.match(ended.error, { code: 'upstream_error' })
    t.match(ended.settlement, { status: 'error', cost: '0', attempts_count: 1, ttfb_ms: null })
    const left = new RunningCall(silence)
    left.attempt.head()
    await until('a comment', async () => comments(left.sent) > 0)
    left.abort()
    const { sent } = left
    await setTimeout(SILENCE_MS)
    t.equal(left.sent, sent, 'nothing follows')
    t.match(left.settlement, { status: 'interrupted', ttfb_ms: null, output_tokens: 0 })
  })

  t.test('a stream that is never silent gets no comment', async (t) => {
    const call = new RunningCall({
      silence: new SilenceWatch(TICK_MS),
      keepAliveSeconds: NEVER_SECONDS,
    })
    call.attempt.head()
    await setTimeout(SILENCE_MS)
    call.attempt.data(word('abcd'))
    await setTimeout(SILENCE_MS)
    call.attempt.data(FINISH + DONE)
    call.attempt.end()
    t.equal(call.sent, word('abcd') + FINISH + DONE)
  })

  t.test(
    'a stream gets no byte where nothing asks for one, and none of generate-content that passes natively',
    async (t) => {
      const ofGenerateContent = clientCall('generate-content', 'hi', true)
      const calls = [
        new RunningCall({ silence: silence.silence }),
        new RunningCall({ ...silence, client: ofGenerateContent, upstream: 'generate-content' }),
        new RunningCall({
          ...silence,
          client: { ...ofGenerateContent, query: '' },
          upstream: 'generate-content',
        }),
      ]
      for (const call of calls) call.attempt.head()
      await setTimeout(SILENCE_MS)
      for (const call of calls) {
        t.same(call.replies, [], 'not even a head')
        call.attempt.data(event(candidate).repeat(2))
      }
      await setTimeout(SILENCE_MS)
      for (const call of calls) t.notMatch(call.sent, COMMENT)
      const translated = new RunningCall({ ...silence, upstream: 'generate-content' })
      translated.attempt.head()
      await until('a comment', async () => comments(translated.sent) > 0)
      for (const call of [...calls, translated]) call.abort()
    },
  )

  const KEPT_ALIVE = { keepAlive: { ms: 15_000, bytes: Buffer.from(COMMENT) }, idleMs: null }

  /** A stream of which the test makes each tick. */
  class Silent {
    sent = ''
    heads = 0
    isPaused = false
    ending: Ending | null = null
    readonly answer: StreamAnswer
    #now = 0

    constructor(stream: AnswerStream, limits: Pick<Waiting, 'keepAlive' | 'idleMs'> = KEPT_ALIVE) {
      const watch = { add: () => undefined, delete: () => undefined } as unknown as SilenceWatch
      const call: AnswerReceiver = {
        failOver: () => false,
        begin: () => void this.heads++,
        noteFirstByte: () => undefined,
        isPaused: () => this.isPaused,
        record: { hideSecrets: (bytes) => bytes, quoteCost: () => null },
        readWaiting: () => ({ silence: watch, since: 0, ...limits }),
        send: (bytes) => {
          this.sent += Buffer.from(bytes).toString()
        },
        sendLast: (bytes) => call.send(bytes),
        finish: (ending) => {
          this.ending = ending
        },
        finishWhole: () => undefined,
        fail: (failure) => {
          this.ending = toEnding(failure)
        },
        goOn: (work) => work(),
      }
      const route = { protocol: 'chat-completions', channel: {}, isTranslated: false } as const
      this.answer = new StreamAnswer(call, EVENTS, stream, route)
    }

    /** Lets so much time pass and looks once; returns what went out. */
    wait(ms: number): string {
      this.sent = ''
      this.#now += ms
      this.answer.tick(this.#now)
      return this.sent
    }

    push(text: string): void {
      this.answer.data(Buffer.from(text))
    }
  }

  t.test(
    'a stream without an event for the time of its limit ends as one that its upstream cuts off',
    async (t) => {
      const idle = { ...KEPT_ALIVE, idleMs: 60_000 }
      const timeout = { kind: 'timeout', message: 'The upstream did not answer in time.' }
      const waiting = (limits: Pick<Waiting, 'keepAlive' | 'idleMs'>) => {
        const stream = new Silent(new ChatCompletionsMeter({ withholdUsage: false, choices: 1 }), limits)
        stream.wait(1_000)
        return stream
      }
      const early = waiting({ ...idle, keepAlive: null })
      t.equal(early.wait(59_000), '')
      t.equal(early.ending, null)
      early.wait(1_000)
      t.match([early.ending, early.heads], [timeout, 0], 'before its first event it has no head')

      const silent = waiting(idle)
      t.equal(silent.wait(15_000), COMMENT)
      silent.push(': still there\n\n')
      silent.wait(44_000)
      t.equal(silent.ending, null)
      t.equal(silent.wait(1_000), '', 'no byte of ours follows')
      t.match([silent.ending, silent.heads], [timeout, 1])

      const flowing = waiting(idle)
      for (let i = 0; i < 3; i++) {
        flowing.push(chunk)
        flowing.wait(1)
        flowing.wait(59_000)
      }
      flowing.isPaused = true
      flowing.wait(90_000)
      t.equal(flowing.ending, null, 'a client that does not read is not the upstream')
      flowing.isPaused = false
      flowing.push(': still there\n\n')
      flowing.wait(60_000)
      t.match(flowing.ending, timeout)

      const ended = waiting(idle)
      ended.push(chunk + FINISH + DONE)
      ended.wait(1)
      ended.wait(90_000)
      t.equal(ended.ending, null)
    },
  )

  const chunk = word('abcd')
  const delta = event({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'abcd' } })
  const output = event({ type: 'response.output_text.delta', delta: 'abcd' })
  const candidate = { candidates: [{ content: { parts: [{ text: 'abcd' }] } }] }

  interface Way {
    readonly open: () => AnswerStream
    readonly element: string
    /** What goes to the client is whole events, wherever the upstream's are cut. */
    readonly isPrinted?: true
  }
  const WAYS: Readonly<Record<string, Way>> = {
    'chat-completions, usage withheld': {
      open: () => new ChatCompletionsMeter({ withholdUsage: true }),
      element: chunk,
      isPrinted: true,
    },
    'chat-completions, usage wanted': {
      open: () => new ChatCompletionsMeter({ withholdUsage: false }),
      element: chunk,
    },
    messages: { open: () => new MessagesMeter(), element: delta },
    'messages, translated': { open: fromMessages, element: delta, isPrinted: true },
    responses: { open: () => new ResponsesMeter(), element: output },
    'generate-content, translated': { open: fromGenerateContent, element: event(candidate), isPrinted: true },
  }

  for (const [name, { open, element, isPrinted }] of Object.entries(WAYS))
    t.test(name, async (t) => {
      const begun = new Silent(open())
      begun.push(element)
      t.equal(begun.wait(1), '', 'it has just spoken')
      t.equal(begun.wait(14_999), '')
      t.equal(begun.wait(1), COMMENT)
      t.equal(begun.wait(14_999), '', 'a comment ends the silence too')
      t.equal(begun.wait(1), COMMENT)
      for (const at of [2, 8, element.length - 4]) {
        begun.push(element.slice(0, at))
        begun.wait(1)
        t.equal(begun.wait(60_000), isPrinted ? COMMENT : '', `inside an event, after ${at} bytes`)
        begun.push(element.slice(at))
        begun.wait(1)
        t.equal(begun.wait(15_000), COMMENT, 'and at its end')
      }

      const early = new Silent(open())
      t.equal(early.wait(14_999), '')
      t.equal(early.heads, 0)
      t.equal(early.wait(1), COMMENT)
      t.equal(early.heads, 1)
      t.equal(early.wait(14_999), '')
      t.equal(early.wait(1), COMMENT)
      early.sent = ''
      early.push(element)
      t.ok(early.sent.includes('abcd'))
      t.equal(early.heads, 1)

      const half = new Silent(open())
      half.push(element.slice(0, 8))
      t.equal(
        half.wait(15_000),
        isPrinted ? COMMENT : element.slice(0, 8),
        'what was held goes out, and nothing into it',
      )
    })

  t.test('a byte order mark is passed at the beginning alone', async (t) => {
    const open = () => new Silent(new ChatCompletionsMeter({ withholdUsage: true }))
    const first = open()
    first.push(`\ufeff${chunk}`)
    t.equal(first.sent, `\ufeff${chunk}`)
    const filled = open()
    filled.wait(15_000)
    filled.push(`\ufeff${chunk}`)
    t.equal(filled.sent, COMMENT + chunk)
  })

  t.test('a client that does not read gets no comment: it is not the upstream that is silent', async (t) => {
    const slow = new Silent(new ChatCompletionsMeter({ withholdUsage: false }))
    slow.push(chunk)
    slow.wait(1)
    slow.isPaused = true
    t.equal(slow.wait(60_000), '')
    slow.isPaused = false
    t.equal(slow.wait(14_999), '')
    t.equal(slow.wait(1), COMMENT)
  })

  t.test('a long event is not cut in two', async (t) => {
    const stream = new Silent(new ChatCompletionsMeter({ withholdUsage: true }))
    stream.push(`data: {"choices":[{"index":0,"delta":{"content":"${'x'.repeat(300_000)}`)
    stream.wait(1)
    t.equal(stream.wait(60_000), '')
    stream.push('"}}]}\n\n')
    stream.wait(1)
    t.equal(stream.wait(15_000), COMMENT)
  })
})

t.test('a finished stream is complete', async (t) => {
  // * Once the last event of its protocol has been sent, a stream is a success, charged and kept for its Idempotency-Key,
  // whatever client, upstream and process do from then on.
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
            maxSeconds: () => DEFAULT_CHAT_SECONDS,
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
})
