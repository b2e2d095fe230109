/**
 * JSON whose numbers keep their digits. A number that a JavaScript number cannot give back is kept as its text, in an
 * object that `JSON.stringify` prints as it was written. Texts that nest deeper than `MAX_JSON_LEVELS` are refused, so
 * that later code may be recursive.
 */

/** A number as it was written. */
interface RawNumber {
  readonly rawJSON: string
}

type Reviver = (name: string, value: unknown, context: { readonly source?: string }) => unknown

/** Functions of the runtime that its types lack. */
const json = JSON as unknown as {
  rawJSON(text: string): RawNumber
  isRawJSON(value: unknown): value is RawNumber
  parse(text: string, reviver?: Reviver): unknown
}

export const isRawNumber = (value: unknown): value is RawNumber => json.isRawJSON(value)

/** Returns a number that keeps its digits. `text` must be a number of JSON. */
export const rawNumber = (text: string): RawNumber => json.rawJSON(text)

/** Returns a number by its size, rounded if needed; any other value unchanged. */
export const sizeOf = (value: unknown): unknown => (isRawNumber(value) ? Number(value.rawJSON) : value)

/** Objects and arrays inside one another; a body that is a scalar has none. */
export const MAX_JSON_LEVELS = 512

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COMMA = 0x2c
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d
const ZERO = 0x30

/** So much behind an escaped quote is read character by character. */
const LOOK_AHEAD_CHARS = 64

/** Returns the index of the quote that closes the string that opens at `at`. */
function stringEnd(text: string, at: number): number {
  let from = at + 1
  for (let quote = text.indexOf('"', from); quote >= 0; quote = text.indexOf('"', from)) {
    let before = quote
    while (text.charCodeAt(before - 1) === BACKSLASH) before--
    // An even number of backslashes escapes itself, not the quote.
    if ((quote - before) % 2 === 0) return quote
    // A text with one escaped quote has more: a search for each would take longer than a check of the following text.
    from = quote + 1
    const until = Math.min(text.length, from + LOOK_AHEAD_CHARS)
    while (from < until) {
      const char = text.charCodeAt(from)
      if (char === QUOTE) return from
      from += char === BACKSLASH ? 2 : 1
    }
  }
  return text.length
}

/** The limit that a JSON text exceeds. */
interface Excess {
  readonly of: 'levels' | 'values' | 'fields'
  /** Of the object with too many fields; for the others empty, the whole text. */
  readonly path: readonly (string | number)[]
}

/** Counts of containers that are open: fields of objects, and items of arrays, which begin so far below. */
const ARRAY_BEGINS = -(2 ** 30)

/**
 * Returns the first excess of a JSON text: levels beyond `MAX_JSON_LEVELS`, values beyond `maxValues`, or fields of one
 * object beyond `maxFields`. Null for a text within all three. It costs no more than the text that is allowed.
 */
export function excessOf(
  text: string,
  maxValues = Number.POSITIVE_INFINITY,
  maxFields = Number.POSITIVE_INFINITY,
): Excess | null {
  // Each level, each value and each field takes two characters.
  if (text.length <= 2 * Math.min(MAX_JSON_LEVELS, maxValues, maxFields)) return null
  const counts = new Int32Array(MAX_JSON_LEVELS + 1)
  const lastStrings = new Int32Array(MAX_JSON_LEVELS + 1)
  let levels = 0
  let values = 1
  for (let at = 0; at < text.length; at++) {
    const char = text.charCodeAt(at)
    if (char === QUOTE) {
      lastStrings[levels] = at
      at = stringEnd(text, at)
    } else if (char === COMMA) {
      if (++values > maxValues) return { of: 'values', path: [] }
      if (++counts[levels]! > maxFields)
        return { of: 'fields', path: openPath(text, counts.subarray(1, levels), lastStrings.subarray(1)) }
    } else if (char === OPEN_BRACE || char === OPEN_BRACKET) {
      if (++values > maxValues) return { of: 'values', path: [] }
      if (++levels > MAX_JSON_LEVELS) return { of: 'levels', path: [] }
      counts[levels] = char === OPEN_BRACE ? 1 : ARRAY_BEGINS
    } else if (char === CLOSE_BRACE || char === CLOSE_BRACKET) levels = Math.max(0, levels - 1)
  }
  return null
}

/** Returns the path through open containers: in an object, the last string is the field's name. */
function openPath(text: string, counts: Int32Array, lastStrings: Int32Array): (string | number)[] {
  return Array.from(counts, (count, level) => {
    const at = lastStrings[level]!
    return count < 0 ? count - ARRAY_BEGINS : text.slice(at + 1, stringEnd(text, at))
  })
}

/** Returns whether a JSON text nests deeper than `MAX_JSON_LEVELS`. */
export const isTooDeep = (text: string): boolean => excessOf(text) !== null

const NUMBER = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/
/** A longer number is compared by its text: none occurs by accident. */
const MAX_COMPARED_CHARS = 1000

/** Returns one text for all spellings of a number; a number that is too long unchanged. */
export function canonicalNumber(text: string): string {
  const parts = text.length > MAX_COMPARED_CHARS ? null : NUMBER.exec(text)
  if (parts === null) return text
  const [, sign, whole, fraction = '', exponent = '0'] = parts
  const digits = `${whole}${fraction}`
  // By loops: a pattern that ends at the last zero is tried from each zero before it.
  let end = digits.length
  while (end > 0 && digits.charCodeAt(end - 1) === ZERO) end--
  if (end === 0) return '0'
  let start = 0
  while (digits.charCodeAt(start) === ZERO) start++
  const power = BigInt(exponent) - BigInt(fraction.length) + BigInt(digits.length - end)
  return `${sign}${digits.slice(start, end)}e${power}`
}

const isExact = (value: number, source: string): boolean =>
  canonicalNumber(String(value)) === canonicalNumber(source)

/** Sixteen digits, or an exponent: nothing shorter loses anything. A match inside a string only costs time. */
const MAY_LOSE_DIGITS = /(?:^|[:,[\s-])(?:[\d.]{16}|[\d.]+[eE])/
const NOT_CANONICAL = /\d[.eE]|\d{16}|-0/

/** Numbers of one text that a JavaScript number prints otherwise: each takes microseconds to compare. */
export const MAX_ODD_NUMBERS = 5_000

/**
 * Returns a reviver that keeps a number as its text where `keeps` returns true.
 * @throws SyntaxError beyond `MAX_ODD_NUMBERS`
 */
function reviverFor(keeps: (value: number, source: string) => boolean): Reviver {
  let odd = 0
  return (_name, value, { source }) => {
    if (typeof value !== 'number' || source === undefined || String(value) === source) return value
    if (++odd > MAX_ODD_NUMBERS)
      throw new SyntaxError(
        `it holds more than ${MAX_ODD_NUMBERS} numbers with many digits, or written oddly`,
      )
    return keeps(value, source) ? rawNumber(source) : value
  }
}

const exactOnly = () => reviverFor((value, source) => !isExact(value, source))
const asRaw = () => reviverFor(() => true)

/** A longer text is searched for numbers without its strings: in those a search takes long, and finds none. */
const LONG_TEXT_CHARS = 65_536
/** A shorter text between two strings has no number that matters. */
const MIN_SEARCHED_CHARS = 3

function isFoundOutsideStrings(numbers: RegExp, text: string): boolean {
  if (text.length <= LONG_TEXT_CHARS) return numbers.test(text)
  let from = 0
  for (let quote = text.indexOf('"'); quote >= 0; quote = text.indexOf('"', from)) {
    if (quote - from >= MIN_SEARCHED_CHARS && numbers.test(text.slice(from, quote))) return true
    from = stringEnd(text, quote) + 1
  }
  return numbers.test(text.slice(from))
}

/** Returns false when `JSON.parse` keeps the digits of every number. */
export const mayLoseDigits = (text: string): boolean => isFoundOutsideStrings(MAY_LOSE_DIGITS, text)

function parsed(text: string, mayDiffer: RegExp, reviver: () => Reviver): unknown {
  if (isTooDeep(text)) throw new SyntaxError(`it nests deeper than ${MAX_JSON_LEVELS} levels`)
  return isFoundOutsideStrings(mayDiffer, text) ? json.parse(text, reviver()) : json.parse(text)
}

/**
 * Parses JSON; numbers that would come back as others are `RawNumber`s.
 * @throws SyntaxError also for what nests deeper than `MAX_JSON_LEVELS`
 */
export const parseExactJson = (text: string): unknown => parsed(text, MAY_LOSE_DIGITS, exactOnly)

/**
 * Parses JSON that is printed again and not read; each number keeps its spelling, such as `1.0`.
 * @throws SyntaxError also for what nests deeper than `MAX_JSON_LEVELS`
 */
export const parseRawJson = (text: string): unknown => parsed(text, NOT_CANONICAL, asRaw)
