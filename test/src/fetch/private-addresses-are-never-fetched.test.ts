import t from 'tap'
import { checkedUrl, guardedFetch, MAX_REDIRECTS } from '../../../src/fetch/guarded-fetch.ts'
import { isPublicAddress } from '../../../src/fetch/public-address.ts'
import { serveHttp } from '../../support/http-server.ts'

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
    t.throws(() => checkedUrl(url), { code: 'invalid_request' }, url.slice(0, 40))
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
  const told = { message: `The file at ${url}/a.png cannot be fetched: its server answered with status 403.` }
  await t.rejects(guardedFetch(`${url}/a.png?X-Amz-Signature=secret#part`, here), told)
  t.throws(() => checkedUrl('gopher://h/a?token=secret'), { message: /at gopher:\/\/h\/a cannot/ })
  t.throws(() => checkedUrl(`http://h/a?${'token=secret&'.repeat(200)}`), {
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
