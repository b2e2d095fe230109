/**
 * Finds the fields of a JSON object in its bytes, so that a request can be changed in three places and otherwise
 * forwarded unchanged. The bytes have already been parsed once: they are valid JSON.
 */
import { Buffer } from 'node:buffer'

/** A value's place: `bytes[start, end)`, without surrounding white space; its quoted name begins at `nameStart`. */
export interface FieldSpan {
  readonly nameStart: number
  readonly start: number
  readonly end: number
}

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COMMA = 0x2c
const COLON = 0x3a
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d
const SPACE = 0x20

/** Strings up to this length are searched byte by byte: a call into the runtime costs more. */
const SHORT_STRING_BYTES = 32

/** Returns the index after the string that opens at `at`. */
export function skipString(bytes: Buffer, at: number): number {
  let i = at + 1
  const shortEnd = Math.min(bytes.length, i + SHORT_STRING_BYTES)
  while (i < shortEnd) {
    const byte = bytes[i]!
    if (byte === QUOTE) return i + 1
    i += byte === BACKSLASH ? 2 : 1
  }
  return skipLongString(bytes, i)
}

/** Returns the index after the quote that closes the string around `from`, which does not follow a backslash. */
function skipLongString(bytes: Buffer, from: number): number {
  let i = from
  for (;;) {
    const quote = bytes.indexOf(QUOTE, i)
    if (quote < 0) return bytes.length
    let before = quote
    while (before > from && bytes[before - 1] === BACKSLASH) before--
    // An even number of backslashes escapes itself, not the quote.
    if ((quote - before) % 2 === 0) return quote + 1
    // A text with one escaped quote has more: a search for each would take longer than a check of the following text.
    i = quote + 1
    const shortEnd = Math.min(bytes.length, i + SHORT_STRING_BYTES)
    while (i < shortEnd) {
      const byte = bytes[i]!
      if (byte === QUOTE) return i + 1
      i += byte === BACKSLASH ? 2 : 1
    }
  }
}

export function skipSpace(bytes: Buffer, at: number): number {
  let i = at
  while (i < bytes.length && bytes[i]! <= SPACE) i++
  return i
}

/** Returns the index after the value that begins at `at`: a string, a number, a word, or a whole object or array. */
export function skipValue(bytes: Buffer, at: number): number {
  const first = bytes[at]
  if (first === QUOTE) return skipString(bytes, at)
  let i = at
  if (first !== OPEN_BRACE && first !== OPEN_BRACKET) {
    while (i < bytes.length) {
      const byte = bytes[i]!
      if (byte === COMMA || byte === CLOSE_BRACE || byte === CLOSE_BRACKET || byte <= SPACE) return i
      i++
    }
    return i
  }
  let depth = 0
  while (i < bytes.length) {
    const byte = bytes[i]!
    if (byte === QUOTE) {
      i = skipString(bytes, i)
      continue
    }
    i++
    if (byte === OPEN_BRACE || byte === OPEN_BRACKET) depth++
    else if ((byte === CLOSE_BRACE || byte === CLOSE_BRACKET) && --depth === 0) return i
  }
  return bytes.length
}

/** Returns the name whose quotes are at `start` and before `end`. */
export function readName(bytes: Buffer, start: number, end: number): string {
  const text = bytes.toString('utf8', start + 1, end - 1)
  return text.includes('\\') ? (JSON.parse(`"${text}"`) as string) : text
}

/**
 * Returns the places of the top-level fields of the object in `bytes`, none of which occurs twice, and of its brace.
 */
export function topLevelFields(bytes: Buffer): {
  fields: ReadonlyMap<string, FieldSpan>
  open: number
} {
  const fields = new Map<string, FieldSpan>()
  const open = skipSpace(bytes, 0)
  let i = skipSpace(bytes, open + 1)
  while (i < bytes.length && bytes[i] === QUOTE) {
    const nameEnd = skipString(bytes, i)
    const name = readName(bytes, i, nameEnd)
    let start = skipSpace(bytes, nameEnd)
    if (bytes[start] === COLON) start = skipSpace(bytes, start + 1)
    const end = skipValue(bytes, start)
    fields.set(name, { nameStart: i, start, end })
    i = skipSpace(bytes, end)
    if (bytes[i] === COMMA) i = skipSpace(bytes, i + 1)
  }
  return { fields, open }
}

export interface Splice {
  readonly start: number
  readonly end: number
  readonly text: string
}

/**
 * Returns the splice that sets a field.
 * @param span the field's place, where the object has it
 * @param open index of the brace of the object, which has another field
 */
export const assignment = (name: string, json: string, span: FieldSpan | undefined, open: number): Splice =>
  span === undefined
    ? { start: open + 1, end: open + 1, text: `"${name}":${json},` }
    : { start: span.start, end: span.end, text: json }

/** Returns the splice that removes a field with its name and comma. The object must have another field. */
export function removal(bytes: Buffer, span: FieldSpan): Splice {
  const after = skipSpace(bytes, span.end)
  if (bytes[after] === COMMA) return { start: span.nameStart, end: after + 1, text: '' }
  let before = span.nameStart - 1
  while (bytes[before]! <= SPACE) before--
  return { start: before, end: span.end, text: '' }
}

/** Returns `bytes` with each splice's range replaced by its text. Splices must not overlap. */
export function spliced(bytes: Buffer, splices: readonly Splice[]): Buffer {
  if (splices.length === 0) return bytes
  const sorted = splices.length === 1 ? splices : [...splices].sort((a, b) => a.start - b.start)
  let length = bytes.length
  for (const splice of sorted) length += Buffer.byteLength(splice.text) - (splice.end - splice.start)
  const out = Buffer.allocUnsafe(length)
  let from = 0
  let to = 0
  for (const splice of sorted) {
    to += bytes.copy(out, to, from, splice.start)
    to += out.write(splice.text, to)
    from = splice.end
  }
  bytes.copy(out, to, from)
  return out
}
