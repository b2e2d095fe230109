/**
 * Recognises the next delta of an item by comparison with the last one: both are equal up to their text, except for
 * the number of the event. The bytes after the text are not read: with the type before it, they cannot change the
 * output.
 */
import { Buffer } from 'node:buffer'
import { skipString } from '../../core/json/fields.ts'
import { LATER_BYTE_CHARACTERS } from '../../core/pricing/text-tokens.ts'
import { countCharacters } from '../chat-completions/scan.ts'
import { addPattern, isPatternAt, viewOf, wordsOf } from '../sse/byte-pattern.ts'

const QUOTE = 0x22
const BACKSLASH = 0x5c
const ZERO = 0x30
const NINE = 0x39
/** A stream whose deltas always begin differently is no longer compared. */
const MAX_MISSES_IN_A_ROW = 8
const NONE: readonly number[] = []
const NO_BYTES = Buffer.alloc(0)

/** Places in an event. `numberStart` and `numberEnd` are equal where no number precedes the text. */
interface DeltaPlaces {
  readonly start: number
  readonly numberStart: number
  readonly numberEnd: number
  readonly textStart: number
}

export class NextDelta {
  /** Head and neck, as patterns; empty while there is nothing to compare with. */
  #words: readonly number[] = NONE
  /** Up to the number, or to the text where there is none. */
  #headBytes = 0
  /** From the number to the text; 0 where there is none. */
  #neckBytes = 0
  #misses = 0

  /** Returns the characters of output in `bytes[start, end)`, when it begins as the remembered event does; else -1. */
  charactersIn(bytes: Buffer, start: number, end: number): number {
    const words = this.#words
    const headBytes = this.#headBytes
    if (words.length === 0 || start + headBytes > end) return -1
    const view = viewOf(bytes)
    const { byteOffset } = bytes
    if (!isPatternAt(words, 0, headBytes, view, byteOffset + start)) return -1
    let at = start + headBytes
    const neckBytes = this.#neckBytes
    if (neckBytes > 0) {
      while (bytes[at]! >= ZERO && bytes[at]! <= NINE) at++
      if (at + neckBytes > end) return -1
      if (!isPatternAt(words, wordsOf(headBytes), neckBytes, view, byteOffset + at)) return -1
      at += neckBytes
    }
    const characters = charactersAt(bytes, at, end)
    if (characters >= 0) this.#misses = 0
    return characters
  }

  remember(bytes: Buffer, { start, numberStart, numberEnd, textStart }: DeltaPlaces): void {
    if (this.#misses > MAX_MISSES_IN_A_ROW) return
    if (++this.#misses > MAX_MISSES_IN_A_ROW) {
      this.#words = NONE
      return
    }
    const hasNumber = numberEnd > numberStart
    const head = bytes.subarray(start, hasNumber ? numberStart : textStart)
    const neck = hasNumber ? bytes.subarray(numberEnd, textStart) : NO_BYTES
    const words: number[] = []
    addPattern(words, head)
    addPattern(words, neck)
    this.#words = words
    this.#headBytes = head.length
    this.#neckBytes = neck.length
  }
}

/** Returns the characters of the string whose text begins at `from`; -1 if it does not end before `end`. */
function charactersAt(bytes: Buffer, from: number, end: number): number {
  let characters = 0
  for (let i = from; i < end; i++) {
    const byte = bytes[i]!
    if (byte === QUOTE) return characters
    if (byte === BACKSLASH) {
      const textEnd = skipString(bytes, from - 1) - 1
      return textEnd < end && bytes[textEnd] === QUOTE ? countCharacters(bytes, from, textEnd) : -1
    }
    characters += (byte & 0xc0) === 0x80 ? LATER_BYTE_CHARACTERS : 1
  }
  return -1
}
