/**
 * Tokens of texts that no one has counted: by their length, and by their script. The estimate of a call and the
 * console's cost of an unfinished answer use the same rule. See docs/api-rules.md, "Pre-charge".
 */

/** A token is taken for four bytes of the prompt's JSON. */
const BYTES_PER_TOKEN = 4
/** Also the weight of four ASCII characters of output. */
const CHARACTERS_PER_TOKEN = 4

export const estimateInputTokens = (jsonBytes: number): number => Math.ceil(jsonBytes / BYTES_PER_TOKEN)

/** Returns the bytes that the estimate counts for a number of tokens: for a prompt that is not in the request. */
export const bytesOfTokens = (tokens: number): number => tokens * BYTES_PER_TOKEN

/** A later byte of a UTF-8 character adds an eighth of a token: three bytes of Chinese are about one token. */
const LATER_BYTES_PER_TOKEN = 8

/**
 * Estimates the prompt of a call whose upstream did not report it. The admission's estimate counts only bytes; the
 * charge counts by script too: four ASCII characters are a token, a Cyrillic or Arabic one five eighths, a Chinese one
 * a whole token.
 * @param laterBytes see `laterBytesIn`
 */
export const estimatePromptTokens = (jsonBytes: number, laterBytes: number): number =>
  Math.ceil(jsonBytes / BYTES_PER_TOKEN + laterBytes / LATER_BYTES_PER_TOKEN)

/**
 * Weight that each later byte of a UTF-8 character adds, so that output counts by script as a prompt does: four ASCII
 * characters are a token, and a Cyrillic character counts as 2.5 of them, a Chinese one as 4, an emoji as 5.5.
 */
export const LATER_BYTE_CHARACTERS = CHARACTERS_PER_TOKEN * (1 / BYTES_PER_TOKEN + 1 / LATER_BYTES_PER_TOKEN)

const weighBytes = (bytes: number): number => 1 + (bytes - 1) * LATER_BYTE_CHARACTERS
const [TWO_BYTES, THREE_BYTES, FOUR_BYTES] = [weighBytes(2), weighBytes(3), weighBytes(4)]

/** Returns the weight of a UTF-16 code unit in characters. The first half of a surrogate pair counts for both. */
export function weighCodeUnit(unit: number): number {
  if (unit < 0x80) return 1
  if (unit < 0x800) return TWO_BYTES
  if ((unit & 0xfc00) === 0xd800) return FOUR_BYTES
  return (unit & 0xfc00) === 0xdc00 ? 0 : THREE_BYTES
}

/** @param characters weighed by script, see `LATER_BYTE_CHARACTERS` */
export const estimateOutputTokens = (characters: number): number =>
  Math.ceil(characters / CHARACTERS_PER_TOKEN)

const SPACE = 0x20
const QUOTE = 0x22
const BACKSLASH = 0x5c
const LETTER_U = 0x75
const DIGITS_END = 0x3a
const UNICODE_ESCAPE_CHARS = 6

/** Returns the value of a hexadecimal digit; for any other byte a number from 0 to 15. */
export const hexDigit = (byte: number): number => (byte < DIGITS_END ? byte : byte + 9) & 15

/** Returns the code unit of the `\u` escape that begins at `at`. */
function readEscapedUnit(bytes: Uint8Array, at: number): number {
  let unit = 0
  for (let i = at + 2; i < at + UNICODE_ESCAPE_CHARS; i++) unit = unit * 16 + hexDigit(bytes[i]!)
  return unit
}

/** Where the last count ended: at a byte that no text has unescaped, or at its end; behind that in an escape that is cut. */
export let countedTo = 0

/**
 * Returns the characters of the text of a JSON string from `start` to its quote, or to `end`, weighed by script, each
 * escape counted as its character.
 */
export function countCharacters(bytes: Uint8Array, start: number, end: number): number {
  let count = 0
  let i = start
  for (; i < end; i++) {
    const byte = bytes[i]!
    if (byte <= QUOTE && (byte === QUOTE || byte < SPACE)) break
    if (byte === BACKSLASH) {
      const isUnicode = bytes[i + 1] === LETTER_U
      count += isUnicode ? weighCodeUnit(readEscapedUnit(bytes, i)) : 1
      i += isUnicode ? UNICODE_ESCAPE_CHARS - 1 : 1
    } else count += (byte & 0xc0) === 0x80 ? LATER_BYTE_CHARACTERS : 1
  }
  countedTo = i
  return count
}
