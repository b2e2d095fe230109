/**
 * The deltas of one item begin alike, up to their text; what differs is at most the number of the event. This
 * remembers how the last one began, so that the next is known by comparing. What follows the text is not looked at:
 * with the type in front of it, nothing there could change what was said.
 */
import { skipString } from '../core/json-fields.ts'
import { countCharacters } from './chat-completions-scan.ts'

const QUOTE = 0x22
const BACKSLASH = 0x5c
const ZERO = 0x30
const NINE = 0x39
const NONE = Buffer.alloc(0)
/** A stream whose deltas begin otherwise each time is not compared for ever. */
const MAX_MISSES_IN_A_ROW = 8

/** Places in an event. `numberStart` and `numberEnd` are equal where no number stands in front of the text. */
export interface DeltaPlaces {
  readonly start: number
  readonly numberStart: number
  readonly numberEnd: number
  readonly textStart: number
}

function isAt(bytes: Buffer, at: number, end: number, expected: Buffer): boolean {
  const length = expected.length
  if (at + length > end) return false
  for (let i = 0; i < length; i++) if (bytes[at + i] !== expected[i]) return false
  return true
}

export class NextDelta {
  /** Up to the number, or all of it where there is none. */
  #head: Buffer = NONE
  /** From the number to the text. */
  #neck: Buffer = NONE
  #misses = 0

  /** The characters said in `bytes[start, end)`, when it begins as the remembered event does; else -1. */
  charactersIn(bytes: Buffer, start: number, end: number): number {
    const head = this.#head
    if (head.length === 0 || !isAt(bytes, start, end, head)) return -1
    let at = start + head.length
    if (this.#neck.length > 0) {
      while (bytes[at]! >= ZERO && bytes[at]! <= NINE) at++
      if (!isAt(bytes, at, end, this.#neck)) return -1
      at += this.#neck.length
    }
    const characters = charactersAt(bytes, at, end)
    if (characters >= 0) this.#misses = 0
    return characters
  }

  remember(bytes: Buffer, { start, numberStart, numberEnd, textStart }: DeltaPlaces): void {
    if (this.#misses > MAX_MISSES_IN_A_ROW) return
    if (++this.#misses > MAX_MISSES_IN_A_ROW) {
      this.#head = NONE
      return
    }
    const hasNumber = numberEnd > numberStart
    this.#head = Buffer.from(bytes.subarray(start, hasNumber ? numberStart : textStart))
    this.#neck = hasNumber ? Buffer.from(bytes.subarray(numberEnd, textStart)) : NONE
  }
}

/** The characters of the string whose text begins at `from`; -1 if it does not end before `end`. */
function charactersAt(bytes: Buffer, from: number, end: number): number {
  let characters = 0
  for (let i = from; i < end; i++) {
    const byte = bytes[i]!
    if (byte === QUOTE) return characters
    if (byte === BACKSLASH) {
      const textEnd = skipString(bytes, from - 1) - 1
      return textEnd < end && bytes[textEnd] === QUOTE ? countCharacters(bytes, from, textEnd) : -1
    }
    if ((byte & 0xc0) !== 0x80) characters++
  }
  return -1
}
