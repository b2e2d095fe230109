/**
 * Interns short texts that occur again and again, by their bytes. Such a text is not created each time, and its hash
 * is computed once.
 */

/** A power of two. */
const SLOTS = 256
const MAX_BYTES = 64

export class StringInterner {
  readonly #slots: (string | null)[] = new Array(SLOTS).fill(null)
  readonly #encoding: 'utf8' | 'latin1'

  constructor(encoding: 'utf8' | 'latin1' = 'utf8') {
    this.#encoding = encoding
  }

  /** Returns the text in `bytes[start, end)`. */
  intern(bytes: Buffer, start: number, end: number): string {
    const length = end - start
    if (length === 0 || length > MAX_BYTES) return bytes.toString(this.#encoding, start, end)
    const slot =
      (length + 5 * bytes[start]! + 17 * bytes[start + (length >> 1)]! + 31 * bytes[end - 1]!) % SLOTS
    const known = this.#slots[slot]!
    if (known !== null && isAt(bytes, start, length, known)) return known
    const text = bytes.toString(this.#encoding, start, end)
    // As many characters as bytes: each is its byte, or the mark for one that is no UTF-8, which no byte equals.
    if (text.length === length) this.#slots[slot] = text
    return text
  }
}

function isAt(bytes: Buffer, start: number, length: number, text: string): boolean {
  if (text.length !== length) return false
  for (let i = 0; i < length; i++) if (bytes[start + i] !== text.charCodeAt(i)) return false
  return true
}
