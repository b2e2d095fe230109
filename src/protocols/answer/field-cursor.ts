/**
 * Reads the fields of one JSON object in its bytes: copies nothing and builds no string. Malformed JSON gives fewer
 * fields, never an error or an endless loop.
 */
import { Buffer } from 'node:buffer'
import { skipSpace, skipString, skipValue } from '../../core/json/fields.ts'

const QUOTE = 0x22
const COMMA = 0x2c
const COLON = 0x3a
const OPEN_BRACE = 0x7b
const LETTER_N = 0x6e

export class FieldCursor {
  #bytes: Buffer = Buffer.alloc(0)
  #at = 0
  #nameStart = 0
  #nameEnd = 0
  /** The current field's value: `bytes[start, end)`. */
  start = 0
  end = 0

  /** Moves to before the first field of the object at `at`; the end if that is no object. */
  enter(bytes: Buffer, at: number): void {
    this.#bytes = bytes
    this.#at = bytes[at] === OPEN_BRACE ? skipSpace(bytes, at + 1) : bytes.length
  }

  /** Moves to the next field. Returns false after the last. */
  next(): boolean {
    const bytes = this.#bytes
    if (bytes[this.#at] !== QUOTE) return false
    const nameEnd = skipString(bytes, this.#at)
    this.#nameStart = this.#at + 1
    this.#nameEnd = nameEnd - 1
    const colon = skipSpace(bytes, nameEnd)
    if (bytes[colon] !== COLON) return false
    this.start = skipSpace(bytes, colon + 1)
    this.end = skipValue(bytes, this.start)
    const after = skipSpace(bytes, this.end)
    this.#at = bytes[after] === COMMA ? skipSpace(bytes, after + 1) : bytes.length
    return true
  }

  /** Index at which the current field's quoted name begins. */
  get nameStart(): number {
    return this.#nameStart - 1
  }

  /** Returns whether the current field has this name. */
  is(name: Buffer): boolean {
    return equals(this.#bytes, this.#nameStart, this.#nameEnd, name)
  }

  /** Returns whether the current value is the string `text`, written without escapes. */
  isText(text: Buffer): boolean {
    return this.isString && equals(this.#bytes, this.start + 1, this.end - 1, text)
  }

  get isString(): boolean {
    return this.#bytes[this.start] === QUOTE && this.end > this.start + 1
  }

  get isNull(): boolean {
    return this.#bytes[this.start] === LETTER_N
  }
}

/** Returns whether `bytes[start, end)` is the word. */
export function equals(bytes: Buffer, start: number, end: number, word: Buffer): boolean {
  if (end - start !== word.length) return false
  for (let i = 0; i < word.length; i++) if (bytes[start + i] !== word[i]) return false
  return true
}
