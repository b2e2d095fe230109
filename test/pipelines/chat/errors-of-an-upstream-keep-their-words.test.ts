/** What of an upstream's error body reaches the client: its text, in JSON or plain, and its parameter and details. */
import t from 'tap'
import { masked, refusedByUpstream, UpstreamRefusal } from '../../../pipelines/calls/upstream-error.ts'
import { mask } from '../../../src/core/call-log/redact.ts'

const SECRET = 'key-of-the-channel-1'
const hidden = (text: string) => mask(text, ['line-7', 'gpt-upstream'], [SECRET])

function shown(status: number, body: string | Buffer): UpstreamRefusal {
  const { error } = refusedByUpstream({}, status, Buffer.from(body), '5')
  const refusal = masked(error, hidden)
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
