/** Downloads of links that clients name. */
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import t from 'tap'
import { callerLink } from '../../schemas/media/fields.ts'
import { imageSource } from '../../schemas/media/images.ts'
import { checkUrl, guardedFetch, MAX_REDIRECTS } from '../../src/fetch/guarded-fetch.ts'
import { isPublicAddress } from '../../src/fetch/public-address.ts'
import { checkPublicLink, type Resolve } from '../../src/fetch/public-link.ts'
import { receiverChecker } from '../../src/fetch/receiver.ts'
import { serveHttp } from '../support/http-server.ts'

t.test('private addresses are never fetched', async (t) => {
  const here = { isAllowed: (address: string) => address === '127.0.0.1' }

  t.test('addresses that are not public, in every way they can be written', async (t) => {
    const refused = [
      '127.0.0.1',
      '127.255.0.3',
      '0.0.0.0',
      '10.1.2.3',
      '172.16.0.1',
      '172.31.255.255',
      '192.168.1.1',
      '169.254.169.254',
      '100.64.0.1',
      '198.18.0.1',
      '224.0.0.1',
      '255.255.255.255',
      '::1',
      '::',
      'fe80::1',
      'fe80::1%eth0',
      'fc00::1',
      'fd12::1',
      'ff02::1',
      '::ffff:127.0.0.1',
      '::ffff:7f00:1',
      '::ffff:10.0.0.1',
      '64:ff9b::7f00:1',
      '2002:7f00:1::',
      '::127.0.0.1',
      // Zero stands for this very host, in whatever an IPv4 address is wrapped.
      '64:ff9b::0.0.0.0',
      '64:ff9b::1',
      '2002::',
      '2002:0:1::',
      // The translators' own form, and what is for examples, for segment routing or nobody's.
      '::ffff:0:127.0.0.1',
      '3fff::1',
      '5f00::1',
      '4000::1',
      'not an address',
    ]
    for (const address of refused) t.notOk(isPublicAddress(address), address)
    for (const address of [
      '8.8.8.8',
      '172.32.0.1',
      '100.128.0.1',
      '2606:4700::1111',
      '::ffff:8.8.8.8',
      '64:ff9b::808:808',
    ])
      t.ok(isPublicAddress(address), address)
  })

  t.test('a URL is http or https, without credentials, of bounded length', async (t) => {
    for (const url of [
      'ftp://a/b',
      'file:///etc/passwd',
      'http://u:p@host/',
      'nonsense',
      `http://h/${'x'.repeat(2048)}`,
    ])
      t.throws(() => checkUrl(url), { code: 'invalid_request' }, url.slice(0, 40))
  })

  t.test('loopback by address, by odd spelling and by name is refused, and nothing is called', async (t) => {
    let calls = 0
    const url = await serveHttp(t, (_, response) => {
      calls++
      response.end('secret')
    })
    const { port } = new URL(url)
    for (const host of [
      '127.0.0.1',
      '127.1',
      '0x7f000001',
      '2130706433',
      'localhost',
      '[::1]',
      '[::ffff:127.0.0.1]',
    ])
      await t.rejects(
        guardedFetch(`http://${host}:${port}/`),
        { code: 'invalid_request', message: /public address|reads in two ways/ },
        host,
      )
    t.equal(calls, 0)
  })

  t.test('a redirect is checked again, and there are at most three', async (t) => {
    const inner = await serveHttp(t, (_, response) => void response.end('secret'))
    const innerPort = new URL(inner).port
    const url = await serveHttp(t, (request, response) => {
      const hops = Number(request.url?.slice(1))
      const to = request.url === '/inner' ? `http://127.0.0.2:${innerPort}/` : `/${hops - 1}`
      if (hops === 0) response.setHeader('content-type', 'image/png; x=y').end('picture')
      else response.writeHead(302, { location: to }).end()
    })
    await t.rejects(guardedFetch(`${url}/inner`, here), { message: /public address/ })
    await t.rejects(guardedFetch(`${url}/${MAX_REDIRECTS + 1}`, here), { message: /more than 3 times/ })
    t.same(await guardedFetch(`${url}/${MAX_REDIRECTS}`, here), {
      bytes: Buffer.from('picture'),
      mediaType: 'image/png',
    })
  })

  t.test('size and time are capped, told or not', async (t) => {
    const url = await serveHttp(t, (request, response) => {
      if (request.url === '/told') response.setHeader('content-length', '1000').end(Buffer.alloc(1000))
      else if (request.url === '/untold')
        response.write(Buffer.alloc(600), () => response.end(Buffer.alloc(600)))
      else if (request.url === '/missing') response.writeHead(404).end('inner words')
    })
    for (const path of ['/told', '/untold'])
      await t.rejects(
        guardedFetch(url + path, { ...here, maxBytes: 999 }),
        { message: /larger than 999 bytes/ },
        path,
      )
    await t.rejects(guardedFetch(`${url}/silent`, { ...here, timeoutMs: 50 }), { message: /in time/ })
    await t.rejects(guardedFetch(`${url}/missing`, here), { message: /status 404/ })
  })

  t.test('the error for a file that cannot be fetched does not reveal it', async (t) => {
    const url = await serveHttp(t, (_, response) => response.writeHead(403).end())
    const told = {
      message: `The file at ${url}/a.png cannot be fetched: its server answered with status 403.`,
    }
    await t.rejects(guardedFetch(`${url}/a.png?X-Amz-Signature=secret#part`, here), told)
    t.throws(() => checkUrl('gopher://h/a?token=secret'), { message: /at gopher:\/\/h\/a cannot/ })
    t.throws(() => checkUrl(`http://h/a?${'token=secret&'.repeat(200)}`), {
      message: /at http:\/\/h\/a cannot/,
    })
  })

  t.test('headers go to the allowed host alone, not where it redirects to', async (t) => {
    const seen: string[] = []
    const other = await serveHttp(t, ({ headers }, response) => {
      seen.push(`other ${headers['x-key'] ?? 'none'}`)
      response.end('picture')
    })
    const own = await serveHttp(t, ({ url, headers }, response) => {
      seen.push(`own ${headers['x-key'] ?? 'none'}`)
      if (url === '/again') response.writeHead(302, { location: '/file' }).end()
      else if (url === '/away') response.writeHead(302, { location: other }).end()
      else response.end('picture')
    })
    const limits = { ...here, allowedHost: new URL(own).host, headers: [['x-key', 'secret']] as const }
    await guardedFetch(`${own}/again`, limits)
    await guardedFetch(`${own}/away`, limits)
    await guardedFetch(other, limits)
    t.same(seen, ['own secret', 'own secret', 'own secret', 'other none', 'other none'])
  })
})

t.test('links are checked before they are handed on', async (t) => {
  // Links that an upstream is to fetch: which of them are handed on, and that every refusal reads the same.
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
    for (const url of [
      'https://files.example.com/a.png',
      'http://8.8.8.8/a',
      'https://unknown.example.com/a',
    ])
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
})

t.test('compressed files are fetched plain', async (t) => {
  const here = { isAllowed: (address: string) => address === '127.0.0.1' }
  const PICTURE = Buffer.concat([Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'), Buffer.alloc(100_000, 1)])

  /** As an object store serves an object that was put with this coding, whatever a client accepts. */
  const ANSWERS: Readonly<Record<string, readonly [coding: string, bytes: Buffer]>> = {
    '/gzip': ['gzip', gzipSync(PICTURE)],
    '/old': ['X-GZIP', gzipSync(PICTURE)],
    '/deflate': ['deflate', deflateSync(PICTURE)],
    '/br': ['br', brotliCompressSync(PICTURE)],
    '/zstd': ['zstd', zstdCompressSync(PICTURE)],
    '/identity': ['identity', PICTURE],
    '/aws': ['aws-chunked', PICTURE],
    '/both': ['gzip,aws-chunked', gzipSync(PICTURE)],
    '/twice': ['gzip, gzip', gzipSync(gzipSync(PICTURE))],
    '/unknown': ['compress', PICTURE],
    '/cut': ['gzip', gzipSync(PICTURE).subarray(0, 60)],
    '/wrong': ['gzip', Buffer.alloc(1_000_000, 1)],
    '/wrong-br': ['br', Buffer.alloc(1_000_000, 1)],
    '/wrong-zstd': ['zstd', Buffer.alloc(1_000_000, 1)],
  }

  t.test('a file that is stored compressed is fetched as it was before', async (t) => {
    const url = await serveHttp(t, (request, response) => {
      const [coding, bytes] = ANSWERS[request.url ?? '']!
      response.writeHead(200, { 'content-type': 'image/png', 'content-encoding': coding }).end(bytes)
    })
    for (const path of [
      '/gzip',
      '/old',
      '/deflate',
      '/br',
      '/zstd',
      '/identity',
      '/aws',
      '/both',
      '/twice',
    ]) {
      const { bytes, mediaType } = await guardedFetch(url + path, here)
      t.ok(bytes.equals(PICTURE), path)
      t.equal(mediaType, 'image/png')
    }
    await t.rejects(guardedFetch(`${url}/unknown`, here), { message: /its coding "compress" is not known/ })
    for (const path of ['/cut', '/wrong', '/wrong-br', '/wrong-zstd']) {
      const message = `The file at ${url}${path} cannot be fetched: it is not valid ${ANSWERS[path]![0]}.`
      await t.rejects(guardedFetch(url + path, here), { message }, path)
    }
  })

  t.test('the limit is of the bytes that come out', async (t) => {
    const bomb = gzipSync(Buffer.alloc(10_000_000))
    const url = await serveHttp(t, (_, response) => {
      response.writeHead(200, { 'content-encoding': 'gzip' }).end(bomb)
    })
    t.ok(bomb.length < 20_000)
    await t.rejects(guardedFetch(url, { ...here, maxBytes: 20_000 }), { message: /larger than 20000 bytes/ })
  })
})
