/** When a call tries another channel, or another model, and which failures count against a channel. */
import t from 'tap'
import { STALE_WITHIN_MS, type UpstreamRefusal } from '../../../pipelines/calls/upstream-error.ts'
import { DEFAULT_CHAT_SECONDS } from '../../../schemas/config/catalog.ts'
import { printCredits } from '../../../schemas/money.ts'
import { ChannelHealth, FAILURES_IN_A_ROW } from '../../../src/core/routing/circuit-breaker.ts'
import { MIN_RETRIES, RetryBudget } from '../../../src/core/routing/retry-budget.ts'
import { payloads } from '../../src/protocols/chat-completions/reference.ts'
import {
  DONE,
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
