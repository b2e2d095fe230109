/** One failure, named in the shape of the endpoint called. See docs/errors.md, "Catalogue". */
import t from 'tap'
import { FAILURES, Failure, type FailureCode, upstreamStatusName } from '../../../../schemas/failure.ts'
import { errorBody, errorShapeOf, upstreamErrorBody } from '../../../../src/protocols/error-shape.ts'

t.test('the shape follows the path', async (t) => {
  t.equal(errorShapeOf('/v1/chat/completions'), 'chat-completions')
  t.equal(errorShapeOf('/v1/responses'), 'chat-completions')
  t.equal(errorShapeOf('/v1/messages'), 'messages')
  t.equal(errorShapeOf('/v1/messages/count_tokens'), 'messages')
  t.equal(errorShapeOf('/v1/messagesx'), 'chat-completions')
  t.equal(errorShapeOf('/v1beta/models/m:generateContent'), 'generate-content')
  t.equal(errorShapeOf('/v1/images/generations'), 'chat-completions')
  t.equal(errorShapeOf('/anything/else'), 'chat-completions')
})

t.test('every failure of the catalogue has a body in each shape', async (t) => {
  for (const code of Object.keys(FAILURES) as FailureCode[]) {
    const message = `What "happened"\n${code}`
    const failure = new Failure(code, message, { internal: 'upstream-7.internal' })
    const { status, type, messagesType, generateStatus } = FAILURES[code]
    t.strictSame(JSON.parse(errorBody('chat-completions', failure)), { error: { message, type, code } })
    t.strictSame(JSON.parse(errorBody('messages', failure)), {
      type: 'error',
      error: { type: messagesType, message },
    })
    t.strictSame(JSON.parse(errorBody('generate-content', failure)), {
      error: { code: status, message, status: generateStatus },
    })
  }
})

t.test('details are in the shape of messages alone', async (t) => {
  const details = { error_code: 'thread_unsupported_request' }
  const failure = new Failure('invalid_request', 'm', { details })
  t.strictSame(JSON.parse(errorBody('messages', failure)).error, {
    ...{ type: 'invalid_request_error', message: 'm', details },
  })
  for (const shape of ['chat-completions', 'generate-content'] as const)
    t.notMatch(errorBody(shape, failure), /thread_/)
})

t.test('an endpoint may have a status of its own for a failure; its names stay', async (t) => {
  const failure = new Failure('model_not_found', 'm', { status: 404 })
  t.equal(failure.status, 404)
  t.equal(new Failure('model_not_found', 'm').status, 400)
  t.match(JSON.parse(errorBody('chat-completions', failure)), { error: { code: 'model_not_found' } })
  t.match(JSON.parse(errorBody('generate-content', failure)), { error: { code: 404, status: 'NOT_FOUND' } })
})

t.test('statuses, codes and names are those of the catalogue', async (t) => {
  const rows: ReadonlyArray<readonly [number, FailureCode, string, string, string]> = [
    [400, 'model_not_found', 'invalid_request_error', 'not_found_error', 'NOT_FOUND'],
    [400, 'model_not_allowed', 'invalid_request_error', 'invalid_request_error', 'INVALID_ARGUMENT'],
    [400, 'invalid_request', 'invalid_request_error', 'invalid_request_error', 'INVALID_ARGUMENT'],
    [401, 'invalid_api_key', 'authentication_error', 'authentication_error', 'UNAUTHENTICATED'],
    [402, 'quota_exceeded', 'insufficient_quota', 'billing_error', 'RESOURCE_EXHAUSTED'],
    [403, 'permission_denied', 'permission_error', 'permission_error', 'PERMISSION_DENIED'],
    [429, 'rate_limit_exceeded', 'rate_limit_error', 'rate_limit_error', 'RESOURCE_EXHAUSTED'],
    [500, 'internal_error', 'server_error', 'api_error', 'INTERNAL'],
    [502, 'upstream_unreachable', 'api_error', 'api_error', 'UNAVAILABLE'],
    [503, 'no_channel_available', 'server_error', 'overloaded_error', 'UNAVAILABLE'],
    [504, 'upstream_timeout', 'api_error', 'api_error', 'DEADLINE_EXCEEDED'],
  ]
  for (const [status, code, type, messagesType, generateStatus] of rows)
    t.strictSame(FAILURES[code], { status, type, messagesType, generateStatus }, code)
})

t.test("an upstream's own refusal keeps its status, named as the page has it", async (t) => {
  const names: ReadonlyArray<readonly [number, string, string]> = [
    [400, 'invalid_request', 'invalid_request_error'],
    [422, 'invalid_request', 'invalid_request_error'],
    [401, 'invalid_api_key', 'authentication_error'],
    [403, 'permission_denied', 'permission_error'],
    [404, 'not_found', 'invalid_request_error'],
    [429, 'rate_limit_exceeded', 'rate_limit_error'],
    [418, 'upstream_error', 'api_error'],
    [500, 'upstream_error', 'api_error'],
    [402, 'upstream_error', 'api_error'],
    [504, 'upstream_error', 'api_error'],
    [529, 'upstream_error', 'api_error'],
  ]
  /** In the shape of messages, and the status of generate-content. */
  const listed: Readonly<Record<number, readonly [string, string]>> = {
    403: ['permission_error', 'PERMISSION_DENIED'],
    429: ['rate_limit_error', 'RESOURCE_EXHAUSTED'],
    504: ['api_error', 'DEADLINE_EXCEEDED'],
  }
  for (const [status, code, type] of names) {
    t.strictSame(upstreamStatusName(status), { code, type })
    const refusal = { status, message: 'm', code, type }
    const [messagesType, generateStatus] = listed[status] ?? ['api_error', 'UNAVAILABLE']
    t.strictSame(JSON.parse(upstreamErrorBody('chat-completions', refusal)), {
      error: { message: 'm', type, code },
    })
    t.strictSame(JSON.parse(upstreamErrorBody('messages', refusal)), {
      type: 'error',
      error: { type: messagesType, message: 'm' },
    })
    t.strictSame(JSON.parse(upstreamErrorBody('generate-content', refusal)), {
      error: { code: status, message: 'm', status: generateStatus },
    })
    const extras = { param: 'tools[0]', details: [{ retryDelay: '7s' }] }
    for (const shape of ['chat-completions', 'messages', 'generate-content'] as const)
      t.match(JSON.parse(upstreamErrorBody(shape, { ...refusal, extras })), { error: extras }, shape)
  }
})
