/**
 * Links to files of the object store that the gateway serves itself: `<base>/files/<key>?expires=<epoch seconds>&
 * signature=<signature>`. Any holder of the link may read the file; a link without an instant is valid as long as the
 * file exists. See docs/api-rules.md, "Files and link lifetimes".
 */
import { Buffer } from 'node:buffer'
import { createHmac, timingSafeEqual } from 'node:crypto'

export const FILES_PATH = '/files/'
const MAX_KEY_CHARS = 200
const MS_PER_SECOND = 1000

const KEY = /^[A-Za-z0-9_-][A-Za-z0-9._-]*(?:\/[A-Za-z0-9_-][A-Za-z0-9._-]*)+$/

/** Returns true for `<folder>/<name>`: letters, digits, `-`, `_` and `.`; no part of it begins with a dot. */
export const isObjectKey = (key: string): boolean => key.length <= MAX_KEY_CHARS && KEY.test(key)

/** @throws RangeError for what no object may be called */
export function requireObjectKey(key: string): string {
  if (isObjectKey(key)) return key
  throw new RangeError(`${JSON.stringify(key.slice(0, MAX_KEY_CHARS))} is not a key of the object store.`)
}

/**
 * Returns the key that signs links, derived from the first master key of an installation: the same in every process.
 */
export const linkKey = (masterKey: Uint8Array): Buffer =>
  createHmac('sha256', masterKey).update('tollgate file link').digest()

const sign = (signingKey: Uint8Array, key: string, expires: string): Buffer =>
  createHmac('sha256', signingKey).update(`file link\n${key}\n${expires}`).digest()

export interface FileLinks {
  /**
   * Returns a link. `expiresAt` is epoch milliseconds; the link is valid to the end of that second. Null: forever.
   */
  print(key: string, expiresAt: number | null): string
}

/** Returns links below `base`, the public URL of the service. */
export const fileLinks = (base: string, signingKey: Uint8Array): FileLinks => ({
  print(key, expiresAt) {
    const expires = expiresAt === null ? '' : String(Math.ceil(expiresAt / MS_PER_SECOND))
    const signature = sign(signingKey, requireObjectKey(key), expires).toString('base64url')
    const until = expires === '' ? '' : `expires=${expires}&`
    return `${base}${FILES_PATH}${key}?${until}signature=${signature}`
  },
})

type LinkCheck = 'valid' | 'expired' | 'invalid'

const EXPIRES = /^\d{1,12}$/

/**
 * Checks a link. `now` is epoch milliseconds. A link with another signature is `invalid`, whatever expiry it names.
 */
export function checkLink(
  signingKey: Uint8Array,
  key: string,
  query: URLSearchParams,
  now: number,
): LinkCheck {
  const expires = query.get('expires') ?? ''
  const signature = query.get('signature') ?? ''
  if (expires !== '' && !EXPIRES.test(expires)) return 'invalid'
  const given = Buffer.from(signature, 'base64url')
  const right = sign(signingKey, key, expires)
  if (given.length !== right.length || given.toString('base64url') !== signature) return 'invalid'
  if (!timingSafeEqual(given, right)) return 'invalid'
  return expires === '' || now < Number(expires) * MS_PER_SECOND ? 'valid' : 'expired'
}
