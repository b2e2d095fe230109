/** Links that an upstream is to fetch: which of them are handed on, and that every refusal reads the same. */
import t from 'tap'
import { checkPublicLink, type Resolve } from '../../../src/fetch/public-link.ts'
import { receiverChecker } from '../../../src/fetch/receiver.ts'

const NAMES: Readonly<Record<string, readonly string[]>> = {
  'files.example.com': ['93.184.216.34'],
  'two.example.com': ['93.184.216.34', '10.0.0.7'],
  'inner.example.com': ['192.168.1.1'],
  'six.example.com': ['fd00::1'],
}
const resolve: Resolve = async (host) => {
  const addresses = NAMES[host]
  if (addresses === undefined) throw new Error(`ENOTFOUND ${host}`)
  return addresses.map((address) => ({ address }))
}

const REFUSED = [
  ...['http://127.0.0.1/a', 'http://127.1/a', 'http://2130706433/a', 'http://0x7f.1/a', 'http://10.0.0.1/a'],
  ...['http://169.254.169.254/latest/meta-data', 'http://[::1]/a', 'http://[::ffff:10.0.0.1]/a'],
  ...[
    'http://localhost:9200/',
    'http://LOCALHOST./',
    'http://a.localhost/',
    'http://printer/',
    'http://nas.local/',
  ],
  ...['http://metadata.google.internal/', 'http://two.example.com/', 'http://inner.example.com/'],
  ...['http://six.example.com/'],
]

t.test('what is not public is refused, always in the same words', async (t) => {
  for (const url of REFUSED) {
    const error = await checkPublicLink(url, resolve).then(
      () => null,
      (error: Error) => error,
    )
    t.match(error, { code: 'invalid_request' }, url)
    t.match(
      error?.message,
      /^The file at \S+ cannot be fetched: its server cannot be reached at a public address\.$/,
    )
  }
})

t.test('the refusal of a receiver speaks of webhooks', async (t) => {
  const [check, checkPrivate] = [receiverChecker(() => false), receiverChecker(() => true)]
  const private_ = 'http://10.0.0.1/hooks?token=1'
  await t.rejects(check(private_), {
    code: 'invalid_request',
    message:
      'No webhook can be sent to http://10.0.0.1/hooks: its server cannot be reached at a public address.',
  })
  await t.resolves(checkPrivate(private_))
  const withPassword = 'https://u:secret@example.com/hooks'
  for (const one of [check, checkPrivate])
    await t.rejects(one(withPassword), {
      message: 'No webhook can be sent to https://example.com: a URL with credentials is not accepted.',
    })
})

t.test('what is public, or known to the upstream alone, is handed on', async (t) => {
  for (const url of ['https://files.example.com/a.png', 'http://8.8.8.8/a', 'https://unknown.example.com/a'])
    await t.resolves(checkPublicLink(url, resolve), url)
})

t.test('scheme and credentials are checked as for what is fetched here', async (t) => {
  for (const url of ['ftp://files.example.com/a', 'file:///etc/passwd', 'https://u:p@files.example.com/a'])
    await t.rejects(checkPublicLink(url, resolve), { code: 'invalid_request' }, url)
})
