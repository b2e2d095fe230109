/** Keys, identifiers, addresses, and the rules of people. */
import fc from 'fast-check'
import t from 'tap'
import { AddressList, normalizeNetwork } from '../../../src/core/keys/address-list.ts'
import { addressPrefix, clientNetwork, normalizeAddress } from '../../../src/core/keys/address-prefix.ts'
import {
  deriveCsrfToken,
  generateManagementToken,
  generateToken,
  hashToken,
  isManagementToken,
  shownTokenPrefix,
} from '../../../src/core/keys/bearer-token.ts'
import { newId, ulid } from '../../../src/core/keys/ids.ts'
import {
  answerSealId,
  deriveKeyMaterial,
  generateApiKey,
  generateMasterKey,
  mailSealId,
  SealError,
  shownPrefix,
  totpSealId,
  webhookSealId,
} from '../../../src/core/keys/material.ts'
import { operatorAccess, sameToken } from '../../../src/core/keys/operator-access.ts'
import {
  findBearerToken,
  findHeaderKey,
  findRequestKey,
  isWellFormedKey,
  withoutKey,
} from '../../../src/core/keys/presented.ts'
import { isEmail, normalizeEmail } from '../../../src/core/people/email.ts'
import { findPasswordProblem } from '../../../src/core/people/password-policy.ts'
import {
  generateRecoveryCodes,
  hashRecoveryCode,
  isRecoveryCode,
} from '../../../src/core/people/recovery-codes.ts'
import { TrustedProxies } from '../../../src/http/trusted-proxies.ts'

t.test('key material', async (t) => {
  const masterKey = Buffer.alloc(32, 7)
  const material = deriveKeyMaterial(masterKey)
  const KEY_ID = 'key_01J8Z3N4V9QKX2T5W7Y0ABCDEF'

  t.test('a key has its documented form and no two are alike', (t) => {
    const keys = Array.from({ length: 200 }, generateApiKey)
    t.equal(new Set(keys).size, keys.length)
    for (const key of keys) {
      t.ok(isWellFormedKey(key))
      t.equal(key.length, 'sk-tollgate-'.length + 64)
    }
    const key = keys[0]!
    for (const not of [
      '',
      key.toUpperCase(),
      key.slice(0, -1),
      `${key}0`,
      ` ${key}`,
      `${key}\n`,
      key.slice(3),
    ])
      t.notOk(isWellFormedKey(not), not)
    t.equal(shownPrefix(key), key.slice(0, 'sk-tollgate-'.length + 8))
    t.end()
  })

  t.test('a sealed key opens under its own id and master key only', (t) => {
    const raw = generateApiKey()
    const sealed = material.seal(raw, KEY_ID)
    t.equal(material.open(sealed, KEY_ID), raw)
    t.notOk(sealed.includes(raw.slice(12, 20)), 'the raw key is not in it')
    t.notSame(material.seal(raw, KEY_ID), sealed, 'no two seals are alike')
    t.throws(() => material.open(sealed, KEY_ID.replace(/F$/, 'G')), SealError)
    t.throws(() => deriveKeyMaterial(generateMasterKey()).open(sealed, KEY_ID), SealError)
    t.end()
  })

  t.test('a seal with any one byte changed, or cut short anywhere, does not open', (t) => {
    const sealed = material.seal(generateApiKey(), KEY_ID)
    for (let at = 0; at < sealed.length; at++) {
      const changed = Buffer.from(sealed)
      changed[at]! ^= 1
      t.throws(() => material.open(changed, KEY_ID), SealError)
      t.throws(() => material.open(sealed.subarray(0, at), KEY_ID), SealError)
    }
    t.end()
  })

  t.test('the lookup hash hangs on key and master key, and stays the same from version to version', (t) => {
    const raw = `sk-tollgate-${'0123456789abcdef'.repeat(4)}`
    t.equal(
      material.lookupHash(raw).toString('hex'),
      deriveKeyMaterial(Buffer.from(masterKey)).lookupHash(raw).toString('hex'),
    )
    t.equal(
      material.lookupHash(raw).toString('hex'),
      'd61499fc6c870e83dd036a2f8aac11e247e5e073662f7d8a5be86e16e4c2e4a5',
    )
    t.equal(
      material.open(
        Buffer.from(
          '011b423f72f453dc4a70326a852e6b6fe03b5988b6cf41b9175bd7aaa66d03480df5bc904c2b722f65acd4c8e9fb33acbfe9fc65c6adf61ba036a0a1b0666fbc30f09c908b73436625872ff316d2ee15ab4540f467ae3f490c1d2db261d6b08ad7d78afe07cb3440a5',
          'hex',
        ),
        KEY_ID,
      ),
      raw,
    )
    t.notSame(material.lookupHash(raw), material.lookupHash(raw.replace(/f$/, 'e')))
    t.notSame(material.lookupHash(raw), deriveKeyMaterial(generateMasterKey()).lookupHash(raw))
    t.notSame(material.checkValue, deriveKeyMaterial(generateMasterKey()).checkValue)
    t.end()
  })

  t.test('a later master key keeps the secrets of an earlier one, and another opens none', async (t) => {
    const { secrets } = material
    const later = deriveKeyMaterial(generateMasterKey())
    const sealed = later.sealSecrets(secrets)
    t.same(later.openSecrets(sealed), secrets)
    t.equal(new Set(Object.values(secrets).map((secret) => secret.toString('hex'))).size, 3)
    for (const secret of Object.values(secrets)) t.equal(secret.length, 32)
    const renewed = later.withSecrets(later.openSecrets(sealed))
    const raw = generateApiKey()
    t.same(renewed.lookupHash(raw), material.lookupHash(raw))
    t.same(renewed.checkValue, later.checkValue)
    t.equal(renewed.open(later.seal(raw, KEY_ID), KEY_ID), raw)
    t.throws(() => material.openSecrets(sealed), {
      name: 'SealError',
      message:
        'The stored form of the lasting secrets does not open: it was changed, or sealed with another TOLLGATE_MASTER_KEY',
    })
  })

  t.test('what is sealed for one purpose opens for no other', async (t) => {
    const purposes = [
      KEY_ID,
      totpSealId('a'),
      webhookSealId('a'),
      mailSealId('a'),
      answerSealId('a', 'b'),
      answerSealId('b', 'b'),
      answerSealId('a', 'c'),
      totpSealId('b'),
      webhookSealId('b'),
      mailSealId('b'),
    ]
    const seals = purposes.map((purpose) => material.seal('secret', purpose))
    for (const [at, seal] of seals.entries())
      for (const [by, purpose] of purposes.entries())
        if (at === by) t.equal(material.open(seal, purpose), 'secret')
        else t.throws(() => material.open(seal, purpose), SealError)
  })

  t.test('a seal of an empty text is the shortest there is', async (t) => {
    const sealed = material.seal('', KEY_ID)
    t.equal(sealed.length, 1 + 12 + 16, 'form, nonce and tag')
    t.equal(material.open(sealed, KEY_ID), '')
    t.throws(() => material.open(sealed.subarray(0, -1), KEY_ID), SealError)
    t.throws(() => material.open(Buffer.alloc(0), KEY_ID), SealError)
  })

  t.test('a master key of another length is refused', (t) => {
    for (const bytes of [0, 16, 31, 33]) t.throws(() => deriveKeyMaterial(Buffer.alloc(bytes)), /32 bytes/)
    t.equal(generateMasterKey().length, 32)
    t.end()
  })
})

t.test('identifiers hold their time and never repeat', async (t) => {
  const ALPHABET = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'
  const TIME_CHARS = 10

  const timeOf = (text: string): number =>
    [...text.slice(0, TIME_CHARS)].reduce((time, character) => time * 32 + ALPHABET.indexOf(character), 0)

  t.test(
    'an identifier is its prefix and a ULID of its instant, whatever was asked for before',
    async (t) => {
      const instants = [0, 1, 31, 32, 1_760_000_000_000, 1_760_000_000_000, 2 ** 48 - 1, 7]
      for (const now of instants) {
        for (const prefix of ['req', 'kreq', 'page'] as const) {
          const id = newId(prefix, now)
          t.match(id, new RegExp(`^${prefix}_[${ALPHABET}]{26}$`))
          t.equal(timeOf(id.slice(prefix.length + 1)), now)
        }
        t.match(ulid(now), new RegExp(`^[${ALPHABET}]{26}$`))
        t.equal(timeOf(ulid(now)), now)
      }
    },
  )

  t.test('the first with a prefix holds its time too', async (t) => {
    t.equal(timeOf(newId('whe', 1).slice('whe_'.length)), 1)
  })

  t.test('the first of a process has its chance too', async (t) => {
    // Another copy of the module is as new as a process.
    const url = import.meta.resolve('../../../src/core/keys/ids.ts')
    const copy: typeof import('../../../src/core/keys/ids.ts') = await import(
      `${url}?new=${performance.now()}`
    )
    t.notMatch(copy.ulid(0), /0{16}$/)
  })

  t.test('without an instant it is of now', async (t) => {
    const before = Date.now()
    const time = timeOf(ulid())
    t.ok(before <= time && time <= Date.now())
  })

  t.test('those of one instant differ, in every place of their chance', async (t) => {
    const COUNT = 50_000
    const ids = Array.from({ length: COUNT }, () => ulid(5))
    t.equal(new Set(ids).size, COUNT)
    for (let at = TIME_CHARS; at < 26; at++)
      t.equal(new Set(ids.map((id) => id[at])).size, ALPHABET.length, `place ${at}`)
  })
})

t.test('addresses match networks', async (t) => {
  // Which addresses a network holds: IPv4, IPv6 and mapped ones, at the edges of prefixes.
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
    for (const [written, plain] of forms) t.equal(normalizeAddress(written), plain, written)
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
      ...['g::1', '::g', '192.0.2.1::1', '::192.0.2.33:1', '1:2:3:4:5:6:192.0.2.1:7', '1:2:3:4::5:6:7:8'],
    ])
      t.equal(normalizeAddress(text), '', text)
  })

  t.test('an address counts as its network, and is logged without the machine', async (t) => {
    const forms: ReadonlyArray<readonly [address: string, client: string, logged: string]> = [
      ['203.0.113.7', '203.0.113.7', '203.0.113.0/24'],
      ['::ffff:203.0.113.7', '203.0.113.7', '203.0.113.0/24'],
      ['::ffff:0102:0304', '1.2.3.4', '1.2.3.0/24'],
      ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64', '2001:db8:1::/48'],
      ['::fffe:0:0', '0:0:0:0::/64', '0:0:0::/48'],
      ['', '', ''],
      ['unknown', '', ''],
    ]
    for (const [address, client, logged] of forms) {
      t.equal(clientNetwork(address), client, address)
      t.equal(addressPrefix(address), logged, address)
    }
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
    for (const [written, plain] of forms) t.equal(normalizeNetwork(written), plain, written)
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
        () => normalizeNetwork(text),
        { name: 'RangeError', message: /neither an address nor a network/ },
        text,
      )
    t.throws(() => normalizeNetwork('10.1.2.3/8'), { message: /write 10\.0\.0\.0\/8 for the whole network/ })
    t.throws(() => normalizeNetwork('2001:db8::1/64'), { message: /write 2001:db8::\/64 for/ })
    t.throws(() => normalizeNetwork('192.168.1.128/24'), { message: /write 192\.168\.1\.0\/24 for/ })
  })

  t.test('a network holds its first and its last address, and none outside', async (t) => {
    const table: ReadonlyArray<readonly [network: string, inside: string[], outside: string[]]> = [
      ['203.0.113.7', ['203.0.113.7', '::ffff:203.0.113.7'], ['203.0.113.6', '203.0.113.8', '::203.0.113.7']],
      [
        '10.0.0.0/8',
        ['10.0.0.0', '10.255.255.255', '::ffff:a00:1'],
        ['9.255.255.255', '11.0.0.0', '::a00:1'],
      ],
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
    const partly = new AddressList(['nonsense', '192.0.2.1'])
    t.same([partly.has('192.0.2.1'), partly.has('192.0.2.2')], [true, false], 'a text that is no network')
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
    for (const [why, peer, forwarded, client] of table)
      t.equal(proxies.findClient(peer, forwarded), client, why)
    t.equal(
      new TrustedProxies([]).findClient('10.0.0.1', '203.0.113.7'),
      '10.0.0.1',
      'none is trusted by default',
    )
  })
})

t.test('rules of people', async (t) => {
  // Emails, passwords and recovery codes.
  t.test('an email is compared without case and outer spaces', async (t) => {
    t.equal(normalizeEmail('  Ada.Lovelace@Example.COM '), 'ada.lovelace@example.com')
    t.equal(normalizeEmail('u\u0308@example.com'), normalizeEmail('ü@example.com'))
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        const once = normalizeEmail(text)
        return normalizeEmail(once) === once
      }),
    )
  })

  t.test('an email has the form of one', async (t) => {
    for (const email of [
      'a@b',
      'ada+x@example.com',
      'operator@localhost',
      '用户@例子.中国',
      "o'neil@example.ie",
    ])
      t.ok(isEmail(email), email)
    for (const email of [
      '',
      'ada',
      '@example.com',
      'ada@',
      'a@b@c',
      'a b@example.com',
      'ada@example..com',
      'ada@.example.com',
      'ada@example.com\nbcc: eve@example.com',
      '<ada@example.com>',
      `${'a'.repeat(250)}@b.cd`,
    ])
      t.notOk(isEmail(email), email)
  })

  t.test('a password is long and uncommon, and of any characters', async (t) => {
    const problem = (password: string) => findPasswordProblem(password, 'ada.lovelace@example.com')
    t.equal(problem('correct horse battery'), null)
    t.equal(problem('我的密码很长很长很长'), null)
    t.equal(problem('x1y2z3'.repeat(42)), null)
    t.match(problem('nine char'), 'has 9 characters')
    t.match(problem('😀😀😀😀😀😀😀😀😀'), 'has 9 characters', 'a character of two code units is one')
    t.match(problem('x1y2z3'.repeat(43)), 'at most 256')
    for (const common of [
      '1234567890',
      'Password123',
      'QWERTYUIOP',
      'q1w2e3r4t5',
      'aaaaaaaaaaaa',
      'basketball',
    ])
      t.match(problem(common), 'commonest', common)
    t.match(problem('Ada.Lovelace@example.com'), 'email address')
  })

  t.test('recovery codes differ and are read however they are grouped', async (t) => {
    const codes = generateRecoveryCodes()
    t.equal(new Set(codes).size, 10)
    for (const code of codes) {
      t.match(code, /^[0-9a-hjkmnp-tv-z]{4}(-[0-9a-hjkmnp-tv-z]{4}){3}$/)
      t.ok(isRecoveryCode(code.replaceAll('-', '').toUpperCase()))
      t.same(hashRecoveryCode(code.replaceAll('-', ' ')), hashRecoveryCode(code))
    }
    t.notOk(isRecoveryCode('123456'))
  })
})

t.test('tokens', async (t) => {
  t.test('a management token has its documented form, of which twelve characters may be shown', async (t) => {
    const token = generateManagementToken()
    t.match(token, /^tgm_[0-9a-f]{64}$/)
    t.not(generateManagementToken(), token)
    t.ok(isManagementToken(token))
    for (const not of ['', ` ${token}`, `${token}0`, token.slice(0, -1), token.toUpperCase(), token.slice(4)])
      t.notOk(isManagementToken(not), not)
    t.equal(shownTokenPrefix(token), token.slice(0, 12))
  })

  t.test('a session token has 256 bits, of which only the hash is kept', async (t) => {
    const token = generateToken()
    t.match(token, /^[\w-]{43}$/)
    t.not(generateToken(), token)
    t.equal(
      hashToken('abc').toString('hex'),
      'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad',
      'SHA-256',
    )
  })

  t.test('the token of a page is of its session, and is not what is kept of it', async (t) => {
    t.match(deriveCsrfToken('a'), /^[0-9a-f]{64}$/)
    t.equal(deriveCsrfToken('a'), deriveCsrfToken('a'))
    t.not(deriveCsrfToken('a'), deriveCsrfToken('b'))
    t.not(deriveCsrfToken('a'), hashToken('a').toString('hex'))
  })

  t.test('metrics are open to this machine alone, unless a token is set', async (t) => {
    const machine = { token: null, hasAdminListener: false, isLoopback: true, isPublicProfile: false }
    t.equal(operatorAccess(machine), 'open')
    t.equal(operatorAccess({ ...machine, isLoopback: false }), 'closed')
    t.equal(operatorAccess({ ...machine, hasAdminListener: true }), 'closed')
    t.equal(
      operatorAccess({ ...machine, isPublicProfile: true }),
      'closed',
      'the request may come through a proxy',
    )
    t.same(operatorAccess({ ...machine, token: 'x', isPublicProfile: true }), { token: 'x' })
    t.ok(sameToken('x', 'x'))
    for (const other of ['', 'y', 'xx']) t.notOk(sameToken('x', other), other)
  })
})

t.test('the first credential of a request is its key', async (t) => {
  const of = (headers: Record<string, string>) => (name: string) => headers[name] ?? ''
  const bearer = (authorization: string) => findBearerToken(of({ authorization }))
  const all = { 'x-api-key': 'a', 'x-partner-api-key': 'b', 'x-goog-api-key': 'c', authorization: 'Bearer d' }

  t.test('three headers, then the query, then the bearer token', async (t) => {
    const { 'x-api-key': _a, ...three } = all
    const { 'x-partner-api-key': _b, ...two } = three
    const { 'x-goog-api-key': _c, ...one } = two
    for (const [headers, key] of [
      [all, 'a'],
      [three, 'b'],
      [two, 'c'],
      [one, 'q'],
    ] as const)
      t.equal(findRequestKey(of(headers), 'x=1&key=q'), key)
    for (const query of ['', 'key=', 'x=1', 'monkey=q']) t.equal(findRequestKey(of(one), query), 'd', query)
    t.equal(findRequestKey(of({}), ''), null)
    t.equal(findHeaderKey(of(three)), 'c', 'a list of models does not read the second')
    t.equal(findHeaderKey(of(one)), 'd')
  })

  t.test('a query goes on without its key, and is otherwise untouched', async (t) => {
    t.equal(withoutKey('a=1&key=q&b=2'), 'a=1&b=2')
    t.equal(withoutKey('a=%2f&key='), 'a=%2f&key=')
    t.equal(withoutKey(''), '')
  })

  t.test('spaces around a token are no part of it, and nothing else is taken away', async (t) => {
    t.equal(bearer('Bearer   a b  '), 'a b')
    t.equal(bearer('bEARER x'), 'x')
    t.equal(bearer('Bearer \u00a0x\t'), '\u00a0x\t')
    for (const empty of ['Bearer ', 'Bearer    ']) t.equal(bearer(empty), '')
    for (const none of ['', 'Bearer', 'Basic x']) t.equal(bearer(none), null)
  })
})
