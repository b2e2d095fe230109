/**
 * Where `keep_alive_seconds` is set, a client that waits gets the head of its stream and a comment once the upstream has
 * sent its own head, and comments while the stream is silent, only between events. Without it no byte is added, and to a
 * native stream of generate-content never.
 */
import { setTimeout } from 'node:timers/promises'
import t from 'tap'
import { erredAnswer } from '../../../pipelines/calls/upstream-error.ts'
import type { Ending } from '../../../pipelines/chat/forward/call-record.ts'
import {
  type AnswerReceiver,
  SilenceWatch,
  StreamAnswer,
} from '../../../pipelines/chat/forward/stream-answer.ts'
import { ChatCompletionsMeter } from '../../../src/protocols/chat-completions/meter.ts'
import type { AnswerStream } from '../../../src/protocols/dialect.ts'
import { MessagesMeter } from '../../../src/protocols/messages/meter.ts'
import { ResponsesMeter } from '../../../src/protocols/responses/meter.ts'
import { translatedStream as fromGenerateContent } from '../../src/protocols/generate-content/streams.ts'
import { translatedStream as fromMessages } from '../../src/protocols/messages/streams.ts'
import { until } from '../../support/eventually.ts'
import { clientCall, DONE, event, FINISH, RunningCall, word } from './forward-support.ts'

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

/** A stream of which the test makes each tick. */
class Silent {
  sent = ''
  heads = 0
  isPaused = false
  ending: Ending | null = null
  readonly answer: StreamAnswer
  #now = 0

  constructor(stream: AnswerStream) {
    const call: AnswerReceiver = {
      erred: (event) => erredAnswer(event, { protocol: 'chat-completions', channel: {} }),
      failsOver: () => false,
      begin: () => void this.heads++,
      firstByte: () => undefined,
      isPaused: () => this.isPaused,
      hideSecrets: (bytes) => bytes,
      send: (bytes) => {
        this.sent += Buffer.from(bytes).toString()
      },
      sendLast: (bytes) => call.send(bytes),
      finish: (ending) => {
        this.ending = ending
      },
      finishWhole: () => undefined,
      failed: () => undefined,
    }
    const watch = { add: () => undefined, delete: () => undefined } as unknown as SilenceWatch
    this.answer = new StreamAnswer(call, EVENTS, stream, { silence: watch, since: 0, keepAliveMs: 15_000 })
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
