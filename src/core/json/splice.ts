/** Changes a JSON text in a few places and leaves its other bytes as they are. The places are those of the tape. */
import { Buffer } from 'node:buffer'

/** A value's place: `bytes[start, end)`, without surrounding white space; its quoted name begins at `nameStart`. */
export interface FieldSpan {
  readonly nameStart: number
  readonly start: number
  readonly end: number
}

const COMMA = 0x2c
const SPACE = 0x20
const LETTER_N = 0x6e

export interface Splice {
  readonly start: number
  readonly end: number
  readonly text: string
}

/** Returns whether the object has the field. A null stands for an absent one. */
export const isSet = (bytes: Buffer, span: FieldSpan | null | undefined): span is FieldSpan =>
  span != null && bytes[span.start] !== LETTER_N

/** Returns a field as it is written, with its name. */
export const cutField = (bytes: Buffer, { nameStart, end }: FieldSpan): Buffer =>
  bytes.subarray(nameStart, end)

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
  let after = span.end
  while (bytes[after]! <= SPACE) after++
  if (bytes[after] === COMMA) return { start: span.nameStart, end: after + 1, text: '' }
  let before = span.nameStart - 1
  while (bytes[before]! <= SPACE) before--
  return { start: before, end: span.end, text: '' }
}

/** Returns `bytes` with each splice's range replaced by its text. Splices must not overlap. */
export function applySplices(bytes: Buffer, splices: readonly Splice[]): Buffer {
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
