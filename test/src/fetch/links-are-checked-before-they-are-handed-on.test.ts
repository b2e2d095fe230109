/** Links that an upstream is to fetch: which of them are handed on, and that every refusal reads the same. */
import t from 'tap'
import { callerLink } from '../../../schemas/media/fields.ts'
import { imageSource } from '../../../schemas/media/images.ts'
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
  ...['http://127.0.0.1/a', 'http://10.0.0.1/a'],
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

/** Each is a public address to one reader of URLs and a private one, or another host, to some other. */
const AMBIGUOUS = [
  'http://1.1.1.1\\@127.0.0.1/',
  'http://1.1.1.1\\\\@127.0.0.1/',
  'http:\\\\1.1.1.1/',
  'http://1.1.1.1/a\\b',
  'http://1.1.1.1\t@127.0.0.1/',
  'http://1.1.1.1\n.example.com/',
  'http://1.1.1.1/\x00',
  'http://1.1.1.1/\x7f',
  'http://1.1.1.1/\x85',
  '\x01http://1.1.1.1/',
  'http:/1.1.1.1/',
  'http:1.1.1.1/',
  'http:///1.1.1.1/',
  'http://010.8.8.8/',
  'http://0x8.8.8.8/',
  'http://134744072/',
  'http://8.8.2056/',
  'http://１.1.1.1/',
  'http://1。1。1。1/',
  'http://%31.1.1.1/',
  'http://files%2eexample.com/',
  'http://127.1/a',
  'http://2130706433/a',
  'http://0x7f.1/a',
]
const WITH_CREDENTIALS = [
  'http://1.1.1.1@127.0.0.1/',
  'http://1.1.1.1:80@127.0.0.1/',
  'http://@127.0.0.1/',
  'http://1.1.1.1#@127.0.0.1/',
  'http://1.1.1.1?@127.0.0.1/',
  'http://1.1.1.1%00@127.0.0.1/',
]

t.test('a link in which two readers find two hosts is refused, in chat and in media', async (t) => {
  for (const url of AMBIGUOUS) {
    await t.rejects(checkPublicLink(url, resolve), { message: /host that reads in two ways/ }, url)
    t.notOk(callerLink.safeParse(url).success, url)
  }
  for (const url of WITH_CREDENTIALS) {
    await t.rejects(checkPublicLink(url, resolve), { message: /credentials|two ways/ }, url)
    t.notOk(callerLink.safeParse(url).success, url)
  }
})

t.test('a link is forwarded as every reader writes it', async (t) => {
  for (const [given, forwarded] of [
    ['HTTP://Files.Example.COM', 'http://files.example.com/'],
    ['http://8.8.8.8:80/a/../b?c=d@e#f', 'http://8.8.8.8/b?c=d@e#f'],
    ['https://bücher.example/ä', 'https://xn--bcher-kva.example/%C3%A4'],
    ['http://[2606:4700::1111]/a@b', 'http://[2606:4700::1111]/a@b'],
    [
      'https://files.example.com/a?X-Amz-Signature=0a%2Fb&x=%20',
      'https://files.example.com/a?X-Amz-Signature=0a%2Fb&x=%20',
    ],
  ] as const) {
    t.equal(callerLink.parse(given), forwarded)
    t.equal(imageSource.parse(given), forwarded)
    await t.resolves(
      checkPublicLink(given, async () => [{ address: '93.184.216.34' }]),
      given,
    )
  }
})
