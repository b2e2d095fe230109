/**
 * Shortens an event that is too long to be kept: one that holds a picture, or all that was said. Elements of arrays are
 * left out and long strings are cut, in bytes that come in pieces of any size; fields of objects remain, so that what
 * is left can be read as the event itself would be.
 */
import { Buffer } from 'node:buffer'

const QUOTE = 0x22
const BACKSLASH = 0x5c
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d

/** No string that a meter reads is longer. */
export const MAX_STRING_BYTES = 1024
/** Of an event whose fields alone are more, nothing is read. */
export const MAX_ABRIDGED_BYTES = 65_536

export class EventAbridger {
  readonly #kept = Buffer.allocUnsafe(MAX_ABRIDGED_BYTES)
  #length = 0
  /** Brackets open since the outermost array began; 0 outside of arrays. */
  #depth = 0
  #isInString = false
  #isEscaped = false
  /** Bytes of the current string so far. */
  #stringBytes = 0
  #isOverfull = false

  push(bytes: Buffer, start: number, end: number): void {
    let i = start
    while (i < end && !this.#isOverfull)
      i = this.#isInString ? this.#string(bytes, i, end) : this.#outside(bytes, i)
  }

  /** What is left of the event; empty where that is too much. The next event begins. */
  take(): Buffer {
    const taken = this.#isOverfull ? Buffer.alloc(0) : Buffer.from(this.#kept.subarray(0, this.#length))
    this.#length = 0
    this.#depth = 0
    this.#isInString = false
    this.#isEscaped = false
    this.#isOverfull = false
    return taken
  }

  #outside(bytes: Buffer, at: number): number {
    const byte = bytes[at]!
    if (byte === QUOTE) {
      this.#isInString = true
      this.#stringBytes = 0
    }
    if (this.#depth === 0) this.#keep(byte)
    if (byte === OPEN_BRACKET || (byte === OPEN_BRACE && this.#depth > 0)) this.#depth++
    else if ((byte === CLOSE_BRACKET || byte === CLOSE_BRACE) && this.#depth > 0 && --this.#depth === 0)
      this.#keep(byte)
    return at + 1
  }

  /** Goes on in a string. Returns the index after what was read of it. */
  #string(bytes: Buffer, from: number, end: number): number {
    if (this.#isEscaped) {
      this.#isEscaped = false
      this.#keepOfString(bytes, from, from + 1)
      return from + 1
    }
    let i = from
    while (i < end && bytes[i] !== QUOTE && bytes[i] !== BACKSLASH) i++
    this.#keepOfString(bytes, from, i)
    if (i === end) return end
    if (bytes[i] === QUOTE) {
      this.#isInString = false
      if (this.#depth === 0) this.#keep(QUOTE)
    } else {
      this.#isEscaped = true
      this.#keepOfString(bytes, i, i + 1)
    }
    return i + 1
  }

  /** A string is kept whole or not at all: half an escape would make another string of it. */
  #keepOfString(bytes: Buffer, from: number, to: number): void {
    if (this.#depth > 0 || this.#stringBytes > MAX_STRING_BYTES) return
    this.#stringBytes += to - from
    if (this.#stringBytes > MAX_STRING_BYTES) {
      this.#length -= this.#stringBytes - (to - from)
      return
    }
    for (let i = from; i < to; i++) this.#keep(bytes[i]!)
  }

  #keep(byte: number): void {
    if (this.#length === MAX_ABRIDGED_BYTES) this.#isOverfull = true
    else this.#kept[this.#length++] = byte
  }
}
