/** Which addresses a network holds: IPv4, IPv6 and mapped ones, at the edges of prefixes. */
import t from 'tap'
import { AddressList, plainNetwork } from '../../../src/core/keys/address-list.ts'
import { plainAddress } from '../../../src/core/keys/address-prefix.ts'
import { TrustedProxies } from '../../../src/http/trusted-proxies.ts'

t.test('an address has one form', async (t) => {
  const forms: ReadonlyArray<readonly [written: string, plain: string]> = [
    ['203.0.113.7', '203.0.113.7'],
    ['::ffff:203.0.113.7', '203.0.113.7'],
    ['::FFFF:cb00:7107', '203.0.113.7'],
    ['0:0:0:0:0:ffff:203.0.113.7', '203.0.113.7'],
    ['0000:0000:0000:0000:0000:ffff:cb00:7107', '203.0.113.7'],
    ['2001:DB8::1', '2001:db8:0:0:0:0:0:1'],
    ['2001:db8:0:0:0:0:0:1', '2001:db8:0:0:0:0:0:1'],
    ['::', '0:0:0:0:0:0:0:0'],
    ['::1', '0:0:0:0:0:0:0:1'],
    ['1:2:3:4:5:6:7::', '1:2:3:4:5:6:7:0'],
    ['64:ff9b::192.0.2.33', '64:ff9b:0:0:0:0:c000:221'],
  ]
  for (const [written, plain] of forms) t.equal(plainAddress(written), plain, written)
  for (const text of [
    ...['', 'unknown', '203.0.113', '203.0.113.256', '999.1.1.1', '010.0.0.1', '1.2.3.4.5', '0x7f.1'],
    ...[
      '1::2::3',
      '1:2:3:4:5:6:7:8:9',
      'fe80::1%eth0',
      '2001:db8::12345',
      '203.0.113.7/32',
      '_hidden',
      '[::1]',
    ],
  ])
    t.equal(plainAddress(text), '', text)
})

t.test('a network has one form, and a text that is none is refused with what it could be', async (t) => {
  const forms: ReadonlyArray<readonly [written: string, plain: string]> = [
    ['203.0.113.7', '203.0.113.7'],
    [' 203.0.113.7/32 ', '203.0.113.7'],
    ['10.0.0.0/8', '10.0.0.0/8'],
    ['0.0.0.0/0', '0.0.0.0/0'],
    ['::ffff:10.0.0.0/104', '10.0.0.0/8'],
    ['::ffff:10.0.0.1/128', '10.0.0.1'],
    ['::ffff:10.0.0.1', '10.0.0.1'],
    ['2001:DB8:0::/32', '2001:db8::/32'],
    ['2001:db8::1/128', '2001:db8::1'],
    ['::/0', '::/0'],
    ['0:0:0:0:0:0:0:1', '::1'],
    ['2001:0:0:1:0:0:0:1', '2001:0:0:1::1'],
    ['2001:db8:0:1:1:1:1:1', '2001:db8:0:1:1:1:1:1'],
    ['1:2:3:4:5:6:0:0', '1:2:3:4:5:6::'],
  ]
  for (const [written, plain] of forms) t.equal(plainNetwork(written), plain, written)
  for (const text of [
    ...[
      '',
      'example.com',
      '10.0.0.0/33',
      '10.0.0.0/-1',
      '10.0.0.0/08',
      '10.0.0.0/8/8',
      '10.0.0.0/',
      '10.0.0/8',
    ],
    ...['2001:db8::/129', '::ffff:10.0.0.0/95', '10.0.0.0/8.0', '*', '10.0.0.0-10.0.0.9'],
  ])
    t.throws(
      () => plainNetwork(text),
      { name: 'RangeError', message: /neither an address nor a network/ },
      text,
    )
  t.throws(() => plainNetwork('10.1.2.3/8'), { message: /write 10\.0\.0\.0\/8 for the whole network/ })
  t.throws(() => plainNetwork('2001:db8::1/64'), { message: /write 2001:db8::\/64 for/ })
  t.throws(() => plainNetwork('192.168.1.128/24'), { message: /write 192\.168\.1\.0\/24 for/ })
})

t.test('a network holds its first and its last address, and none outside', async (t) => {
  const table: ReadonlyArray<readonly [network: string, inside: string[], outside: string[]]> = [
    ['203.0.113.7', ['203.0.113.7', '::ffff:203.0.113.7'], ['203.0.113.6', '203.0.113.8', '::203.0.113.7']],
    ['10.0.0.0/8', ['10.0.0.0', '10.255.255.255', '::ffff:a00:1'], ['9.255.255.255', '11.0.0.0', '::a00:1']],
    ['172.16.0.0/12', ['172.16.0.0', '172.31.255.255'], ['172.15.255.255', '172.32.0.0']],
    ['198.51.100.64/31', ['198.51.100.64', '198.51.100.65'], ['198.51.100.63', '198.51.100.66']],
    ['0.0.0.0/0', ['0.0.0.0', '255.255.255.255', '::ffff:1.2.3.4'], ['::', '2001:db8::1']],
    ['::/0', ['::', 'ffff:ffff::ffff', '2001:db8::1'], ['1.2.3.4', '::ffff:1.2.3.4']],
    ['2001:db8::/33', ['2001:db8::', '2001:db8:7fff:ffff::'], ['2001:db8:8000::', '2001:db7:ffff::']],
    ['2001:db8::42', ['2001:db8:0:0::42', '2001:DB8::42'], ['2001:db8::43', '2001:db8::142']],
    ['::ffff:192.0.2.0/120', ['192.0.2.255', '::ffff:192.0.2.1'], ['192.0.3.0']],
  ]
  for (const [network, inside, outside] of table) {
    const list = new AddressList([network])
    for (const address of inside) t.ok(list.has(address), `${network} has ${address}`)
    for (const address of [...outside, '', 'unknown', '999.1.1.1'])
      t.notOk(list.has(address), `${network} has not "${address}"`)
  }
  const both = new AddressList(['192.0.2.1', '2001:db8::/32'])
  t.same(
    ['192.0.2.1', '2001:db8::9', '192.0.2.2'].map((address) => both.has(address)),
    [true, true, false],
  )
  t.notOk(new AddressList([]).has('192.0.2.1'))
})

t.test('behind proxies the client is the last hop that no trusted one has', async (t) => {
  const proxies = new TrustedProxies(['10.0.0.0/8', '2001:db8:f::/48', '::ffff:192.0.2.9'])
  const table: ReadonlyArray<readonly [why: string, peer: string, forwarded: string, client: string]> = [
    ['no proxy', '203.0.113.7', '', '203.0.113.7'],
    ['a client that claims to be another', '203.0.113.7', '198.51.100.1', '203.0.113.7'],
    ['one proxy', '10.0.0.1', '203.0.113.7', '203.0.113.7'],
    ['a mapped proxy', '::ffff:10.0.0.1', '203.0.113.7', '203.0.113.7'],
    ['a proxy that the configuration names mapped', '192.0.2.9', '203.0.113.7', '203.0.113.7'],
    ['a forged first hop', '10.0.0.1', '198.51.100.1, 203.0.113.7', '203.0.113.7'],
    ['two proxies', '10.0.0.1', '203.0.113.7, 10.0.0.2', '203.0.113.7'],
    ['two proxies, and a forged hop', '10.0.0.1', '10.9.9.9, 203.0.113.7, 10.0.0.2', '203.0.113.7'],
    ['a client in the network of the proxies', '10.0.0.1', '10.0.0.77', '10.0.0.77'],
    ['hops that are no address end the chain', '10.0.0.1', '198.51.100.1, unknown, 10.0.0.2', '10.0.0.2'],
    ['also an impossible address', '10.0.0.1', '999.1.1.1, 10.0.0.2', '10.0.0.2'],
    ['nothing before the comma', '10.0.0.1', ', 203.0.113.7', '203.0.113.7'],
    ['nothing behind the comma', '10.0.0.1', '203.0.113.7,', '10.0.0.1'],
    ['with a port', '10.0.0.1', '203.0.113.7:4711', '203.0.113.7'],
    ['IPv6 in brackets with a port', '2001:db8:f::1', '[2001:db8::5]:443', '2001:db8::5'],
    ['IPv6', '2001:db8:f::1', '2001:db8::5', '2001:db8::5'],
    ['a proxy without the header', '10.0.0.1', '', '10.0.0.1'],
  ]
  for (const [why, peer, forwarded, client] of table) t.equal(proxies.clientOf(peer, forwarded), client, why)
  t.equal(
    new TrustedProxies([]).clientOf('10.0.0.1', '203.0.113.7'),
    '10.0.0.1',
    'none is trusted by default',
  )
})
