/** What an upstream says of the operator's key or account is for operators, whatever its status. */
import t from 'tap'
import { ACCESS_REFUSED, refusedByUpstream } from '../../../pipelines/chat/forward/upstream-error.ts'
import { REFUSED_KEY_REST_MS } from '../../../src/core/routing/key-pools.ts'

const refused = (status: number, message: string) =>
  refusedByUpstream(status, Buffer.from(JSON.stringify({ error: { message } })), null)

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
    const failure = refusedByUpstream(429, Buffer.from(JSON.stringify({ error: { message, ...names } })), '2')
    t.match(failure, {
      code: 'upstream_error',
      message: ACCESS_REFUSED,
      isRetryable: true,
      isChannelFault: true,
    })
    t.match(failure, { keyRestMs: REFUSED_KEY_REST_MS, error: { status: 502 } }, JSON.stringify(names))
  }
  for (const names of [{ type: 'requests', code: 'rate_limit_exceeded' }, { status: 'RESOURCE_EXHAUSTED' }]) {
    const failure = refusedByUpstream(429, Buffer.from(JSON.stringify({ error: { message, ...names } })), '2')
    t.match(failure, { code: 'rate_limit_exceeded', message, keyRestMs: 2000, error: { status: 429 } })
  }
})
