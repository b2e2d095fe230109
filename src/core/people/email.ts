/** Email addresses of users. */
import { normalizeText } from '../normalize-text.ts'

const MAX_EMAIL_CHARS = 254
/** One `@` between a name and a host. Whether a mailbox exists only a message to it can tell. */
const EMAIL_PATTERN = /^[^\s@"(),:;<>[\\\]\p{Cc}]+@[^\s@"(),:;<>[\\\]\p{Cc}]+$/u

/** Returns the form in which an address is stored and compared: without outer spaces, NFC, in lower case. */
export const normalizeEmail = (email: string): string => normalizeText(email.trim(), 'NFC').toLowerCase()

/** Returns whether a normalized address has the form of one. */
export const isEmail = (email: string): boolean =>
  email.length <= MAX_EMAIL_CHARS && EMAIL_PATTERN.test(email) && !/\.\.|@\.|\.$|^\.|\.@/.test(email)
