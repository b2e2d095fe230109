/** Random tokens of sessions, links and the management API: only the hash of one is kept. */
import { createHash, randomBytes } from 'node:crypto'

const TOKEN_BYTES = 32
const MANAGEMENT_TOKEN_PREFIX = 'tgm_'
const MANAGEMENT_TOKEN_PATTERN = /^tgm_[0-9a-f]{64}$/
/** Number of characters of a management token that any output may show. */
const SHOWN_CHARS = 12

/** Returns 256 random bits in base64url. */
export const generateToken = (): string => randomBytes(TOKEN_BYTES).toString('base64url')

/** Returns `tgm_` and 64 hexadecimal digits. */
export const generateManagementToken = (): string =>
  MANAGEMENT_TOKEN_PREFIX + randomBytes(TOKEN_BYTES).toString('hex')

export const isManagementToken = (text: string): boolean => MANAGEMENT_TOKEN_PATTERN.test(text)

export const shownTokenPrefix = (token: string): string => token.slice(0, SHOWN_CHARS)

/** Returns the SHA-256, 32 bytes. The token has 256 random bits: no slow hash is needed. */
export const hashToken = (token: string): Buffer => createHash('sha256').update(token).digest()

/** Returns the token that proves that a request comes from a page of the session, in hex. */
export const deriveCsrfToken = (sessionToken: string): string =>
  createHash('sha256').update(`tollgate csrf ${sessionToken}`).digest('hex')
