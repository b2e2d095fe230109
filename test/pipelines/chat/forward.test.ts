/** A chat call on its way to a channel and back: which channel, which errors, and what fills silence. */

import { setImmediate, setTimeout } from 'node:timers/promises'
import fc from 'fast-check'
import t from 'tap'
import type { StoredReply } from '../../../pipelines/calls/claim.ts'
import { makeErrorReply } from '../../../pipelines/calls/errors.ts'
import { idempotent } from '../../../pipelines/calls/idempotency.ts'
import { CallEnds, calls } from '../../../pipelines/calls/pipeline.ts'
import {
  ACCESS_REFUSED,
  chooseRefusedStatus,
  maskError,
  readUpstreamRefusal,
  STALE_WITHIN_MS,
  UpstreamRefusal,
} from '../../../pipelines/calls/upstream-error.ts'
import { LateUsage } from '../../../pipelines/chat/forward/after-answer.ts'
import { type Ending, toEnding } from '../../../pipelines/chat/forward/call-record.ts'
import { forward } from '../../../pipelines/chat/forward/forward.ts'
import {
  type AnswerReceiver,
  MAX_WHOLE_RESPONSE_BYTES,
  SilenceWatch,
  StreamAnswer,
  type Waiting,
} from '../../../pipelines/chat/forward/stream-answer.ts'
import { planTranslationHeaders } from '../../../pipelines/chat/forward/translation-headers.ts'
import type { AdmittedCall } from '../../../pipelines/chat/precharge.ts'
import { CHAT_PROTOCOLS, type ChatProtocol, DEFAULT_CHAT_SECONDS } from '../../../schemas/config/catalog.ts'
import { Failure } from '../../../schemas/failure.ts'
import { printCredits } from '../../../schemas/money.ts'
import { mask } from '../../../src/core/call-log/redact.ts'
import { AnswerMemory } from '../../../src/core/limits/answer-memory.ts'
import { MAX_CONTEXT_TOKENS } from '../../../src/core/pricing/usage-bounds.ts'
import type { Route } from '../../../src/core/routing/catalog.ts'
import { ChannelHealth, FAILURES_IN_A_ROW } from '../../../src/core/routing/circuit-breaker.ts'
import { MAX_KEY_REST_MS, REFUSED_KEY_REST_MS } from '../../../src/core/routing/key-pools.ts'
import { OutputRates, UNMEASURED_TOKENS_PER_SECOND } from '../../../src/core/routing/output-rates.ts'
import { MIN_RETRIES, RetryBudget } from '../../../src/core/routing/retry-budget.ts'
import { UsageOptionRefusals } from '../../../src/core/routing/usage-option-refusals.ts'
import { WalletView } from '../../../src/credentials/wallet.ts'
import { ChatCompletionsMeter } from '../../../src/protocols/chat-completions/meter.ts'
import type { AnswerStream } from '../../../src/protocols/dialect.ts'
import { MessagesMeter } from '../../../src/protocols/messages/meter.ts'
import { ResponsesMeter } from '../../../src/protocols/responses/meter.ts'
import { payloads } from '../../src/protocols/chat-completions/reference.ts'
import { translatedStream as fromGenerateContent } from '../../src/protocols/generate-content/streams.ts'
import { translatedStream as fromMessages } from '../../src/protocols/messages/streams.ts'
import { until } from '../../support/eventually.ts'
import { everyRun } from '../../support/every-run.ts'
import { workHere } from '../../support/work-here.ts'
import {
  clientCall,
  DONE,
  ESTIMATE,
  event,
  FINISH,
  type ForwardOptions,
  MODEL,
  RunningCall,
  type ScriptedUpstream,
  STAND_IN,
  usageChunk,
  word,
} from './forward-support.ts'

t.test('forward tries another channel only before the first byte', async (t) => {
  // When another channel is tried, and what of a failed attempt the client and the call log see.
  const TWO = { channels: ['first', 'second'] }

  const refuse =
    (status: number, message = 'no') =>
    (attempt: ScriptedUpstream): void =>
      attempt.refuse(status, message, { 'retry-after': '7' })

  t.test(
    "out of connections here: the gateway's own trouble, and no channel is blamed or tried",
    async (t) => {
      const call = new RunningCall({ channels: ['first', 'second'] })
      for (let i = 0; i < FAILURES_IN_A_ROW - 1; i++) call.health.noteFailure('first')
      call.attempt.fail('exhausted')
      t.match(call.error, { code: 'service_unavailable', status: 503, headers: [['retry-after', '1']] })
      t.match(call.settlement, {
        status: 'error',
        error_code: 'service_unavailable',
        cost: '0',
        attempts_count: 1,
      })
      t.equal(call.health.readBreaker('first'), 'closed')
      call.health.noteFailure('first')
      t.equal(call.health.readBreaker('first'), 'open', 'nor is it taken for having worked')
    },
  )

  function page(attempt: ScriptedUpstream): void {
    attempt.head(200, { 'content-type': 'text/html' })
    attempt.data('<html><body>Busy</body></html>')
    attempt.end()
  }

  t.test('what another channel may do better is tried there', async (t) => {
    const failures: Readonly<Record<string, (attempt: ScriptedUpstream) => void>> = {
      'connection refused': (attempt) => attempt.fail('connect'),
      reset: (attempt) => attempt.fail('reset'),
      'reset after the head': (attempt) => {
        attempt.head()
        attempt.fail('reset', { headReceived: true })
      },
      'reset after a comment': (attempt) => {
        attempt.head()
        attempt.data(': waiting\n\n')
        attempt.fail('reset', { headReceived: true })
      },
      'reset inside the first event': (attempt) => {
        attempt.head()
        attempt.data(word('x').slice(0, -1))
        attempt.fail('reset', { headReceived: true })
      },
      'an error as first event': (attempt) => {
        attempt.head()
        attempt.data(
          `: waiting\n\nevent: error\n${event({ error: { message: 'overloaded' } })}${word('late')}`,
        )
      },
      'an error as first event, without an end': (attempt) => {
        attempt.stream(event({ error: { message: 'overloaded' } }).trimEnd())
      },
      'no event at all': (attempt) => {
        attempt.head()
        attempt.end()
      },
      'an error behind an opening without content': (attempt) => {
        attempt.head()
        attempt.data(word('') + event({ error: { message: 'overloaded' } }) + DONE)
      },
      'neither content nor usage': (attempt) => {
        attempt.stream(word('') + FINISH + DONE)
      },
      'a page in place of a stream': page,
      'no body': (attempt) => {
        attempt.head(204)
        attempt.end()
      },
      'compressed though told not to': (attempt) => attempt.head(200, { 'content-encoding': 'br' }),
      '408': refuse(408),
      '429': refuse(429),
      '500': refuse(500),
      '529': refuse(529),
    }
    for (const [name, fail] of Object.entries(failures)) {
      const call = new RunningCall(TWO)
      fail(call.attempt)
      t.equal(call.attempts.length, 2, name)
      t.equal(call.attempts[1]?.request.channel.id, 'second')
      call.attempt.succeed()
      t.equal(call.sent, word('fine') + FINISH + DONE, `${name}: nothing of the first`)
      t.match(call.settlement, {
        status: 'success',
        attempts_count: 2,
        channel_id: 'second',
        input_tokens: 1,
      })

      const alone = new RunningCall()
      fail(alone.attempt)
      // The event itself is the answer then.
      if (name.startsWith('an error')) continue
      t.equal(alone.attempts.length, 1, `${name}, on the only channel`)
      t.ok((alone.error as { status: number }).status >= 400, 'a status that says so')
      t.match(alone.settlement, { status: 'error', cost: '0' })
    }
  })

  t.test('what it would not is passed on at once', async (t) => {
    const failures: readonly [(attempt: ScriptedUpstream) => void, object][] = [
      [refuse(400, 'bad'), { status: 400, code: 'invalid_request', message: 'bad' }],
      [refuse(401), { status: 401, code: 'invalid_api_key', headers: [['retry-after', '7']] }],
      [refuse(402), { status: 402, code: 'upstream_error' }],
      [refuse(403, 'No access.'), { status: 403, code: 'permission_denied', message: 'No access.' }],
      [refuse(403, 'Flagged by moderation.'), { status: 403, code: 'permission_denied', message: /Flagged/ }],
      [refuse(404), { status: 404, code: 'not_found' }],
      [refuse(422), { status: 422, code: 'invalid_request', headers: [['retry-after', '7']] }],
      [(attempt) => attempt.fail('deadline'), { status: 504, code: 'upstream_timeout' }],
    ]
    for (const [fail, expected] of failures) {
      const call = new RunningCall(TWO)
      fail(call.attempt)
      t.equal(call.attempts.length, 1)
      t.match(call.error, expected)
    }
  })

  t.test('after the first byte there is no second attempt, and nothing is added to the stream', async (t) => {
    const endings: readonly ((attempt: ScriptedUpstream) => void)[] = [
      (attempt) => attempt.end(),
      (attempt) => attempt.fail('reset', { headReceived: true }),
      (attempt) => attempt.fail('truncated', { headReceived: true }),
      (attempt) => attempt.fail('malformed', { headReceived: true }),
      (attempt) => attempt.fail('deadline', { headReceived: true }),
    ]
    for (const end of endings) {
      const call = new RunningCall(TWO)
      call.attempt.head()
      call.attempt.data(word('So far'))
      end(call.attempt)
      t.equal(call.attempts.length, 1)
      t.equal(call.sent, word('So far'))
      t.match(call.error, { code: 'upstream_error' }, 'the connection is cut')
      t.notOk(call.isComplete)
      t.match(call.settlement, { output_tokens: 2, usage_source: 'estimate' })
      t.ok(['error', 'interrupted'].includes(call.settlement.status))
    }
    const passed = new RunningCall(TWO)
    passed.attempt.head()
    const late = event({ error: { message: 'in the middle' } })
    passed.attempt.data(word('a') + late)
    passed.attempt.end()
    t.equal(passed.sent, word('a') + late, "the upstream's own error event is forwarded unchanged")
    t.ok(passed.isComplete, 'and so is the end')
    t.match(passed.settlement, { status: 'error', error_message: 'in the middle' })
    const cut = new RunningCall(TWO)
    cut.attempt.head()
    cut.attempt.data(word('a') + late)
    cut.attempt.fail('reset', { headReceived: true })
    t.match(cut.error, { code: 'upstream_error' }, 'an error event does not make a cut an end')
    t.match(cut.settlement, { status: 'error', error_message: 'in the middle' })
    const left = new RunningCall(TWO)
    left.attempt.head()
    left.attempt.data(word('a') + late)
    left.abort()
    t.match(
      left.settlement,
      { status: 'error', error_message: 'in the middle' },
      'though the client leaves first',
    )
    for (const ending of [DONE, FINISH + DONE, FINISH + usageChunk(1, 1) + DONE]) {
      const marked = new RunningCall()
      for (let i = 0; i < FAILURES_IN_A_ROW - 1; i++) marked.health.noteFailure('only')
      marked.attempt.stream(word('abcd') + late + ending)
      t.ok(marked.isComplete)
      t.match(
        marked.settlement,
        { status: 'error', error_message: 'in the middle', output_tokens: 1 },
        'no success',
      )
      t.equal(marked.health.readBreaker('only'), 'open', 'the breaker counts it')
    }
  })

  t.test('an empty finish reason in each chunk finishes nothing', async (t) => {
    const chunk = (content: string) =>
      event({ choices: [{ index: 0, delta: { content }, finish_reason: '' }] })
    const call = new RunningCall()
    call.attempt.head()
    call.attempt.data(chunk('So far') + chunk(', so'))
    call.attempt.fail('reset', { headReceived: true })
    t.match(call.settlement, { status: 'error', error_code: 'upstream_error' })
    t.notOk(call.isComplete)
  })

  t.test('an opening without content goes out at once, and is no answer for that', async (t) => {
    const call = new RunningCall(TWO)
    call.attempt.head()
    call.attempt.data(word(''))
    t.equal(call.sent, word(''))
    call.attempt.data(FINISH + DONE)
    call.attempt.end()
    t.ok(call.isComplete)
    t.match(call.settlement, { status: 'error', cost: '0', attempts_count: 1 })

    const whole = new RunningCall(TWO)
    whole.attempt.stream(word('') + FINISH + DONE)
    t.equal(whole.attempts.length, 2, 'nothing went out: another channel may answer')
  })

  t.test('with built-in tools alone a broken stream says so, in events of their own', async (t) => {
    for (const include_usage of [true, false]) {
      const request = { tools: [{ type: 'web_search' }], stream_options: { include_usage } }
      const call = new RunningCall({ request })
      call.attempt.head()
      call.attempt.data(`${word('So far')}data: {"choices":[{"del`)
      call.attempt.fail('reset', { headReceived: true })
      const [first, broken, error, mark] = payloads(call.sent)
      t.equal(event(JSON.parse(first!)), word('So far'))
      t.equal(broken, '{"choices":[{"del')
      t.match(JSON.parse(error!), { error: { type: 'api_error', code: 'upstream_error' } })
      t.equal(mark, '[DONE]')
      t.ok(call.isComplete, 'and ends in good order')
    }
  })

  t.test('a break behind the end mark is no failure, one before it is', async (t) => {
    const broken = (text: string) => {
      const call = new RunningCall()
      call.attempt.head()
      call.attempt.data(text)
      call.attempt.fail('reset', { headReceived: true })
      return call
    }
    const whole = broken(word('all of it') + FINISH + DONE)
    t.match(whole.settlement, { status: 'success', error_code: null })
    t.ok(whole.isComplete)
    const unmarked = broken(word('all of it') + FINISH)
    t.match(unmarked.settlement, { status: 'error', error_code: 'upstream_error' })
    t.match(unmarked.error, { code: 'upstream_error' })
    const orderly = new RunningCall()
    orderly.attempt.stream(word('all of it') + FINISH)
    t.match(
      orderly.settlement,
      { status: 'success' },
      'an upstream that sends no mark has ended it all the same',
    )
    t.ok(orderly.isComplete)
  })

  t.test('tries are bounded, and each channel is tried once', async (t) => {
    const channels = ['a', 'b', 'c', 'd']
    for (const retries of [0, 1, 2, 10]) {
      const call = new RunningCall({ channels, retries })
      while (call.error === null) call.attempt.fail('connect')
      const tried = call.attempts.map(({ request }) => request.channel.id)
      t.strictSame(tried, channels.slice(0, retries + 1))
    }
  })

  t.test('a kept connection that the upstream had closed is replaced by a fresh one, once', async (t) => {
    const call = new RunningCall({ channels: ['a', 'b'], retries: 0 })
    t.equal(call.attempt.request.onFreshConnection, false)
    call.attempt.fail('reset', { reused: true })
    t.equal(call.attempts.length, 2)
    t.match(call.attempt.request, { channel: { id: 'a' }, onFreshConnection: true }, 'at the same channel')
    call.attempt.fail('reset')
    t.equal(call.attempts.length, 2)
    t.match(call.error, { status: 502, code: 'upstream_unreachable' })
  })

  t.test('what broke later, otherwise, or behind the head was no connection closed before', async (t) => {
    for (const kind of ['deadline', 'head_timeout', 'malformed', 'too_large'] as const) {
      const call = new RunningCall()
      call.attempt.fail(kind, { reused: true })
      t.equal(call.attempts.length, 1, kind)
    }
    const late = new RunningCall()
    const { now } = performance
    const broke = now.call(performance) + STALE_WITHIN_MS
    performance.now = () => broke
    late.attempt.fail('reset', { reused: true })
    performance.now = now
    t.equal(late.attempts.length, 1, 'it may have been worked on')
  })

  t.test('connections that died together cost no call, no retry and no channel', async (t) => {
    const [health, retryBudget] = [new ChannelHealth(), new RetryBudget()]
    const calls = Array.from({ length: 20 }, () => new RunningCall({ health, retryBudget }))
    for (const { attempt } of calls) attempt.fail('closed', { reused: true })
    t.equal(health.readBreaker('only'), 'closed')
    for (const { attempt } of calls) attempt.succeed()
    for (const { settlement } of calls) t.match(settlement, { status: 'success', attempts_count: 2 })
    for (let taken = 0; taken < MIN_RETRIES; taken++) t.ok(retryBudget.take())
  })

  t.test('neither the call log nor the client sees a name, host or key of an upstream', async (t) => {
    const call = new RunningCall({ channels: ['acme-eu', 'acme-us'], retries: 1 })
    const words =
      `Channel acme-eu: upstream-name-of-acme-eu is not ${MODEL}, see https://acme.example/help; ` +
      'host-of-acme-eu knows no key-of-acme-eu of project-of-acme-eu'
    refuse(500, words)(call.attempt)
    refuse(500, words.replaceAll('-eu', '-us'))(call.attempt)
    const { error_message, attempts } = call.settlement
    const { status, message } = call.error as UpstreamRefusal
    t.equal(status, 500)
    for (const text of [message, error_message, ...attempts.map((attempt) => attempt.error_message)])
      t.equal(
        text,
        `Channel [upstream]: [upstream] is not ${MODEL}, see [url] [upstream] knows no [secret] of [secret]`,
      )
  })

  t.test('an error inside a stream passes as it came, without key and host of the channel', async (t) => {
    const error = (message: string) => event({ error: { message, code: 'overloaded' } })
    const call = new RunningCall({ channels: ['acme'] })
    call.attempt.head()
    call.attempt.data(word('fine'))
    call.attempt.data(error('host-of-acme does not take key-of-acme: naïve'))
    call.attempt.end()
    t.equal(call.sent, word('fine') + error('[secret] does not take [secret]: naïve'))
    t.match(call.settlement, { status: 'error' })
    const plain = new RunningCall({ channels: ['acme'] })
    plain.attempt.stream(word('fine') + error('busy'))
    t.equal(plain.sent, word('fine') + error('busy'))
  })
})

t.test('another model serves when every channel failed', async (t) => {
  // Fallbacks of a model: when they serve, and what is billed and named.
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
})

t.test('equal channels are chosen by strategy', async (t) => {
  // How one channel is chosen among those of one priority.
  const costing = (input: string, output: string) => ({
    cost: { [MODEL]: { unit: '1M_tokens', input, output } },
    priority: 0,
  })

  function servedBy(options: ConstructorParameters<typeof RunningCall>[0]): string {
    const call = new RunningCall(options)
    call.attempt.succeed()
    return call.attempt.request.channel.id
  }

  t.test('the cheapest first, by what the operator pays, and by the price without that', async (t) => {
    const options = {
      channels: ['unknown', 'dear', 'cheap'],
      modelFields: { strategy: 'least_cost' },
      channelFields: {
        unknown: { priority: 0 },
        dear: costing('3', '9'),
        cheap: costing('2', '8'),
      },
    }
    for (let i = 0; i < 20; i++) t.equal(servedBy(options), 'cheap')
    const call = new RunningCall(options)
    call.attempt.fail('connect')
    call.attempt.fail('connect')
    t.same(
      call.attempts.map(({ request }) => request.channel.id),
      ['cheap', 'dear', 'unknown'],
      'the next cheapest when one fails',
    )
    call.abort()
  })

  t.test('a price below a cost comes first, and the dearest kind and tier of the call count', async (t) => {
    const byCost = { modelFields: { strategy: 'least_cost' } }
    const equal = { priority: 0 }
    const channels = ['one', 'other']
    t.equal(
      servedBy({ ...byCost, channels, channelFields: { one: equal, other: costing('3000000', '3000000') } }),
      'one',
    )
    const priced = (more: object) => ({
      ...equal,
      cost: { [MODEL]: { unit: '1M_tokens', input: '1', output: '1', ...more } },
    })
    const dearer = costing('2', '2')
    t.equal(
      servedBy({ ...byCost, channels, channelFields: { one: priced({ reasoning: '100' }), other: dearer } }),
      'other',
      'its reasoning would cost more',
    )
    const channelFields = { one: priced({ service_tiers: { priority: '9' } }), other: dearer }
    const request = { service_tier: 'priority' }
    const { pricing } = {
      pricing: { unit: '1M_tokens', input: '1', output: '1', service_tiers: { priority: '2' } },
    }
    const modelFields = { strategy: 'least_cost', pricing }
    t.equal(servedBy({ channels, modelFields, channelFields, request }), 'other', 'its tier would cost more')
    t.equal(servedBy({ channels, modelFields, channelFields }), 'one')
  })

  t.test('a lower priority number stands above the cost', async (t) => {
    const options = {
      channels: ['first', 'cheap'],
      modelFields: { strategy: 'least_cost' },
      channelFields: { first: costing('9', '9'), cheap: { ...costing('1', '1'), priority: 1 } },
    }
    t.equal(servedBy(options), 'first')
  })

  t.test('the fastest first, after each was measured', async (t) => {
    const health = new ChannelHealth()
    const options = {
      channels: ['slow', 'fast'],
      modelFields: { strategy: 'least_latency' },
      channelFields: { slow: { priority: 0 }, fast: { priority: 0 } },
      health,
      random: () => 0.5,
    }
    const first = [servedBy(options), servedBy(options)]
    t.same(first.sort(), ['fast', 'slow'], 'one that was never measured comes first')
    const routeTo = (id: string) => ({ channel: { id }, upstreamModel: `upstream-name-of-${id}` }) as Route
    for (let i = 0; i < 50; i++) {
      health.latencies.noteTime(routeTo('slow'), 10_000)
      health.latencies.noteTime(routeTo('fast'), 10)
    }
    for (let i = 0; i < 5; i++) t.equal(servedBy(options), 'fast')
    t.equal(servedBy({ ...options, random: () => 0.01 }), 'slow', 'a few calls measure the others')
  })

  t.test('the only one is chosen by any strategy, paused since its call was admitted or not', async (t) => {
    for (const strategy of ['priority', 'least_cost', 'least_latency'])
      for (const held of [[], [['only', 'paused']] as const]) {
        const health = new ChannelHealth()
        health.hold(new Map(held))
        t.equal(servedBy({ channels: ['only'], modelFields: { strategy }, health }), 'only', strategy)
      }
  })

  t.test('by default equals share by weight', async (t) => {
    const options = { channels: ['a', 'b'], channelFields: { a: { priority: 0 }, b: { priority: 0 } } }
    t.equal(servedBy({ ...options, random: () => 0.1 }), 'a')
    t.equal(servedBy({ ...options, random: () => 0.9 }), 'b')
  })
})

t.test('error as first event of a stream', async (t) => {
  // An error as the first event of a stream: of the request, it goes out as it came; any other is another channel's chance,
  // and goes out as it came where there is none.
  const TWO = ['first', 'second']

  /** An error event as upstreams of the protocol send it; `name` says what it is about. */
  const EVENTS: Readonly<Record<ChatProtocol, (name: string) => string>> = {
    'chat-completions': (code) => event({ error: { message: 'It broke.', type: 'any_error', code } }),
    responses: (code) => `event: error\n${event({ type: 'error', code, message: 'It broke.', param: null })}`,
    messages: (type) => `event: error\n${event({ type: 'error', error: { type, message: 'It broke.' } })}`,
    'generate-content': (status) => event({ error: { code: 499, message: 'It broke.', status } }),
  }

  const OF_COMPLETIONS = [
    'context_length_exceeded',
    'invalid_prompt',
    'content_filter',
    'content_policy_violation',
    'string_above_max_length',
    'invalid_image_url',
    'unsupported_value',
  ]
  const OF_REQUEST: Readonly<Record<ChatProtocol, readonly string[]>> = {
    'chat-completions': OF_COMPLETIONS,
    responses: OF_COMPLETIONS,
    messages: ['invalid_request_error', 'request_too_large'],
    'generate-content': ['INVALID_ARGUMENT'],
  }
  const OTHERS: Readonly<Record<ChatProtocol, readonly string[]>> = {
    'chat-completions': ['server_error', 'rate_limit_exceeded', 'invalid_request_error'],
    responses: ['server_error', 'rate_limit_exceeded'],
    messages: ['overloaded_error', 'api_error', 'rate_limit_error', 'authentication_error', 'content_filter'],
    'generate-content': ['UNAVAILABLE', 'RESOURCE_EXHAUSTED', 'UNAUTHENTICATED'],
  }
  const PROTOCOLS = Object.keys(EVENTS) as ChatProtocol[]

  const started = (protocol: ChatProtocol, options: ConstructorParameters<typeof RunningCall>[0] = {}) =>
    new RunningCall({ client: clientCall(protocol, 'hi', true), upstream: protocol, ...options })

  for (const protocol of PROTOCOLS) {
    t.test(
      `${protocol}: of the request, it goes out as it came, and no other channel is tried`,
      async (t) => {
        for (const name of OF_REQUEST[protocol]) {
          const call = started(protocol, { channels: TWO })
          const bytes = EVENTS[protocol](name)
          call.attempt.stream(bytes)
          t.equal(call.attempts.length, 1, name)
          t.match(call.replies[0], { type: 'head', status: 200 })
          t.equal(call.sent, bytes)
          t.match(call.settlement, {
            status: 'rejected',
            error_code: 'invalid_request',
            error_message: 'It broke.',
            cost: '0',
            attempts_count: 1,
          })
        }
      },
    )

    t.test(`${protocol}: any other fails over; the last one goes out as it came`, async (t) => {
      for (const name of OTHERS[protocol]) {
        const bytes = EVENTS[protocol](name)
        const call = started(protocol, { channels: TWO })
        call.attempt.stream(bytes)
        t.equal(call.attempts.length, 2, name)
        t.same(call.replies, [], 'nothing of the first')
        const last = bytes.replace('It broke.', 'It broke again.')
        call.attempt.stream(last)
        t.match(call.replies[0], { type: 'head', status: 200 })
        t.equal(call.sent, last)
        t.match(call.settlement, {
          status: 'error',
          error_code: 'upstream_error',
          cost: '0',
          attempts_count: 2,
        })
        t.match(call.settlement.error_message, 'It broke again.')

        const alone = started(protocol)
        alone.attempt.head()
        for (const byte of Buffer.from(bytes)) alone.attempt.data(Buffer.from([byte]))
        alone.attempt.end()
        t.equal(alone.sent, bytes, 'byte by byte')
        t.match(alone.settlement, { status: 'error', cost: '0' })
      }
    })

    t.test(`${protocol}: what follows the error passes too`, async (t) => {
      const call = started(protocol)
      const bytes = EVENTS[protocol](OTHERS[protocol][0]!)
      call.attempt.head()
      call.attempt.data(bytes)
      t.equal(call.sent, bytes, 'the event goes out at once')
      call.attempt.data(DONE)
      call.attempt.end()
      t.equal(call.sent, bytes + DONE)
    })
  }

  t.test('a connection that fails after that is a 502', async (t) => {
    const call = started('messages', { channels: TWO })
    call.attempt.stream(EVENTS.messages('overloaded_error'))
    call.attempt.fail('connect')
    t.match(call.error, { status: 502, code: 'upstream_unreachable' })
  })

  t.test('in a translated stream the event is the data of a chunk, on one line', async (t) => {
    const pretty =
      '{\n  "error": {\n    "code": 503,\n    "message": "Busy.",\n    "status": "UNAVAILABLE"\n  }\n}'
    const upstreams = [
      ['messages', EVENTS.messages('overloaded_error'), EVENTS.messages('overloaded_error').split('\n')[1]],
      [
        'messages',
        EVENTS.messages('invalid_request_error'),
        EVENTS.messages('invalid_request_error').split('\n')[1],
      ],
      ['generate-content', event(JSON.parse(pretty)), `data: ${JSON.stringify(JSON.parse(pretty))}`],
      ['generate-content', `${pretty.replace(/^/gm, 'data: ')}\n\n`, `data: ${pretty.replaceAll('\n', ' ')}`],
    ] as const
    for (const [upstream, sent, line] of upstreams) {
      const call = new RunningCall({ upstream })
      call.attempt.stream(sent)
      t.equal(call.sent, `${line}\n\n`, upstream)
      t.equal(call.error, null, 'the client has read why, so the stream ends in good order')
      t.match(call.settlement, { status: /^(error|rejected)$/, cost: '0' })
    }
  })

  t.test('a blocked prompt is an answer', async (t) => {
    const call = started('generate-content', { channels: TWO })
    const blocked = event({ promptFeedback: { blockReason: 'SAFETY' } })
    call.attempt.stream(blocked)
    t.equal(call.attempts.length, 1)
    t.equal(call.sent, blocked)
  })

  t.test("an error about the channel's own key passes, unless its channel hides it", async (t) => {
    const about = [
      ['chat-completions', event({ error: { message: 'Bad key.', type: 'authentication_error' } })],
      ['chat-completions', event({ error: { message: 'No.', code: 401 } })],
      ['messages', EVENTS.messages('billing_error')],
      [
        'messages',
        event({
          type: 'error',
          error: { type: 'invalid_request_error', message: 'Your credit balance is too low.' },
        }),
      ],
      ['generate-content', EVENTS['generate-content']('PERMISSION_DENIED')],
      ['generate-content', event({ error: { status: 'INVALID_ARGUMENT', message: 'API key not valid.' } })],
    ] as const
    for (const [protocol, bytes] of about) {
      const shown = started(protocol, { channels: TWO })
      shown.attempt.stream(bytes)
      t.equal(shown.attempts.length, 2, 'another channel has another key')
      shown.attempt.stream(bytes)
      t.equal(shown.sent, bytes)
      t.match(shown.settlement, { status: 'error' })

      const hidden = started(protocol, { channelFields: { only: { hide_auth_errors: true } } })
      hidden.attempt.stream(bytes)
      t.equal(hidden.sent, '')
      t.match(hidden.error, { status: 502, message: /refused the access of this service/ })
    }
  })

  t.test("the channel's key and host inside the event are masked", async (t) => {
    const call = started('messages')
    const quoting = (what: string) =>
      event({ type: 'error', error: { type: 'api_error', message: `no ${what} here` } })
    call.attempt.stream(quoting('key-of-only at host-of-only'))
    t.equal(call.sent, quoting('[secret] at [secret]'))
  })

  t.test(
    'in an answer in one piece, an error of the request is 400, and no other channel is tried',
    async (t) => {
      for (const [protocol, code] of [
        ['responses', 'context_length_exceeded'],
        ['chat-completions', 'invalid_prompt'],
      ] as const) {
        const body = {
          object: 'response',
          status: 'failed',
          output: [],
          error: { code, message: 'Too long.' },
        }
        const call = new RunningCall({
          client: clientCall(protocol, 'hi', false),
          upstream: protocol,
          channels: TWO,
        })
        call.attempt.answer(body)
        t.equal(call.attempts.length, 1, code)
        t.match(call.error, { status: 400, code: 'invalid_request', message: 'Too long.' })
        t.match(call.settlement, { status: 'rejected', error_code: 'invalid_request', cost: '0' })
      }
      const busy = new RunningCall({
        client: clientCall('responses', 'hi', false),
        upstream: 'responses',
        channels: TWO,
      })
      busy.attempt.answer({ status: 'failed', output: [], error: { code: 'server_error', message: 'Busy.' } })
      t.equal(busy.attempts.length, 2, 'any other fails over')
    },
  )

  t.test('an error about the option that the gateway added is no error of the client', async (t) => {
    const usageOptionRefusals = new UsageOptionRefusals(() => {})
    const call = started('chat-completions', { usageOptionRefusals })
    const refused = { message: 'No such field.', code: 'unsupported_parameter', param: 'stream_options' }
    call.attempt.stream(event({ error: refused }))
    t.equal(call.attempts.length, 2)
    t.notMatch(call.attempt.request.body.toString(), /stream_options/)
  })
})

t.test('errors of an upstream keep their words', async (t) => {
  // What of an upstream's error body reaches the client: its text, in JSON or plain, and its parameter and details.
  const SECRET = 'key-of-the-channel-1'
  const hidden = (text: string) => mask(text, ['line-7', 'gpt-upstream'], [SECRET])

  function shown(status: number, body: string | Buffer): UpstreamRefusal {
    const { error } = readUpstreamRefusal({}, status, Buffer.from(body), '5')
    const refusal = maskError(error, hidden)
    if (!(refusal instanceof UpstreamRefusal)) throw new Error('it is the upstream’s own')
    return refusal
  }

  t.test('plain text is the message, masked, up to 500 characters', async (t) => {
    t.equal(shown(503, 'upstream connect error\n').message, 'upstream connect error')
    t.equal(shown(503, '"no capacity"').message, 'no capacity', 'a JSON text too')
    t.equal(
      shown(500, `bad ${SECRET} at https://a.test/v1 of line-7`).message,
      'bad [secret] at [url] of [upstream]',
    )
    const long = shown(500, `${'word '.repeat(400)}`).message
    t.ok(long.length <= 500 && long.startsWith('word word'))
    t.match(long, /…$/)
    const cutInKey = shown(500, `${'x '.repeat(240)}${SECRET} and more`).message
    t.notMatch(cutInKey, 'key-of')
    const cutInCharacter = shown(500, 'ü '.repeat(1000)).message
    t.match(cutInCharacter, /^ü ü/)
  })

  t.test('a page, other markup, bytes and nothing are no message', async (t) => {
    const none = [
      '<html><body>Bad gateway</body></html>',
      '  <!DOCTYPE html><p>x',
      '<?xml version="1.0"?><Error/>',
      '',
      ' \n',
    ]
    for (const body of [...none, '{"foo":"bar"}', '[]', '7', Buffer.from([0x1f, 0x8b, 8, 0, 0, 0xff])])
      t.equal(shown(502, body).message, 'The upstream answered with status 502.', String(body))
  })

  t.test('param and details stay beside it, masked; other fields do not', async (t) => {
    const details = [
      { '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '7s' },
      {
        '@type': 'type.googleapis.com/google.rpc.QuotaFailure',
        violations: [{ subject: `${SECRET} at api.a.com` }],
      },
    ]
    const error = { message: 'Slow down.', param: 'tools[0].name', details, code: 7, type: 'x', inner: 'y' }
    const refusal = shown(429, JSON.stringify({ error }))
    t.match(refusal, { status: 429, code: 'rate_limit_exceeded', headers: [['retry-after', '5']] })
    t.strictSame(refusal.extras, {
      param: 'tools[0].name',
      details: [details[0], { ...details[1], violations: [{ subject: '[secret] at [address]' }] }],
    })
    t.strictSame(shown(400, '{"error":{"message":"x","param":null,"details":null}}').extras, {})
    t.strictSame(shown(400, '{"message":"x","details":{"reason":"y"}}').extras, { details: { reason: 'y' } })
    const large = JSON.stringify({ error: { message: 'x', details: { quoted: 'y'.repeat(20_000) } } })
    t.strictSame(shown(400, large).extras, {}, 'not where they may quote the request')
  })

  t.test('a body that nests without end, or is cut off, is no text', async (t) => {
    for (const body of [`{"error":{"message":"x","details":${'['.repeat(20_000)}`, '{"error":{"mess'])
      t.equal(shown(400, body).message, 'The upstream answered with status 400.')
  })
})

t.test('little time blames no channel', async (t) => {
  // An attempt with little time left that runs out of it says nothing about its channel. See docs/api-rules.md, "Attempts".
  const MS_PER_SECOND = 1000
  const FULL_SECONDS = DEFAULT_CHAT_SECONDS
  const FULL_MS = FULL_SECONDS * MS_PER_SECOND

  /** The ways in which an attempt runs out of time. */
  const TIMEOUTS: Readonly<Record<string, (attempt: ScriptedUpstream) => void>> = {
    'before an answer': (attempt) => attempt.fail('deadline'),
    'during the answer': (attempt) => {
      attempt.head()
      attempt.data(word('once'))
      attempt.fail('deadline', { headReceived: true })
    },
  }

  /** Returns whether a timeout opens the breaker of a channel that has failed before. */
  function opens(run: (attempt: ScriptedUpstream) => void, seconds: number, ageMs: number): boolean {
    const call = new RunningCall({ ageMs, channelFields: { only: { timeout_seconds: seconds } } })
    for (let i = 0; i < FAILURES_IN_A_ROW - 1; i++) call.health.noteFailure('only')
    run(call.attempt)
    if (call.settlement.error_code !== 'upstream_timeout') throw new Error('it did not run out of time')
    return call.health.readBreaker('only') === 'open'
  }

  for (const [name, run] of Object.entries(TIMEOUTS))
    t.test(`a timeout ${name} counts against a channel that had half of its time`, async (t) => {
      t.ok(opens(run, FULL_SECONDS, 0))
      t.ok(opens(run, FULL_SECONDS, 0.4 * FULL_MS))
      t.notOk(opens(run, FULL_SECONDS, 0.6 * FULL_MS))
      t.ok(opens(run, FULL_SECONDS / 3, 0.6 * FULL_MS), 'a shorter time, which it had')
      t.notOk(opens(run, FULL_SECONDS / 3, 0.9 * FULL_MS))
      t.ok(opens(run, 3 * FULL_SECONDS, 0), 'a longer time, which no call has')
    })

  t.test(
    'a call has the time of its limit, and an attempt that of its channel where that is less',
    async (t) => {
      const timesOf = (options: ForwardOptions) => {
        const call = new RunningCall(options)
        const { deadlineMs, headTimeoutMs } = call.attempt.request
        call.abort()
        return [Math.round(deadlineMs / MS_PER_SECOND), headTimeoutMs]
      }
      const lasting = (seconds: number) => ({ time: { totalMs: seconds * MS_PER_SECOND, idleMs: null } })
      const idle = { time: { totalMs: FULL_MS, idleMs: 20_000 } }
      const channelFields = { only: { timeout_seconds: 600 } }
      t.same(timesOf({}), [180, undefined])
      t.same(timesOf({ admitted: lasting(3600) }), [3600, undefined])
      t.same(timesOf({ admitted: lasting(3600), channelFields }), [600, undefined])
      t.same(timesOf({ admitted: lasting(300), channelFields }), [300, undefined])
      t.same(timesOf({ admitted: lasting(3600), ageMs: 3300 * MS_PER_SECOND, channelFields }), [
        300,
        undefined,
      ])
      t.same(timesOf({ admitted: idle }), [180, 20_000])
      t.same(timesOf({ admitted: idle, request: { stream: false } }), [180, undefined], 'it has no events')
    },
  )

  t.test('any other failure counts, however little time was left', async (t) => {
    const call = new RunningCall({ ageMs: 0.9 * FULL_MS })
    for (let i = 0; i < FAILURES_IN_A_ROW - 1; i++) call.health.noteFailure('only')
    call.attempt.fail('reset')
    t.equal(call.health.readBreaker('only'), 'open')
  })
})

t.test('refused keys rest alone', async (t) => {
  // A channel with several keys: which one is used, and what becomes of one that the upstream refuses.
  const KEYS = ['key-number-one-aaaa', 'key-number-two-bbbb', 'key-number-three-cccc']
  const POOL: ForwardOptions = {
    channels: ['pool'],
    channelFields: { pool: { api_key: KEYS[0], api_keys: KEYS } },
  }

  const keysOf = ({ attempts }: RunningCall) => attempts.map(({ request }) => request.channel.api_key)

  t.test('keys are used in turn', async (t) => {
    const health = new ChannelHealth()
    const used: string[] = []
    for (let i = 0; i < 4; i++) {
      const call = new RunningCall({ ...POOL, health })
      call.attempt.succeed()
      used.push(...keysOf(call))
    }
    t.same(used, [...KEYS, KEYS[0]])
  })

  t.test(
    'a refused key rests, its call goes on with the next, and the channel is not at fault',
    async (t) => {
      for (const status of [401, 403, 429]) {
        let now = 0
        const health = new ChannelHealth(() => now)
        const call = new RunningCall({ ...POOL, health, retries: 0 })
        call.attempt.refuse(status)
        call.attempt.succeed()
        t.same(keysOf(call), [KEYS[0], KEYS[1]], String(status))
        t.match(call.settlement, { status: 'success', attempts_count: 2, channel_id: 'pool' })
        t.match(call.settlement.attempts[0], { seq: 1 })
        t.equal(health.listReports()[0]?.recent_failures, 0)
        const used = new Set<string | undefined>()
        for (let i = 0; i < 4; i++) {
          const next = new RunningCall({ ...POOL, health })
          next.attempt.succeed()
          used.add(keysOf(next)[0])
        }
        t.same([...used].sort(), [KEYS[1], KEYS[2]].sort(), 'it rests')
        t.match(health.listReports()[0]?.keys, [
          { position: 1, refusals: 1, resting_until: /^1970/ },
          { position: 2, refusals: 0, resting_until: null },
          { position: 3, refusals: 0, resting_until: null },
        ])
        now = REFUSED_KEY_REST_MS + 1
        t.equal(health.listReports()[0]?.keys[0]?.resting_until, null, 'and is used again')
      }
    },
  )

  t.test('a conversation keeps its key, leaves it while it rests, and returns', async (t) => {
    let now = 0
    const health = new ChannelHealth(() => now)
    const keyOf = (pin: string) => {
      const call = new RunningCall({ ...POOL, health, admitted: { pin } })
      call.attempt.succeed()
      return keysOf(call)[0]
    }
    const pins = Array.from({ length: 40 }, (_, at) => `acc_a conversation ${at}`)
    const own = new Map(pins.map((pin) => [pin, keyOf(pin)]))
    t.equal(new Set(own.values()).size, KEYS.length, 'each key has some')
    for (const pin of pins) t.equal(keyOf(pin), own.get(pin))

    const refused = new RunningCall({ ...POOL, health, admitted: { pin: pins[0]! } })
    refused.attempt.refuse(429)
    refused.attempt.succeed()
    const [resting, other] = keysOf(refused)
    t.same([resting, refused.settlement.status], [own.get(pins[0]!), 'success'])
    t.not(other, resting)
    for (const pin of pins) {
      if (own.get(pin) === resting) t.not(keyOf(pin), resting)
      else t.equal(keyOf(pin), own.get(pin), 'no other conversation moves')
    }
    now = REFUSED_KEY_REST_MS + 1
    for (const pin of pins) t.equal(keyOf(pin), own.get(pin))
  })

  t.test('a limited key rests as long as the upstream says', async (t) => {
    let now = 0
    const health = new ChannelHealth(() => now)
    const call = new RunningCall({ ...POOL, health })
    call.attempt.refuse(429, 'no', { 'retry-after': '7' })
    call.attempt.succeed()
    now = 6_999
    t.not(health.listReports()[0]?.keys[0]?.resting_until, null)
    now = 7_000
    t.equal(health.listReports()[0]?.keys[0]?.resting_until, null)
  })

  t.test('a clock that is set back by hours lets no key rest for hours', async (t) => {
    let now = 10 * MAX_KEY_REST_MS
    const health = new ChannelHealth(() => now)
    const call = new RunningCall({ ...POOL, health })
    call.attempt.refuse(429)
    call.attempt.succeed()
    t.not(health.listReports()[0]?.keys[0]?.resting_until, null)
    now = 0
    t.equal(health.listReports()[0]?.keys[0]?.resting_until, null)
    const used: string[] = []
    for (const _ of KEYS) {
      const next = new RunningCall({ ...POOL, health })
      next.attempt.succeed()
      used.push(...keysOf(next))
    }
    t.same(used.sort(), [...KEYS].sort())
  })

  t.test('with every key refused the channel has failed, and the client reads nothing of them', async (t) => {
    const call = new RunningCall({ ...POOL, channels: ['pool', 'other'] })
    for (let i = 0; i < KEYS.length; i++) call.attempt.refuse(429)
    t.same(call.attempt.request.channel.id, 'other', 'the next channel serves')
    call.attempt.succeed()
    t.match(call.settlement, { status: 'success', channel_id: 'other', attempts_count: 4 })

    const alone = new RunningCall(POOL)
    for (const key of KEYS) {
      alone.attempt.refuse(401, `Incorrect API key provided: ${key}`)
    }
    t.same(alone.attempts.length, KEYS.length, 'each key once')
    t.match(alone.error, { status: 401, code: 'invalid_api_key' })
    for (const key of KEYS) {
      t.notMatch(String((alone.error as Error).message), key)
      t.notMatch(JSON.stringify(alone.settlement), key)
    }
  })

  t.test("the customer's own mistake rests no key", async (t) => {
    const call = new RunningCall(POOL)
    call.attempt.refuse(400)
    t.equal(call.attempts.length, 1)
    t.match(
      call.health.listReports()[0]?.keys.map(({ resting_until }) => resting_until),
      [null, null, null],
    )
  })
})

t.test('errors of an upstream in its own words', async (t) => {
  // `upstream_errors: native`: the upstream's error object, masked, for clients of its protocol.
  const NATIVE = { only: { upstream_errors: 'native', serve: CHAT_PROTOCOLS } }
  const said = 'gone: key-of-only at http://host-of-only:1/v1'
  const shown = 'gone: [secret] at [url]'
  const errors = (message: string): Readonly<Record<ChatProtocol, object>> => ({
    'chat-completions': {
      error: { message, type: 'invalid_request_error', param: 'messages', code: 'context_length_exceeded' },
    },
    responses: {
      error: { message, type: 'invalid_request_error', param: 'input', code: 'context_length_exceeded' },
    },
    messages: { type: 'error', error: { type: 'overloaded_error', message } },
    'generate-content': {
      error: { code: 400, message, status: 'INVALID_ARGUMENT', details: [{ reason: 'x' }] },
    },
  })
  const shape = {
    'chat-completions': '/v1/chat/completions',
    responses: '/v1/responses',
    messages: '/v1/messages',
    'generate-content': '/v1beta/models/m:generateContent',
  }
  const silent = { onUnforeseen: () => {}, onInternal: () => {} }

  for (const protocol of CHAT_PROTOCOLS)
    t.test(protocol, async (t) => {
      const call = new RunningCall({
        client: clientCall(protocol, 'hi', false),
        upstream: protocol,
        channelFields: NATIVE,
      })
      call.attempt.answer({ ...errors(said)[protocol], request_id: 'theirs' }, 422)
      const { status, body } = makeErrorReply(shape[protocol], 'req', silent)(call.error)
      t.equal(status, 422)
      t.strictSame(JSON.parse(String(body)), errors(shown)[protocol])
      t.match(call.settlement, { status: 'rejected', error_code: 'invalid_request' })

      const mapped = new RunningCall({ client: clientCall(protocol, 'hi', false), upstream: protocol })
      mapped.attempt.answer(errors(said)[protocol], 422)
      t.match((mapped.error as UpstreamRefusal).native, null, 'by default its names are mapped')
      const plain = new RunningCall({
        client: clientCall(protocol, 'hi', false),
        upstream: protocol,
        channelFields: NATIVE,
      })
      plain.attempt.head(422)
      plain.attempt.data('no JSON')
      plain.attempt.end()
      t.match((plain.error as UpstreamRefusal).native, null)
    })

  t.test('a translated call gets names of its own protocol', async (t) => {
    const call = new RunningCall({
      client: clientCall('messages', 'hi', false),
      upstream: 'chat-completions',
      channelFields: NATIVE,
    })
    call.attempt.answer(errors(said)['chat-completions'], 422)
    t.match((call.error as UpstreamRefusal).native, null)
  })

  t.test('an error of the request in an answer in one piece', async (t) => {
    const call = new RunningCall({
      client: clientCall('responses', 'hi', false),
      upstream: 'responses',
      channelFields: NATIVE,
    })
    const error = { code: 'context_length_exceeded', message: 'Too long.' }
    call.attempt.answer({ status: 'failed', output: [], error })
    const { status, body } = makeErrorReply('/v1/responses', 'req', silent)(call.error)
    t.equal(status, 400)
    t.strictSame(JSON.parse(String(body)), { error })
  })
})

t.test('upstreams refuse an account with any status', async (t) => {
  // What an upstream says of the operator's key or account, whatever its status: passed on, or hidden where a channel does.
  const HIDING = { hide_auth_errors: true }
  const refused = (status: number, message: string) =>
    readUpstreamRefusal(HIDING, status, bodyOf({ message }), null)

  const bodyOf = (error: object): Buffer => Buffer.from(JSON.stringify({ error }))

  t.test('by default each passes with its status, and the key rests all the same', async (t) => {
    const { keyRestMs, isChannelFault } = { keyRestMs: REFUSED_KEY_REST_MS, isChannelFault: true }
    const upstreams: readonly (readonly [number, object, string])[] = [
      [400, { message: 'API key not valid. Please pass a valid API key.' }, 'invalid_request'],
      [401, { message: 'Bad key.' }, 'invalid_api_key'],
      [402, { message: 'Pay.' }, 'upstream_error'],
      [403, { message: 'No access.' }, 'permission_denied'],
      [429, { message: 'Quota.', code: 'insufficient_quota' }, 'rate_limit_exceeded'],
    ]
    for (const [status, error, code] of upstreams)
      for (const channel of [{}, { hide_auth_errors: false }]) {
        const failure = readUpstreamRefusal(channel, status, bodyOf(error), '7')
        const { message } = error as { message: string }
        const headers = [['retry-after', '7']]
        t.match(failure, { code, message, keyRestMs, isChannelFault, error: { status, code, headers } })
        t.equal(failure.detail ?? null, null, 'operators read the same')
        t.equal(failure.isRejected, false, 'no fault of the request')
      }
  })

  t.test('a refusal of the request is rejected, any other an error', async (t) => {
    for (const [status, message, expected] of [
      [400, 'temperature: too hot', 'rejected'],
      [400, 'Your credit balance is too low to access the API.', 'error'],
      [401, 'no', 'error'],
      [402, 'no', 'error'],
      [403, 'No access.', 'error'],
      [403, 'Flagged by moderation.', 'rejected'],
      [404, 'no model', 'error'],
      [408, 'late', 'error'],
      [409, 'busy', 'error'],
      [413, 'long', 'rejected'],
      [422, 'no', 'rejected'],
      [429, 'slow', 'error'],
      [500, 'no', 'error'],
    ] as const)
      t.equal(chooseRefusedStatus(status, message), expected, `${status} ${message}`)
  })

  t.test('an account without credit and a key that is not valid, with 400', async (t) => {
    for (const message of [
      'Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade.',
      'Access denied, please make sure your account is in good standing.',
      'API key not valid. Please pass a valid API key.',
      'API key expired. Please renew the API key.',
      'API Key not found. Please pass a valid API key.',
    ]) {
      const failure = refused(400, message)
      t.match(failure, { code: 'upstream_error', message: ACCESS_REFUSED, isChannelFault: true }, message)
      t.match(failure, { keyRestMs: Number, detail: `with status 400: ${message}`, error: { status: 502 } })
    }
  })

  t.test('words that a client can put into an error stay its own mistake', async (t) => {
    for (const message of [
      "Invalid value: 'Your credit balance is too low'",
      'Unknown field: API key not valid',
    ])
      t.match(refused(400, message), { code: 'invalid_request', message, isChannelFault: false })
    t.match(refused(422, 'API key not valid'), { isChannelFault: false })
  })

  t.test(
    'an account without credit, with 429: no time helps this key, and another channel may',
    async (t) => {
      const message = 'You exceeded your current quota, please check your plan and billing details.'
      for (const names of [
        { type: 'insufficient_quota', code: 'insufficient_quota' },
        { type: 'insufficient_quota', code: null },
        { type: 'exceeded_current_quota_error' },
        { code: '1113' },
      ]) {
        const failure = readUpstreamRefusal(
          HIDING,
          429,
          Buffer.from(JSON.stringify({ error: { message, ...names } })),
          '2',
        )
        t.match(failure, {
          code: 'upstream_error',
          message: ACCESS_REFUSED,
          isRetryable: true,
          isChannelFault: true,
        })
        t.match(failure, { keyRestMs: REFUSED_KEY_REST_MS, error: { status: 502 } }, JSON.stringify(names))
      }
      for (const names of [
        { type: 'requests', code: 'rate_limit_exceeded' },
        { status: 'RESOURCE_EXHAUSTED' },
      ]) {
        const failure = readUpstreamRefusal(
          HIDING,
          429,
          Buffer.from(JSON.stringify({ error: { message, ...names } })),
          '2',
        )
        t.match(failure, { code: 'rate_limit_exceeded', message, keyRestMs: 2000, error: { status: 429 } })
      }
    },
  )
})

t.test('keys in answers are masked', async (t) => {
  // The channel's key inside a 200 is masked for the client, whole and streamed, in every protocol.
  const KEY = 'key-of-only'
  const MASKED = '[secret]'

  const WHOLE: Readonly<Record<ChatProtocol, (text: string) => object>> = {
    'chat-completions': (content) => ({ choices: [{ index: 0, message: { role: 'assistant', content } }] }),
    messages: (text) => ({ type: 'message', content: [{ type: 'text', text }], stop_reason: 'end_turn' }),
    'generate-content': (text) => ({
      candidates: [{ content: { parts: [{ text }] }, finishReason: 'STOP' }],
    }),
    responses: (text) => ({
      status: 'completed',
      output: [{ type: 'message', content: [{ type: 'output_text', text }] }],
    }),
  }
  const STREAMED: Readonly<Record<ChatProtocol, (text: string) => string>> = {
    'chat-completions': (text) => word(text) + FINISH + usageChunk(1, 1) + DONE,
    messages: (text) =>
      [
        { type: 'message_start', message: { usage: { input_tokens: 1, output_tokens: 1 } } },
        { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } },
        { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 2 } },
        { type: 'message_stop' },
      ]
        .map((data) => `event: ${data.type}\n${event(data)}`)
        .join(''),
    'generate-content': (text) =>
      event({ candidates: [{ content: { parts: [{ text }] }, finishReason: 'STOP' }] }),
    responses: (text) =>
      [
        { type: 'response.created', response: { id: 'r' } },
        { type: 'response.output_text.delta', delta: text },
        { type: 'response.completed', response: { usage: { input_tokens: 1, output_tokens: 1 } } },
      ]
        .map((data) => `event: ${data.type}\n${event(data)}`)
        .join(''),
  }
  const PROTOCOLS = Object.keys(WHOLE) as ChatProtocol[]

  for (const protocol of PROTOCOLS) {
    t.test(`${protocol}: whole`, async (t) => {
      const call = new RunningCall({ client: clientCall(protocol, 'hi', false), upstream: protocol })
      const body = WHOLE[protocol](`my key is ${KEY}, so`)
      call.attempt.answer(body)
      t.equal(call.sent, JSON.stringify(body).replace(KEY, MASKED))
      t.match(call.settlement, { status: 'success' })
    })

    t.test(`${protocol}: streamed, split at each byte of the key`, async (t) => {
      const text = STREAMED[protocol](`my key is ${KEY}, so`)
      // Without the option the client gets the usage chunk as well.
      const more = protocol === 'chat-completions' ? { stream_options: { include_usage: true } } : {}
      const at = text.indexOf(KEY)
      for (let cut = at - 1; cut <= at + KEY.length + 1; cut++) {
        const call = new RunningCall({ client: clientCall(protocol, 'hi', true, more), upstream: protocol })
        call.attempt.head()
        call.attempt.data(text.slice(0, cut))
        call.attempt.data(text.slice(cut))
        call.attempt.end()
        t.equal(call.sent, text.replace(KEY, MASKED), `cut at ${cut - at}`)
        t.match(call.settlement, { status: 'success' })
      }
    })
  }

  t.test('in a translated answer too', async (t) => {
    for (const stream of [false, true]) {
      const call = new RunningCall({
        client: clientCall('chat-completions', 'hi', stream),
        upstream: 'messages',
      })
      if (stream) call.attempt.stream(STREAMED.messages(KEY))
      else call.attempt.answer(WHOLE.messages(KEY))
      t.match(call.sent, MASKED)
      t.notMatch(call.sent, KEY)
    }
  })

  t.test('what waits for the rest of a key goes out when the stream ends, or breaks', async (t) => {
    for (const end of ['end', 'break'] as const) {
      const call = new RunningCall({ client: clientCall('messages', 'hi', true), upstream: 'messages' })
      const [start = '', delta = ''] = STREAMED.messages('x').split(/(?<=\n\n)/)
      const text = `${start}${delta}data: key-of`
      call.attempt.head()
      call.attempt.data(text)
      if (end === 'end') call.attempt.end()
      else call.attempt.fail('reset', { headReceived: true })
      t.equal(call.sent, text, end)
    }
  })
})

t.test('translated calls say so', async (t) => {
  // The headers of translated calls: which protocols, the names of dropped fields, and what was changed.
  const TRANSLATION = 'x-protocol-translation'
  const WARNING = 'x-protocol-warning'
  const CHANGES = 'x-protocol-changes'

  const started = (upstream: ChatProtocol, request: object = {}) =>
    new RunningCall({ upstream, client: clientCall('chat-completions', 'hi', false, request) })

  function headersOf(call: RunningCall): Record<string, string> {
    const [reply] = call.replies
    const headers = reply !== undefined && reply.type !== 'data' ? reply.headers : call.errorHeaders
    return Object.fromEntries(headers)
  }

  const MESSAGE = { type: 'message', content: [{ type: 'text', text: 'x' }], stop_reason: 'end_turn' }

  t.test('a cache mark of a lifetime without a price is named, be the call translated or not', async (t) => {
    const mark = (ttl: string) => ({ cache_control: { type: 'ephemeral', ttl } })
    const content = ['5m', '24h', '1h', '24h'].map((ttl) => ({
      type: 'text',
      text: 'hi "ttl"',
      ...mark(ttl),
    }))
    for (const [client, upstream] of [
      ['messages', 'messages'],
      ['chat-completions', 'messages'],
      ['chat-completions', 'chat-completions'],
    ] as const) {
      const request = { messages: [{ role: 'user', content }] }
      const modelFields = { pricing: { unit: '1M_tokens', input: '1', output: '1', cache_write: '1' } }
      const call = new RunningCall({
        ...{ upstream, modelFields },
        client: clientCall(client, 'hi', false, request),
      })
      call.attempt.answer(upstream === 'messages' ? MESSAGE : { choices: [] })
      t.equal(headersOf(call)[WARNING], 'cache_control.ttl 24h', `${client} to ${upstream}`)
    }
  })

  t.test('the warning has names and nothing else; what was changed stands apart', async (t) => {
    const call = started('messages', {
      seed: 1,
      temperature: 1.5,
      logit_bias: { 1: 1 },
      response_format: { type: 'json_object' },
      n: 2,
      stop: ['a', ' '],
    })
    call.attempt.answer(MESSAGE)
    const headers = headersOf(call)
    t.equal(headers[TRANSLATION], 'chat-completions to messages')
    t.same(headers[WARNING]?.split('; ').sort(), ['logit_bias', 'n', 'response_format', 'seed'])
    t.match(headers[CHANGES], /^temperature \(lowered to 1, [^;]*\); stop \([^;]*\)$/)
    t.match(call.settlement.detail, /seed.*temperature \(lowered to 1/, 'the log has both')
  })

  t.test('without anything dropped or changed neither is there', async (t) => {
    const call = started('messages')
    call.attempt.answer(MESSAGE)
    t.match(headersOf(call), { [TRANSLATION]: String, [WARNING]: undefined, [CHANGES]: undefined })
  })

  t.test('a list that is too long ends with a whole name', async (t) => {
    const many = Object.fromEntries(Array.from({ length: 400 }, (_, index) => [`field_${index}`, 1]))
    const call = started('messages', many)
    call.attempt.answer(MESSAGE)
    const names = headersOf(call)[WARNING]!.split('; ')
    t.ok(names.length > 100)
    for (const name of names) t.match(name, /^field_\d+$/)
    t.equal(names.at(-1), `field_${names.length - 1}`)
  })

  t.test('failed and refused calls say it too', async (t) => {
    for (const upstream of ['messages', 'generate-content'] as const) {
      const translation = `chat-completions to ${upstream}`
      const refused = started(upstream, { logit_bias: { 1: 1 } })
      refused.attempt.refuse(400, 'bad')
      t.match(refused.error, { status: 400 })
      t.match(headersOf(refused), { [TRANSLATION]: translation, [WARNING]: 'logit_bias' })

      const failed = started(upstream)
      failed.attempt.fail('connect')
      t.match(failed.error, { status: 502 })
      t.match(headersOf(failed), { [TRANSLATION]: translation })

      const content = [{ type: 'input_audio', input_audio: { data: 'AAAA', format: 'x' } }]
      const untranslatable = started(upstream, { messages: [{ role: 'user', content }] })
      t.equal(untranslatable.attempts.length, 0)
      t.ok(untranslatable.error instanceof Failure)
      t.match(headersOf(untranslatable), { [TRANSLATION]: translation })
    }
  })

  t.test('a native call says nothing, whole or refused', async (t) => {
    const call = started('chat-completions')
    call.attempt.refuse(400, 'bad')
    t.same(headersOf(call), {})
  })

  t.test(
    'refused before an attempt: where any attempt would have been translated, as the first',
    async (t) => {
      const route = (protocol: ChatProtocol, priority = 0) => ({
        isTranslated: protocol !== 'chat-completions',
        protocol,
        channel: { priority },
      })
      const of = (...routes: readonly ReturnType<typeof route>[]) =>
        planTranslationHeaders('chat-completions', { routes })
      t.same(of(route('messages')), [[TRANSLATION, 'chat-completions to messages']])
      t.same(of(route('messages', 1), route('generate-content')), [
        [TRANSLATION, 'chat-completions to generate-content'],
      ])
      for (const routes of [[], [route('chat-completions')], [route('chat-completions'), route('messages')]])
        t.same(of(...routes), [])
      t.same(planTranslationHeaders('chat-completions', {}), [])
    },
  )
})

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

t.test('an abandoned call is read on', async (t) => {
  // * `after_client_leaves: read_on`: a call whose client leaves is read to its end, and costs what reading it would have.
  // Where its upstream does not say, hidden reasoning is estimated by time. Until then it keeps its slot and its hold.
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
    new RunningCall({
      modelFields: REASONING,
      lateUsage: new LateUsage(),
      outputRates: measured(),
      ...options,
    })

  const thinking = event({
    type: 'message_start',
    message: { id: 'msg_1', model: 'm', usage: { input_tokens: 900, output_tokens: 1 } },
  })
  const WAYS: Readonly<Record<string, { options: ForwardOptions; begun: string; rest: readonly string[] }>> =
    {
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
          event({
            type: 'message_delta',
            delta: { stop_reason: 'end_turn' },
            usage: { output_tokens: 4000 },
          }),
          event({ type: 'message_stop' }),
        ],
      },
      responses: {
        options: { client: clientCall('responses', 'hi', true), upstream: 'responses' },
        begun: event({ type: 'response.created', response: { id: 'resp_1', usage: null } }),
        rest: [
          event({ type: 'response.output_text.delta', delta: 'hello' }),
          event({
            type: 'response.completed',
            response: { usage: { input_tokens: 900, output_tokens: 4000 } },
          }),
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

  t.test(
    'an abandoned call that its upstream refuses costs nothing, and is not tried elsewhere',
    async (t) => {
      const call = running({ channels: ['first', 'second'] })
      call.abort()
      call.attempt.refuse(500)
      t.equal(call.attempts.length, 1)
      t.match(call.settlement, { status: 'error', cost: '0' })
    },
  )

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
})

t.test('forward settles once whatever happens', async (t) => {
  // However upstream, journal and client end a call: one settlement, no reservation left, no second head.
  const SEED = 9
  const RUNS = 1000
  const WHOLE = JSON.stringify({
    choices: [{ index: 0, message: { role: 'assistant', content: 'hi' }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 1, completion_tokens: 1 },
  })

  /** What holds of every call that is over. */
  function checkOver(call: RunningCall): void {
    const { settlements, attempts, replies, view, inFlight } = call
    const fault = (what: string): never => {
      throw new Error(`${what}; replies ${replies.map(({ type }) => type)}, ${JSON.stringify(settlements)}`)
    }
    if (settlements.length !== 1) fault('not settled once')
    if (view.inFlight !== 0n) fault('a reservation is left')
    if (view.unbooked !== BigInt(settlements[0]!.cost)) fault('the view does not know the cost')
    if (inFlight !== 0) fault('still counted as in flight')
    if (attempts.some(({ isLeft }) => !isLeft)) fault('an upstream call goes on')
    if (settlements[0]!.attempts_count !== attempts.length) fault('attempts miscounted')
    if (!/^(full|head(,data)*)?$/.test(replies.map(({ type }) => type).join(',')))
      fault('replies out of order')
    if (call.error !== null && settlements[0]!.status === 'success') fault('a success that ended in an error')
  }

  const CAP = { accountId: 'key_a', balance: 10n * ESTIMATE, held: 0n, used: 0n, version: 1n }

  /** The key's cap gives back the estimate and knows the cost, as the wallet does, and so does PostgreSQL. */
  function checkCap(cap: WalletView | null, { settlement, leftReserved }: RunningCall): void {
    const cost = BigInt(settlement.cost)
    const told = cap === null ? [] : [cost]
    if (leftReserved.join() !== told.join()) throw new Error(`told to stay reserved: ${leftReserved}`)
    if (cap !== null && (cap.inFlight !== 0n || cap.unbooked !== cost))
      throw new Error(`of the cap ${cap.inFlight} are in flight and ${cap.unbooked} unbooked, of ${cost}`)
  }

  type Step = readonly [name: string, run: (attempt: ScriptedUpstream, call: RunningCall) => void]
  const STEPS: readonly Step[] = [
    ['head', (attempt) => attempt.head()],
    ['json head', (attempt) => attempt.head(200, { 'content-type': 'application/json' })],
    ['compressed head', (attempt) => attempt.head(200, { 'content-encoding': 'gzip' })],
    ['500', (attempt) => attempt.head(500)],
    ['400', (attempt) => attempt.head(400)],
    ['word', (attempt) => attempt.data(word('hello'))],
    ['half', (attempt) => attempt.data('data: {"choices":[{"delta":{"con')],
    ['comment', (attempt) => attempt.data(': waiting\n\n')],
    ['error event', (attempt) => attempt.data(event({ error: { message: 'overloaded' } }))],
    ['no option', (attempt) => attempt.data('{"error":{"message":"stream_options is not known"}}')],
    ['usage', (attempt) => attempt.data(usageChunk(3, 4))],
    ['finish', (attempt) => attempt.data(FINISH)],
    ['done', (attempt) => attempt.data(DONE)],
    ['end', (attempt) => attempt.end()],
    ['reset', (attempt) => attempt.fail('reset')],
    ['stale', (attempt) => attempt.fail('reset', { reused: true })],
    ['deadline', (attempt) => attempt.fail('deadline')],
    ['abort', (_, call) => call.abort()],
  ]

  t.test('any order of what an upstream can do, with the client leaving at any point', async (t) => {
    const script = fc.record({
      steps: fc.array(fc.constantFrom(...STEPS), { maxLength: 12 }),
      channels: fc.constantFrom(['only'], ['first', 'second'], ['first', 'second', 'third', 'fourth']),
      retries: fc.constantFrom(0, 1, 2),
      stream: fc.boolean(),
      wantsUsage: fc.boolean(),
      leavesAtReply: fc.constantFrom(-1, -1, 0, 1, 2),
      isCapped: fc.boolean(),
      isReadOn: fc.boolean(),
      modelFields: fc.constantFrom({}, { after_client_leaves: 'read_on', capabilities: { reasoning: true } }),
    })
    everyRun(
      t,
      { seed: SEED, numRuns: RUNS },
      [script],
      ({ steps, stream, wantsUsage, leavesAtReply, isCapped, isReadOn, ...setting }) => {
        const cap = isCapped ? new WalletView(CAP) : null
        const lateUsage = new LateUsage()
        if (!isReadOn) lateUsage.close()
        const call = new RunningCall({
          ...setting,
          lateUsage,
          ...(cap !== null && { cap }),
          request: { stream, ...(wantsUsage ? { stream_options: { include_usage: true } } : {}) },
          onReply: (_, running) => running.replies.length === leavesAtReply && running.abort(),
        })
        for (const [, run] of steps) run(call.attempt, call)
        call.abort()
        lateUsage.close()
        checkOver(call)
        const { status, cost } = call.settlement
        checkCap(cap, call)
        // Of a call whose time ran out behind the head the upstream has read the prompt.
        if (call.error !== null && call.sent === '' && cost !== '0' && status !== 'interrupted')
          throw new Error('a call without a byte of answer is charged')
        const hasWhole = call.replies.some(({ type }) => type === 'full')
        if (status === 'success' && !call.isComplete && !hasWhole && !call.sent.endsWith(DONE))
          throw new Error('a success that never ended')
      },
    )
  })

  t.test('an answer and the last event of a stream are sent once the journal has their cost', async (t) => {
    for (const stream of [false, true])
      for (const leaves of [false, true]) {
        const waiting: (() => void)[] = []
        const call = new RunningCall({ request: { stream }, onSettle: (written) => waiting.push(written) })
        call.attempt.head(200, stream ? {} : { 'content-type': 'application/json' })
        call.attempt.data(stream ? word('hi') + FINISH + usageChunk(1, 1) + DONE : WHOLE)
        call.attempt.end()
        t.match(call.settlement, { status: 'success', output_tokens: 1 })
        t.equal(call.isComplete, false)
        t.equal(call.replies.length, stream ? 1 : 0)
        if (leaves) call.abort()
        for (const written of waiting) written()
        t.equal(call.isComplete, !leaves)
        t.equal(call.replies.length, leaves ? Number(stream) : 1 + Number(stream))
        t.equal(call.settlements.length, 1)
      }
  })

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

  t.test('a charged answer is kept under its Idempotency-Key, also where its client gets none', async (t) => {
    for (const stream of [false, true])
      for (const end of ['left', 'not stored', 'written'] as const) {
        const records: (StoredReply | 'freed' | null)[] = []
        const waiting: ((error?: Error) => void)[] = []
        const onSettle = (written: () => void) => void waiting.push(written)
        const call = new RunningCall({ request: { stream }, onSettle, answer: withKey(records) })
        await setImmediate()
        call.attempt.head(200, stream ? {} : { 'content-type': 'application/json' })
        call.attempt.data(stream ? word('hi') + FINISH + usageChunk(1, 1) + DONE : WHOLE)
        call.attempt.end()
        t.match(call.settlement, { status: 'success' })
        t.same(records, [])
        if (end === 'left') call.abort()
        waiting[0]!(end === 'not stored' ? new Error('no leader') : undefined)
        await setImmediate()
        t.match(call.error, end === 'not stored' ? { status: 503 } : null)
        t.equal(call.isComplete, end === 'written')
        const [kept] = records as [StoredReply]
        t.match(kept, { status: 200, headers: [['content-type', /^(text|application)/]] })
        t.equal(String(kept.body), stream ? word('hi') + FINISH + DONE : WHOLE)
        t.equal(records.length, 1)
      }
    const records: (StoredReply | 'freed' | null)[] = []
    const left = new RunningCall({ answer: withKey(records) })
    await setImmediate()
    left.attempt.head()
    left.attempt.data(word('hi'))
    left.abort()
    t.same(records, ['freed'], 'one that its client has left before its end may be tried again')
  })

  t.test('an upstream that goes on after its attempt is over is not heard', async (t) => {
    const call = new RunningCall({ channels: ['first', 'second'] })
    const first = call.attempt
    first.head()
    first.data(event({ error: { message: 'no' } }))
    t.equal(call.attempts.length, 2)
    first.data(word('late'))
    first.end()
    first.fail('reset')
    const second = call.attempt
    second.stream(word('early') + FINISH + DONE)
    second.data(word('later still'))
    second.end()
    second.fail('reset')
    t.equal(call.sent, word('early') + FINISH + DONE)
    checkOver(call)
    t.match(call.settlement, { status: 'success', channel_id: 'second', attempts_count: 2 })
    t.match(call.settlement.attempts, [
      { seq: 1, error_code: 'upstream_error' },
      { seq: 2, error_code: null },
    ])
  })

  t.test('the client leaves inside the delivery of the first byte', async (t) => {
    const call = new RunningCall({ onReply: (reply, running) => reply.type === 'data' && running.abort() })
    call.attempt.head()
    call.attempt.data(word('twelve chars'))
    checkOver(call)
    t.match(call.settlement, { status: 'interrupted', output_tokens: 3, error_code: null })
  })

  t.test('the client leaves while the connection to the upstream is still being made', async (t) => {
    const call = new RunningCall()
    call.attempt.isSent = false
    call.abort()
    checkOver(call)
    t.match(call.settlement, { status: 'interrupted', cost: '0', usage_source: 'none', attempts_count: 1 })

    const sent = new RunningCall()
    sent.abort()
    t.match(
      sent.settlement,
      { status: 'interrupted', usage_source: 'estimate' },
      'behind that it owes the prompt',
    )
    t.not(sent.settlement.cost, '0')

    const again = new RunningCall({ channels: ['first', 'second'] })
    again.attempt.fail('reset')
    again.attempt.isSent = false
    again.abort()
    t.match(again.settlement, { cost: '0', attempts_count: 2 }, 'an attempt that failed before owes nothing')
  })

  t.test('a journal that cannot be written refuses the call', async (t) => {
    const later: ((error: Error | null) => void)[] = []
    const admit: ForwardOptions['admit'] = (_, written) => {
      later.push(written)
      return { requestId: 'req_test' }
    }
    const refused = new RunningCall({ admit })
    t.equal(refused.attempts.length, 0, 'nothing goes upstream before it is written')
    later[0]!(new Error('disk full'))
    t.match(refused.error, { code: 'service_unavailable', status: 503, internal: 'journal: disk full' })
    t.notMatch(String(refused.error), /disk/)
    t.match(refused.settlement, { status: 'error', cost: '0', attempts_count: 0 })
    checkOver(refused)

    const left = new RunningCall({ admit })
    left.abort()
    later[1]!(null)
    t.equal(left.attempts.length, 0, 'a client that left before is not served')
    checkOver(left)
    t.match(left.settlement, { status: 'interrupted', cost: '0', usage_source: 'none' })
  })

  t.test('a fault of the gateway itself ends the call as one', async (t) => {
    const faulty: readonly ForwardOptions[] = [
      {
        admit: () => {
          throw new Error('bug in admit')
        },
      },
      {
        callUpstream: () => {
          throw new Error('bug in callUpstream')
        },
      },
    ]
    for (const options of faulty) {
      const call = new RunningCall(options)
      t.ok(call.error instanceof Error && !(call.error instanceof Failure), 'shown as internal_error')
      t.equal(call.view.inFlight, 0n)
      t.equal(call.inFlight, 0)
      t.equal(call.settlement.cost, '0')
    }
    const reasonless = new RunningCall()
    reasonless.attempt.failWith(undefined as never)
    t.type(reasonless.error, TypeError)
    t.match(reasonless.settlement, { status: 'error', error_code: 'internal_error', cost: '0' })
    checkOver(reasonless)
    const headless = new RunningCall()
    headless.attempt.data(word('before any head'))
    t.type(headless.error, TypeError)
    t.match(headless.settlement, { status: 'error', error_code: 'internal_error', cost: '0' })
    checkOver(headless)
    const mute = new RunningCall()
    mute.attempt.end()
    t.type(mute.error, TypeError)
    checkOver(mute)
  })

  t.test('an answer in one piece that is too large is given up, and no other asked for it', async (t) => {
    const call = new RunningCall({ channels: ['first', 'second'], request: { stream: false } })
    const piece = Buffer.alloc(8 * 1024 * 1024, 0x20)
    call.attempt.head(200, { 'content-type': 'application/json' })
    for (let sent = 0; sent <= MAX_WHOLE_RESPONSE_BYTES; sent += piece.length) call.attempt.data(piece)
    t.match(call.error, { status: 502, message: /too large/ })
    t.equal(call.attempts.length, 1)
    checkOver(call)
    t.match(call.settlement, { status: 'error', usage_source: 'estimate' })
    t.equal(
      call.settlement.output_tokens,
      MAX_CONTEXT_TOKENS,
      'charged by its bytes up to what a call can use',
    )
  })

  t.test('an error body without an end is cut off', async (t) => {
    const call = new RunningCall()
    call.attempt.head(500, { 'content-type': 'text/html' })
    for (let i = 0; i < 5; i++) call.attempt.data(Buffer.alloc(20_000, '<p>a</p>'))
    t.match(call.error, { status: 500, message: 'The upstream answered with status 500.' })
    checkOver(call)
  })
})
