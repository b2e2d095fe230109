import fc from 'fast-check'
import t from 'tap'
import { REDACTED_MAX_CHARS, redact } from '../../../src/core/call-log/redact.ts'
import { ANY_CHARACTER } from '../../support/any-character.ts'

const cases: ReadonlyArray<readonly [what: string, text: string, expected: string]> = [
  ['URL', 'see https://api.example.com/v1/chat?key=abc now', 'see [url] now'],
  ['URL escaped for JSON', '{"url":"https:\\/\\/host.example\\/x"}', '{"url":"[url]"}'],
  ['URL with a password', 'postgres://u:p@db:5432/x', '[url]'],
  ['data URI', 'bad image data:image/png;base64,iVBORw0KGgo= here', 'bad image [url] here'],
  ['vendor key', 'Incorrect API key provided: sk-proj-abc***xyz.', 'Incorrect API key provided: [secret]'],
  ['bearer token', 'Authorization: Bearer abcdef123', 'Authorization: Bearer [secret]'],
  [
    'named key in JSON',
    '{"api_key":"zz1","x-goog-api-key": "q"}',
    '{"api_key":"[secret]","x-goog-api-key": "[secret]"}',
  ],
  ['key in a query', 'GET /v1?key=1&api_key=hunter2', 'GET /v1?key=1&api_key=[secret]'],
  ['named key before words', 'password: hunter2 is wrong', 'password: [secret] is wrong'],
  ['named key of letters', 'token: AbCdEf is wrong', 'token: [secret] is wrong'],
  ['named key alone', 'token: swordfish', 'token: [secret]'],
  ['named key in quotes', "secret: 'open sesame now'", "secret: '[secret] sesame now'"],
  ['cloud key', 'key AKIAIOSFODNN7EXAMPLE refused', 'key [secret] refused'],
  ['signed token', 'got eyJhbGciOi.eyJzdWIiOiIx.c2lnbmF0dXJl!', 'got [secret]!'],
  [
    'organization',
    'Rate limit reached for org-AbC123def on tokens',
    'Rate limit reached for [secret] on tokens',
  ],
  ['IPv4', 'connect ECONNREFUSED 10.1.2.3:4000', 'connect ECONNREFUSED [address]'],
  ['IPv6', 'connect ETIMEDOUT 2001:db8::1:443', 'connect ETIMEDOUT [address]'],
  ['IPv6 loopback', 'bound to ::1 only', 'bound to [address] only'],
  ['host', 'pool-7.prod.internal:8080/v1 is busy', '[address] is busy'],
  ['bare host', 'getaddrinfo ENOTFOUND upstream-a', 'getaddrinfo ENOTFOUND [address]'],
  ['mail', 'write to ops@corp.example.', 'write to [address].'],
  ['hex', `digest ${'0af1'.repeat(8)} differs`, 'digest [secret] differs'],
  ['base64', 'blob AbCdEfGhIjKlMnOpQrStUvWxYz0123456789AB== differs', 'blob [secret] differs'],
  ['UUID', 'trace 123e4567-e89b-12d3-a456-426614174000', 'trace [secret]'],
  ['private key', 'x -----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY----- y', 'x [secret] y'],
  ['control characters', 'one\r\ntwo\u001b[31m\u202ethree', 'one two [31m three'],
]

for (const [what, text, expected] of cases) {
  t.test(`masks: ${what}`, (t) => {
    t.equal(redact(text), expected)
    t.end()
  })
}

t.test('leaves what helps the caller', (t) => {
  for (const text of [
    'The value of messages.0.content must be a string',
    'max_tokens: 5000 is more than 4096',
    'model gpt-4o-mini-2024-07-18 is overloaded at 12:34:56, retry after 2026-01-31T12:00:00Z',
    'API key is invalid.',
    'fallback_credit_token: Extra inputs are not permitted',
    'messages.1.content.0.thinking.signature: Field required',
    'messages.1.content.0: signature: Invalid `signature` in `thinking` block',
    'api_key: String should have at most 5 characters',
    'token: Required',
    'Invalid bearer token.',
    'Basic authentication is not supported',
    'Unexpected token < in JSON at position 0',
    'request req_01J8Z3N4V9QKX2T5W7Y0ABCDEF failed',
  ]) {
    t.equal(redact(text), text)
  }
  t.end()
})

t.test('masks the names of upstreams as whole words, longest first', (t) => {
  const names = ['line', 'line-a', '', 'a+b']
  t.equal(
    redact('Line-A failed, line failed, online works, a+b too', names),
    '[upstream] failed, [upstream] failed, online works, [upstream] too',
  )
  t.end()
})

t.test('masks known secrets wherever they stand and whatever they look like', (t) => {
  const secrets = ['upstream-key-4c1d', 'upstream-key-4c1d-2', '', 'x']
  t.equal(
    redact(
      'no user has upstream-key-4c1d, nor "upstream-key-4c1d-2"; xupstream-key-4c1dx is none',
      [],
      secrets,
    ),
    'no user has [secret], nor "[secret]"; x[secret]x is none',
  )
  t.equal(redact('key upstream-key-4c1d', ['upstream'], secrets), 'key [secret]', 'before names part them')
  t.end()
})

t.test('bounds the length without half a character', (t) => {
  t.equal(redact('x '.repeat(2000)).length, REDACTED_MAX_CHARS)
  const smiles = redact(`a${'😀'.repeat(600)}`)
  t.ok(smiles.isWellFormed())
  t.ok(smiles.length <= REDACTED_MAX_CHARS)
  t.end()
})

t.test('a secret cut by the reading bound does not show', (t) => {
  const text = `${'https://a.example/'.padEnd(4000, 'x')} ${'y '.repeat(40)}sk-${'Zq7'.repeat(200)}`
  t.notMatch(redact(text), /Zq7/)
  t.end()
})

t.test('any text comes out well-formed, bounded and on one line, and no key behind a space shows', (t) => {
  fc.assert(
    fc.property(fc.string({ unit: ANY_CHARACTER, maxLength: 1000 }), (text) => {
      const masked = redact(text)
      return masked.length <= REDACTED_MAX_CHARS && masked.isWellFormed() && !/[\r\n]/.test(masked)
    }),
  )
  const secret = fc.stringMatching(/^sk-[A-Za-z0-9]{20,60}$/)
  fc.assert(
    fc.property(fc.string({ maxLength: 50 }), secret, fc.string({ maxLength: 50 }), (before, key, after) => {
      return !redact(`${before} ${key} ${after}`).includes(key)
    }),
  )
  t.end()
})
