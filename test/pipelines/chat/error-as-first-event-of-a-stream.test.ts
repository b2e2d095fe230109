/**
 * An error as the first event of a stream: of the request, it goes out as it came; any other is another channel's chance,
 * and goes out as it came where there is none.
 */
import t from 'tap'
import type { ChatProtocol } from '../../../schemas/config/catalog.ts'
import { UsageOptionRefusals } from '../../../src/core/routing/usage-option-refusals.ts'
import { clientCall, DONE, event, RunningCall } from './forward-support.ts'

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
  t.test(`${protocol}: of the request, it goes out as it came, and no other channel is tried`, async (t) => {
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
  })

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

t.test('an error about the option that the gateway added is no error of the client', async (t) => {
  const usageOptionRefusals = new UsageOptionRefusals(() => {})
  const call = started('chat-completions', { usageOptionRefusals })
  const refused = { message: 'No such field.', code: 'unsupported_parameter', param: 'stream_options' }
  call.attempt.stream(event({ error: refused }))
  t.equal(call.attempts.length, 2)
  t.notMatch(call.attempt.request.body.toString(), /stream_options/)
})
