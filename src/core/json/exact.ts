/**
 * JSON whose numbers keep their digits. A number that a JavaScript number cannot give back is kept as its text, in an
 * object that `JSON.stringify` prints as it was written. Texts that nest deeper than `MAX_JSON_LEVELS` are refused, so
 * that later code may be recursive.
 */
import { MAX_JSON_LEVELS, scanJson, type Tape } from './scanner/tape.ts'

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

/** Makes a number that keeps its digits. `text` must be a number of JSON. */
export const makeRawNumber = (text: string): RawNumber => json.rawJSON(text)

/** Returns a raw number as a JavaScript number, rounded if needed; any other value unchanged. */
export const roundRawNumber = (value: unknown): unknown =>
  isRawNumber(value) ? Number(value.rawJSON) : value

const ZERO = 0x30

/** Each level takes two characters. */
const MIN_DEEP_CHARS = 2 * MAX_JSON_LEVELS

/** Returns whether a JSON text nests deeper than `MAX_JSON_LEVELS`. */
export const isTooDeep = (text: string): boolean =>
  text.length > MIN_DEEP_CHARS &&
  scanJson(
    text,
    0,
    null,
    () => false,
    (fault) => fault === 'levels',
  )

const NUMBER = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/
/** A longer number is compared by its text: nobody sends one by accident. */
const MAX_COMPARED_CHARS = 1000

/** Returns one text for all spellings of a number; a number that is too long unchanged. */
export function toCanonicalNumber(text: string): string {
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
  toCanonicalNumber(String(value)) === toCanonicalNumber(source)

/** Numbers of one text that JavaScript prints differently: each takes microseconds to compare. */
export const MAX_ODD_NUMBERS = 5_000

/**
 * Makes a reviver that keeps a number as its text where `keeps` returns true.
 * @throws SyntaxError beyond `MAX_ODD_NUMBERS`
 */
function makeReviver(keeps: (value: number, source: string) => boolean): Reviver {
  let odd = 0
  return (_name, value, { source }) => {
    if (typeof value !== 'number' || source === undefined || String(value) === source) return value
    if (++odd > MAX_ODD_NUMBERS)
      throw new SyntaxError(
        `it holds more than ${MAX_ODD_NUMBERS} numbers with many digits, or written oddly`,
      )
    return keeps(value, source) ? makeRawNumber(source) : value
  }
}

const makeExactReviver = () => makeReviver((value, source) => !isExact(value, source))
const makeRawReviver = () => makeReviver(() => true)

/** @throws SyntaxError for a text that nests too deep */
function parse(
  text: string,
  differs: (tape: Tape) => boolean,
  reviver: () => Reviver,
  change = (value: unknown) => value,
): unknown {
  const isRevived = scanJson(text, 0, null, differs, (fault) => {
    if (fault === 'levels') throw new SyntaxError(`it nests deeper than ${MAX_JSON_LEVELS} levels`)
    // The parser says what is wrong.
    return false
  })
  return isRevived ? change(json.parse(text, reviver())) : json.parse(text)
}

/**
 * Parses JSON; numbers whose value would change are `RawNumber`s.
 * @param change is applied to a value that may hold a `RawNumber`
 * @throws SyntaxError also for what nests deeper than `MAX_JSON_LEVELS`
 */
export const parseExactJson = (text: string, change?: (value: unknown) => unknown): unknown =>
  parse(text, (tape) => tape.hasLongNumbers, makeExactReviver, change)

/**
 * Parses JSON that is printed again and not read; each number keeps its spelling, such as `1.0`.
 * @throws SyntaxError also for what nests deeper than `MAX_JSON_LEVELS`
 */
export const parseRawJson = (text: string): unknown =>
  parse(text, (tape) => tape.hasOddNumbers, makeRawReviver)
