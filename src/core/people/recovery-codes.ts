/** Recovery codes: each takes the place of a one-time code once. Only their hashes are stored. */
import { createHash, randomInt } from 'node:crypto'

const CODES = 10
/** Crockford's base 32 without letters that are read as digits: 16 characters are 80 bits. */
const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz'
const CODE_CHARS = 16
const GROUP = /.{4}(?=.)/g

/** Returns ten codes such as `k7m2-9xq4-0tzb-w3ed`. */
export const generateRecoveryCodes = (): string[] =>
  Array.from({ length: CODES }, () =>
    Array.from({ length: CODE_CHARS }, () => ALPHABET[randomInt(ALPHABET.length)])
      .join('')
      .replace(GROUP, '$&-'),
  )

/** Returns whether the text has the form of a recovery code, however it is grouped. */
export const isRecoveryCode = (text: string): boolean => compact(text).length === CODE_CHARS

/** Returns the SHA-256, 32 bytes. A code has 80 random bits: no slow hash is needed. */
export const hashRecoveryCode = (code: string): Buffer => createHash('sha256').update(compact(code)).digest()

const compact = (text: string): string => text.toLowerCase().replace(/[^0-9a-z]/g, '')
