import t from 'tap'
import { KEY_LENGTH_CHARS } from '../../../schemas/accounts/key.ts'
import {
  deriveKeyMaterial,
  generateApiKey,
  generateMasterKey,
  SealError,
  shownPrefix,
} from '../../../src/core/keys/material.ts'
import { isWellFormedKey } from '../../../src/core/keys/presented.ts'

const masterKey = Buffer.alloc(32, 7)
const material = deriveKeyMaterial(masterKey)
const KEY_ID = 'key_01J8Z3N4V9QKX2T5W7Y0ABCDEF'

t.test('a key has its documented form and no two are alike', (t) => {
  const keys = Array.from({ length: 200 }, generateApiKey)
  t.equal(new Set(keys).size, keys.length)
  for (const key of keys) {
    t.ok(isWellFormedKey(key))
    t.equal(key.length, KEY_LENGTH_CHARS)
  }
  const key = keys[0]!
  for (const not of ['', key.toUpperCase(), key.slice(0, -1), `${key}0`, ` ${key}`, `${key}\n`, key.slice(3)])
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

t.test('a master key of another length is refused', (t) => {
  for (const bytes of [0, 16, 31, 33]) t.throws(() => deriveKeyMaterial(Buffer.alloc(bytes)), /32 bytes/)
  t.equal(generateMasterKey().length, 32)
  t.end()
})
