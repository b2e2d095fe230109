/**
 * API keys as secrets: made at random, found by a keyed hash, sealed at rest. Hash and seal use two keys
 * of their own, derived from the operator's master key by HKDF (RFC 5869); the seal is AES-256-GCM and
 * bound to the id of the key that it belongs to, so that a sealed key put into another row does not open.
 */
import { Buffer } from 'node:buffer'
import { createCipheriv, createDecipheriv, createHmac, hkdfSync, randomBytes } from 'node:crypto'
import { KEY_PATTERN, KEY_PREFIX, KEY_SHOWN_CHARS } from '../../schemas/key.ts'
import { MASTER_KEY_BYTES } from '../../schemas/settings.ts'

const SECRET_BYTES = 32
const SUBKEY_BYTES = 32
const CIPHER = 'aes-256-gcm'
const NONCE_BYTES = 12
const TAG_BYTES = 16
/** First byte of a seal, should its form ever change. */
const SEAL_FORM = 1

/** A sealed key does not open: another master key, another row's seal, or changed bytes. */
export class SealBroken extends Error {
  constructor(keyId: string) {
    super(
      `The stored form of ${keyId} does not open: it was changed, or sealed with another TOLLGATE_MASTER_KEY`,
    )
    this.name = 'SealBroken'
  }
}

export interface KeyMaterial {
  /** 32 bytes: HMAC-SHA256 of the raw key. The same for the same key and master key. */
  lookupHash(rawKey: string): Buffer
  /** Form byte, nonce, ciphertext and tag. Another result each time. */
  seal(rawKey: string, keyId: string): Buffer
  /** @throws SealBroken */
  open(sealed: Buffer, keyId: string): string
  /** Tells one master key from another and gives nothing of it away. */
  readonly checkValue: Buffer
}

/** `sk-tollgate-` and 64 hexadecimal digits. */
export const generateApiKey = (): string => KEY_PREFIX + randomBytes(SECRET_BYTES).toString('hex')

/** Whether the text has the form of a key; whether there is such a key is another question. */
export const isApiKey = (text: string): boolean => KEY_PATTERN.test(text)

/** What any output may show of a key: its first 20 characters. */
export const shownPrefix = (rawKey: string): string => rawKey.slice(0, KEY_SHOWN_CHARS)

export const generateMasterKey = (): Buffer => randomBytes(MASTER_KEY_BYTES)

/** @throws RangeError when the master key is not 32 bytes */
export function deriveKeyMaterial(masterKey: Buffer): KeyMaterial {
  if (masterKey.length !== MASTER_KEY_BYTES)
    throw new RangeError(`The master key has ${MASTER_KEY_BYTES} bytes, not ${masterKey.length}`)
  const derive = (purpose: string): Buffer =>
    Buffer.from(hkdfSync('sha256', masterKey, '', `tollgate ${purpose}`, SUBKEY_BYTES))
  const hashKey = derive('api key lookup')
  const sealKey = derive('api key seal')
  return {
    checkValue: derive('master key check'),

    lookupHash: (rawKey) => createHmac('sha256', hashKey).update(rawKey).digest(),

    seal(rawKey, keyId) {
      const nonce = randomBytes(NONCE_BYTES)
      const cipher = createCipheriv(CIPHER, sealKey, nonce, { authTagLength: TAG_BYTES })
      cipher.setAAD(boundTo(keyId))
      const text = Buffer.concat([cipher.update(rawKey, 'utf8'), cipher.final()])
      return Buffer.concat([Buffer.of(SEAL_FORM), nonce, text, cipher.getAuthTag()])
    },

    open(sealed, keyId) {
      const textAt = 1 + NONCE_BYTES
      const tagAt = sealed.length - TAG_BYTES
      if (sealed[0] !== SEAL_FORM || tagAt < textAt) throw new SealBroken(keyId)
      const decipher = createDecipheriv(CIPHER, sealKey, sealed.subarray(1, textAt), {
        authTagLength: TAG_BYTES,
      })
      decipher.setAAD(boundTo(keyId))
      decipher.setAuthTag(sealed.subarray(tagAt))
      try {
        return decipher.update(sealed.subarray(textAt, tagAt), undefined, 'utf8') + decipher.final('utf8')
      } catch {
        throw new SealBroken(keyId)
      }
    },
  }
}

const boundTo = (keyId: string): Buffer => Buffer.from(`tollgate api key ${keyId}`)
