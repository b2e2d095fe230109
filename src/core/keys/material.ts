/**
 * API keys as secrets: made at random, found by a keyed hash, sealed at rest. Hash and seal use separate keys,
 * derived from the operator's master key by HKDF (RFC 5869); the seal is AES-256-GCM and bound to the id of the key
 * that it belongs to, so that a sealed key put into another row does not open. What signs and hashes outlives the
 * master key: when it is replaced, those secrets are sealed with the new one.
 */
import { Buffer } from 'node:buffer'
import { createCipheriv, createDecipheriv, createHmac, hkdfSync, randomBytes } from 'node:crypto'
import { KEY_PREFIX, KEY_SHOWN_CHARS } from '../../../schemas/accounts/key.ts'
import { MASTER_KEY_BYTES } from '../../../schemas/config/settings.ts'
import { linkKey } from '../media/file-link.ts'

const SECRET_BYTES = 32
const SUBKEY_BYTES = 32
const CIPHER = 'aes-256-gcm'
const NONCE_BYTES = 12
const TAG_BYTES = 16
/** First byte of a seal, should its form ever change. */
const SEAL_FORM = 1

/** A sealed key does not open: another master key, another row's seal, or changed bytes. */
export class SealError extends Error {
  constructor(what: string) {
    super(
      `The stored form of ${what} does not open: it was changed, or sealed with another TOLLGATE_MASTER_KEY`,
    )
    this.name = 'SealError'
  }
}

/** Secrets that stay the same when the master key is replaced, 32 bytes each. */
interface DerivedSecrets {
  /** Keys the hash by which a raw key is found. */
  readonly lookup: Buffer
  /** Signs links to files. */
  readonly fileLinks: Buffer
  /** Signs cursors of the call log. */
  readonly logCursors: Buffer
}

export interface KeyMaterial {
  /** Returns the HMAC-SHA256 of the raw key, 32 bytes. The same for the same key and master key. */
  lookupHash(rawKey: string): Buffer
  /** Encrypts a key: form byte, nonce, ciphertext and tag. Another result each time. */
  seal(rawKey: string, keyId: string): Buffer
  /** @throws SealError */
  open(sealed: Buffer, keyId: string): string
  /** Distinguishes master keys and reveals nothing of them. */
  readonly checkValue: Buffer
  readonly secrets: DerivedSecrets
  /** Returns the same master key with the secrets of an earlier one. */
  withSecrets(secrets: DerivedSecrets): KeyMaterial
  sealSecrets(secrets: DerivedSecrets): Buffer
  /** @throws SealError */
  openSecrets(sealed: Buffer): DerivedSecrets
}

/** Returns `sk-tollgate-` and 64 hexadecimal digits. */
export const generateApiKey = (): string => KEY_PREFIX + randomBytes(SECRET_BYTES).toString('hex')

/** Returns the part of a key that any output may show: its first 20 characters. */
export const shownPrefix = (rawKey: string): string => rawKey.slice(0, KEY_SHOWN_CHARS)

export const generateMasterKey = (): Buffer => randomBytes(MASTER_KEY_BYTES)

/**
 * Derives the secrets of a master key.
 * @param given the secrets of the first master key that the database was used with, where this is a later one
 * @throws RangeError when the master key is not 32 bytes
 */
export function deriveKeyMaterial(masterKey: Buffer, given?: DerivedSecrets): KeyMaterial {
  if (masterKey.length !== MASTER_KEY_BYTES)
    throw new RangeError(`The master key has ${MASTER_KEY_BYTES} bytes, not ${masterKey.length}`)
  const derive = (purpose: string): Buffer =>
    Buffer.from(hkdfSync('sha256', masterKey, '', `tollgate ${purpose}`, SUBKEY_BYTES))
  const sealKey = derive('api key seal')
  const secretsKey = derive('lasting secrets seal')
  const secrets = given ?? {
    lookup: derive('api key lookup'),
    fileLinks: linkKey(masterKey),
    logCursors: createHmac('sha256', masterKey).update('tollgate log cursor').digest(),
  }
  return {
    checkValue: derive('master key check'),
    secrets,
    withSecrets: (others) => deriveKeyMaterial(masterKey, others),

    lookupHash: (rawKey) => createHmac('sha256', secrets.lookup).update(rawKey).digest(),
    seal: (rawKey, keyId) => seal(sealKey, Buffer.from(rawKey), boundTo(keyId)),
    open: (sealed, keyId) => open(sealKey, sealed, boundTo(keyId), keyId).toString(),

    sealSecrets: ({ lookup, fileLinks, logCursors }) =>
      seal(secretsKey, Buffer.concat([lookup, fileLinks, logCursors]), SECRETS_BOUND_TO),
    openSecrets(sealed) {
      const all = open(secretsKey, sealed, SECRETS_BOUND_TO, 'the lasting secrets')
      const at = (index: number) => all.subarray(index * SUBKEY_BYTES, (index + 1) * SUBKEY_BYTES)
      return { lookup: at(0), fileLinks: at(1), logCursors: at(2) }
    },
  }
}

/** Returns the id that the sealed secret of a user's one-time codes is bound to. */
export const totpSealId = (userId: string): string => `totp ${userId}`

/** Binds the sealed answer of an operation to the Idempotency-Key of its request. */
export const answerSealId = (scope: string, key: string): string => `answer ${scope} ${key}`

/** Binds the sealed secret of a webhook to its endpoint. */
export const webhookSealId = (endpointId: string): string => `webhook ${endpointId}`

/** Binds a sealed mail to its delivery. */
export const mailSealId = (deliveryId: string): string => `mail ${deliveryId}`

const boundTo = (keyId: string): Buffer => Buffer.from(`tollgate api key ${keyId}`)
const SECRETS_BOUND_TO = Buffer.from('tollgate lasting secrets')

function seal(key: Buffer, plain: Buffer, bound: Buffer): Buffer {
  const nonce = randomBytes(NONCE_BYTES)
  const cipher = createCipheriv(CIPHER, key, nonce, { authTagLength: TAG_BYTES })
  cipher.setAAD(bound)
  const text = Buffer.concat([cipher.update(plain), cipher.final()])
  return Buffer.concat([Buffer.of(SEAL_FORM), nonce, text, cipher.getAuthTag()])
}

function open(key: Buffer, sealed: Buffer, bound: Buffer, what: string): Buffer {
  const textAt = 1 + NONCE_BYTES
  const tagAt = sealed.length - TAG_BYTES
  if (sealed[0] !== SEAL_FORM || tagAt < textAt) throw new SealError(what)
  const decipher = createDecipheriv(CIPHER, key, sealed.subarray(1, textAt), { authTagLength: TAG_BYTES })
  decipher.setAAD(bound)
  decipher.setAuthTag(sealed.subarray(tagAt))
  try {
    return Buffer.concat([decipher.update(sealed.subarray(textAt, tagAt)), decipher.final()])
  } catch {
    throw new SealError(what)
  }
}
