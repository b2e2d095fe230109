/** What an upstream says of the operator's key or account, whatever its status: passed on, or hidden where a channel does. */
import t from 'tap'
import {
  ACCESS_REFUSED,
  refusedByUpstream,
  refusedCallStatus,
} from '../../../pipelines/calls/upstream-error.ts'
import { REFUSED_KEY_REST_MS } from '../../../src/core/routing/key-pools.ts'

const HIDING = { hide_auth_errors: true }
const refused = (status: number, message: string) =>
  refusedByUpstream(HIDING, status, bodyOf({ message }), null)

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
      const failure = refusedByUpstream(channel, status, bodyOf(error), '7')
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
    t.equal(refusedCallStatus(status, message), expected, `${status} ${message}`)
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

t.test('an account without credit, with 429: no time helps this key, and another channel may', async (t) => {
  const message = 'You exceeded your current quota, please check your plan and billing details.'
  for (const names of [
    { type: 'insufficient_quota', code: 'insufficient_quota' },
    { type: 'insufficient_quota', code: null },
    { type: 'exceeded_current_quota_error' },
    { code: '1113' },
  ]) {
    const failure = refusedByUpstream(
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
  for (const names of [{ type: 'requests', code: 'rate_limit_exceeded' }, { status: 'RESOURCE_EXHAUSTED' }]) {
    const failure = refusedByUpstream(
      HIDING,
      429,
      Buffer.from(JSON.stringify({ error: { message, ...names } })),
      '2',
    )
    t.match(failure, { code: 'rate_limit_exceeded', message, keyRestMs: 2000, error: { status: 429 } })
  }
})
