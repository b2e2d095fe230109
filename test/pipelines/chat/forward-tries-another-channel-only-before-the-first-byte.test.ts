/** When another channel is tried, and what of a failed attempt the client and the call log see. */
import t from 'tap'
import { STALE_WITHIN_MS, type UpstreamRefusal } from '../../../pipelines/calls/upstream-error.ts'
import { ChannelHealth, FAILURES_IN_A_ROW } from '../../../src/core/routing/circuit-breaker.ts'
import { MIN_RETRIES, RetryBudget } from '../../../src/core/routing/retry-budget.ts'
import { payloads } from '../../src/protocols/chat-completions/reference.ts'
import {
  DONE,
  event,
  FINISH,
  MODEL,
  RunningCall,
  type ScriptedUpstream,
  usageChunk,
  word,
} from './forward-support.ts'

const TWO = { channels: ['first', 'second'] }

const refuse =
  (status: number, message = 'no') =>
  (attempt: ScriptedUpstream): void =>
    attempt.refuse(status, message, { 'retry-after': '7' })

t.test("out of connections here: the gateway's own trouble, and no channel is blamed or tried", async (t) => {
  const call = new RunningCall({ channels: ['first', 'second'] })
  for (let i = 0; i < FAILURES_IN_A_ROW - 1; i++) call.health.failed('first')
  call.attempt.fail('exhausted')
  t.match(call.error, { code: 'service_unavailable', status: 503, headers: [['retry-after', '1']] })
  t.match(call.settlement, {
    status: 'error',
    error_code: 'service_unavailable',
    cost: '0',
    attempts_count: 1,
  })
  t.equal(call.health.breaker('first'), 'closed')
  call.health.failed('first')
  t.equal(call.health.breaker('first'), 'open', 'nor is it taken for having worked')
})

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
      attempt.data(`: waiting\n\nevent: error\n${event({ error: { message: 'overloaded' } })}${word('late')}`)
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
    t.match(call.settlement, { status: 'success', attempts_count: 2, channel_id: 'second', input_tokens: 1 })

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
    for (let i = 0; i < FAILURES_IN_A_ROW - 1; i++) marked.health.failed('only')
    marked.attempt.stream(word('abcd') + late + ending)
    t.ok(marked.isComplete)
    t.match(
      marked.settlement,
      { status: 'error', error_message: 'in the middle', output_tokens: 1 },
      'no success',
    )
    t.equal(marked.health.breaker('only'), 'open', 'the breaker counts it')
  }
})

t.test('an empty finish reason in each chunk finishes nothing', async (t) => {
  const chunk = (content: string) => event({ choices: [{ index: 0, delta: { content }, finish_reason: '' }] })
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
  t.equal(health.breaker('only'), 'closed')
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
