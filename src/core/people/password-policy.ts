/** Which passwords users may choose: only length and rareness count, after NIST SP 800-63B. */

import { normalizeText } from '../normalize-text.ts'
import { isCommonPassword } from './common-passwords.ts'

const MIN_PASSWORD_CHARS = 10
const MAX_PASSWORD_CHARS = 256

/** Returns the form that is hashed: the same password typed on another keyboard has the same characters. */
export const normalizePassword = (password: string): string => normalizeText(password, 'NFKC')

/**
 * Returns the reason why a password is refused, for the user; null where it may be chosen.
 * @param email of the user, which is no password
 */
export function findPasswordProblem(password: string, email: string): string | null {
  const characters = [...normalizePassword(password)]
  if (characters.length < MIN_PASSWORD_CHARS)
    return `The password has ${characters.length} characters: choose one of at least ${MIN_PASSWORD_CHARS}.`
  if (characters.length > MAX_PASSWORD_CHARS)
    return `The password has ${characters.length} characters: choose one of at most ${MAX_PASSWORD_CHARS}.`
  if (new Set(characters).size <= 2 || isCommonPassword(characters.join('')))
    return 'The password is one of the commonest: choose another one.'
  if (password.toLowerCase() === email) return 'The password is the email address: choose another one.'
  return null
}
