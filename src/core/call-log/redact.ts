/**
 * Masks texts from elsewhere for the call log: addresses, host names, key material, names of upstreams. See
 * docs/api-rules.md, "Call log rows".
 */
import { shorten } from '../json/cut.ts'

/** No error message is kept longer than this, in UTF-16 units. */
export const REDACTED_MAX_CHARS = 500
/** Text after this is not read: it bounds the work that a hostile upstream can cause. */
const READ_MAX_CHARS = 4096
const CUT_MARK = '…'

const TOP_LEVEL_DOMAINS =
  'com|net|org|io|ai|dev|app|cloud|cn|co|us|uk|eu|de|fr|jp|kr|in|sg|hk|tw|ru|xyz|info|biz|me|tv|gg|so|sh|run|' +
  'internal|local|localdomain|lan|svc|cluster|corp|intra|home|test|example|invalid'
const HOST = `(?:[a-z0-9](?:[a-z0-9-]{0,62})\\.)+(?:${TOP_LEVEL_DOMAINS})`
const CREDENTIAL_NAME =
  '(?:[\\w-]{0,40}[_-])?(?:api[_ -]?key|access[_-]?key(?:[_-]?id)?|secret|token|passw(?:or)?d|pwd|credential|authorization|signature)'
const NOT_MASKED_YET = '(?!\\[(?:secret|url)\\]|(?:bearer|basic|digest)\\b)'

/** A word of a sentence: a key has digits, capitals or more letters. */
const WORD = /^[A-Za-z][a-z]{0,15}[.,]?$/
const STATES = /^(?:required|invalid|missing|expired|unknown|null|none)\.?$/i
const IN_QUOTES = /["'\\=]/
/** Returns whether what follows a name is no value, but what a validator says of it: `token: Field required`. */
const isSaid = (separator: string, value: string, next: string): boolean =>
  !IN_QUOTES.test(separator) && WORD.test(value) && (next !== '' || STATES.test(value))

type Mask = string | ((text: string, ...groups: string[]) => string)

const replaceByMask = (text: string, pattern: RegExp, mask: Mask): string =>
  typeof mask === 'string' ? text.replace(pattern, mask) : text.replace(pattern, mask)

/** In this order: an earlier one may contain a later one. No pattern reads the same run of characters twice. */
const MASKS: ReadonlyArray<readonly [pattern: RegExp, mask: Mask]> = [
  // Addresses of any scheme, with slashes escaped for JSON too, and data URIs with all they carry.
  [/\b[a-z][a-z0-9+.-]{0,20}:(?:\\?\/){2}[^\s"'<>`]+/gi, '[url]'],
  [/\bdata:[\w.+-]+\/[\w.+-]+[;,][^\s"'<>`]*/gi, '[url]'],
  [/-----BEGIN [A-Z ]+-----[\s\S]*?(?:-----END [A-Z ]+-----|$)/g, '[secret]'],
  // The word before a credential stays, so that the reader knows what was masked.
  [
    /\b(bearer|basic|digest)\s+(?!(?:tokens?|auth[a-z]*|credentials?|access|schemes?)\b)[\w.~+/=:-]{6,}/gi,
    '$1 [secret]',
  ],
  [
    new RegExp(
      `\\b(${CREDENTIAL_NAME})(["'\\\\]*\\s*[:=]\\s*["'\\\\]*|\\s+provided:\\s*["']?)${NOT_MASKED_YET}([^\\s"',;)}\\]\\\\]+)(?=(\\s+[a-z\`]|))`,
      'gi',
    ),
    (text, name = '', separator = '', value = '', next = '') =>
      isSaid(separator, value, next) ? text : `${name}${separator}[secret]`,
  ],
  // Keys as vendors print them, half masked by the vendor or not.
  [/\b(?:sk|pk|rk)[-_][\w*.•…-]{6,}/gi, '[secret]'],
  [/\b(?:ak|gsk|xai|key|org|proj|gh[a-z]|glpat|xox[a-z]|hf|r8)[-_](?=[\w*.-]*\d)[\w*.-]{6,}/gi, '[secret]'],
  [/\b(?:AKIA|ASIA|AIza|ya29\.)[\w-]{12,}/g, '[secret]'],
  [/\beyJ[\w-]{6,}(?:\.[\w-]*){1,4}/g, '[secret]'],
  [/\b[\w.+-]{1,64}@[\w-]+(?:\.[\w-]+)*/g, '[address]'],
  [/\b(?:\d{1,3}\.){3}\d{1,3}(?:\/\d{1,2}|:\d{1,5})?\b/g, '[address]'],
  [
    /\[?(?<![\w:.])(?=[0-9a-f:]*[0-9a-f])(?:(?:[0-9a-f]{1,4}:){4,7}[0-9a-f]{1,4}|(?:(?:[0-9a-f]{1,4}:){1,7}|:):(?:[0-9a-f]{1,4}:){0,6}[0-9a-f]{0,4})(?![\w:])(?:\](?::\d{1,5})?)?/gi,
    '[address]',
  ],
  [/\blocalhost(?::\d{1,5})?\b/gi, '[address]'],
  [new RegExp(`(?<![\\w.-])${HOST}\\b(?::\\d{1,5})?(?:\\/[^\\s"'<>\`\\\\]*)?`, 'gi'), '[address]'],
  // Node.js names the host last.
  [
    /\b(ECONN[A-Z]+|ENOTFOUND|EAI_AGAIN|E[A-Z]+UNREACH|ETIMEDOUT)\s+(?!\[)[\w.-]+(?::\d{1,5})?/g,
    '$1 [address]',
  ],
  // Long random texts; our own ids are no secret.
  [/\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b/gi, '[secret]'],
  [/\b[0-9a-f]{24,}\b/gi, '[secret]'],
  [/\b(?=[a-z]*\d)(?=\d*[a-z])[a-z0-9]{32,}\b/g, '[secret]'],
  [
    /(?<![\w+/=-])(?![a-z]{2,4}_[0-9A-Z]{26}\b)(?=[\w+/-]*\d)(?=[\w+/-]*[a-z])(?=[\w+/-]*[A-Z])[\w+/-]{28,}={0,2}/g,
    '[secret]',
  ],
]

/** Control and format characters: line breaks, escape sequences, what changes the direction of writing. */
const INVISIBLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\s]+/gu

/** To the last white space. A search for the last word would be tried from each character of each word. */
const WHOLE_WORDS = /^.*\s/s

/** Returns the text without its last word where it was cut: half a secret matches no pattern. */
const dropControls = (text: string): string =>
  text.length <= READ_MAX_CHARS
    ? text
    : `${WHOLE_WORDS.exec(text.slice(0, READ_MAX_CHARS))?.[0] ?? ''}${CUT_MARK}`

const escapeRegExp = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')

/** Masks names as whole words, the longest first, so that one that contains another is masked whole. */
function maskNames(text: string, names: readonly string[]): string {
  const known = names.filter((name) => name !== '').sort((a, b) => b.length - a.length)
  if (known.length === 0) return text
  const pattern = new RegExp(`(?<![\\w])(?:${known.map(escapeRegExp).join('|')})(?![\\w])`, 'gi')
  return text.replace(pattern, '[upstream]')
}

/** A shorter text is no secret, and would match inside many words. */
const SECRET_MIN_CHARS = 8

/** Masks secrets anywhere, inside words too; the longest first, so that one that contains another is masked whole. */
export const maskSecrets = (text: string, secrets: readonly string[]): string =>
  secrets
    .filter((secret) => secret.length >= SECRET_MIN_CHARS)
    .sort((a, b) => b.length - a.length)
    .reduce((masked, secret) => masked.replaceAll(secret, '[secret]'), text)

/**
 * Masks what a customer must not see in a text from elsewhere, and puts it on one line. `names` are an upstream's own,
 * such as a channel's id; `secrets` are its keys, which may have any form. Whatever `text` holds, this does not throw.
 */
export function mask(text: string, names: readonly string[] = [], secrets: readonly string[] = []): string {
  const plain = maskSecrets(dropControls(text).toWellFormed().replace(INVISIBLE, ' '), secrets)
  let masked = maskNames(plain, names)
  for (const [pattern, replacement] of MASKS) masked = replaceByMask(masked, pattern, replacement)
  return masked.trim()
}

/** Masks the same for the call log: at most 500 characters. */
export const redact = (text: string, names?: readonly string[], secrets?: readonly string[]): string =>
  shorten(mask(text, names, secrets), REDACTED_MAX_CHARS)

/** Deeper values are left out. */
const MAX_LEVELS = 32
/** The field that says how to read the others; its value names no host of an upstream. */
const TYPE_FIELD = '@type'
const TYPE_URL = /^type\.googleapis\.com\/google\.[\w.]{1,100}$/

/** Returns a JSON value whose texts `mask` has masked. */
export function maskValue(value: unknown, mask: (text: string) => string, level = 0): unknown {
  if (typeof value === 'string') return mask(value)
  if (typeof value !== 'object' || value === null) return value
  if (level === MAX_LEVELS) return null
  if (Array.isArray(value)) return value.map((item) => maskValue(item, mask, level + 1))
  const masked = Object.entries(value).map(([name, item]) => {
    const isType = name === TYPE_FIELD && typeof item === 'string' && TYPE_URL.test(item)
    return [isType ? name : mask(name), isType ? item : maskValue(item, mask, level + 1)] as const
  })
  return Object.fromEntries(masked)
}
