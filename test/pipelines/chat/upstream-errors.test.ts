/** Errors of upstreams as the client sees them: their words, and what is masked. */
import t from 'tap'
import { makeErrorReply } from '../../../pipelines/calls/errors.ts'
import {
  ACCESS_REFUSED,
  chooseRefusedStatus,
  maskError,
  readUpstreamRefusal,
  UpstreamRefusal,
} from '../../../pipelines/calls/upstream-error.ts'
import { CHAT_PROTOCOLS, type ChatProtocol } from '../../../schemas/config/catalog.ts'
import { mask } from '../../../src/core/call-log/redact.ts'
import { REFUSED_KEY_REST_MS } from '../../../src/core/routing/key-pools.ts'
import { UsageOptionRefusals } from '../../../src/core/routing/usage-option-refusals.ts'
import { clientCall, DONE, event, FINISH, RunningCall, usageChunk, word } from './forward-support.ts'

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
