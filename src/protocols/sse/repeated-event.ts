/**
 * Recognizes an event by comparison with the last one that had one string of output and no other content: events of one
 * stream differ in little but that string, and in their number. An event that is equal around them is not read.
 */
import { countCharacters, countedTo, LATER_BYTE_CHARACTERS } from '../../core/pricing/text-tokens.ts'
import { addPattern, countWords, isPatternAt, openView } from './byte-pattern.ts'

const LF = 0x0a
const QUOTE = 0x22
const BACKSLASH = 0x5c
const ZERO = 0x30
const NINE = 0x39
/** A stream whose events always differ elsewhere is no longer compared. */
const MAX_MISSES_IN_A_ROW = 8
const NONE: readonly number[] = []

/** Places in an event. */
interface EventPlaces {
  readonly start: number
  /** Number of the event, before its text. */
  readonly number?: { readonly start: number; readonly end: number }
  readonly textStart: number
  readonly textEnd: number
  /** The bytes from the end of the text up to here are the same in each event; later ones do not matter. */
  readonly end: number
}

export class RepeatedEvent {
  /** Patterns of the bytes before the number, between number and text, and after the text; empty while there are none. */
  #words: readonly number[] = NONE
  #headBytes = 0
  /** 0 where there is no number. */
  #neckBytes = 0
  /** 0 where the text may be followed by anything. */
  #tailBytes = 0
  #tailWord = 0
  #misses = 0

  /**
   * Returns the characters of output in `bytes[start, end)`, weighed by script, when it is the remembered event with
   * another text and another number; else -1.
   */
  countRepeated(bytes: Buffer, start: number, end: number): number {
    const words = this.#words
    if (words.length === 0) return -1
    const headBytes = this.#headBytes
    const tailBytes = this.#tailBytes
    if (tailBytes === 0) return this.#countBehind(bytes, start, end)
    const from = start + headBytes
    const to = end - tailBytes
    if (from > to) return -1
    const view = openView(bytes)
    const { byteOffset } = bytes
    if (!isPatternAt(words, 0, headBytes, view, byteOffset + start)) return -1
    if (!isPatternAt(words, this.#tailWord, tailBytes, view, byteOffset + to)) return -1
    let characters = 0
    for (let i = from; i < to; i++) {
      const byte = bytes[i]!
      if (byte === QUOTE || byte === BACKSLASH || byte === LF) {
        characters += countCharacters(bytes, i, to)
        if (countedTo !== to) return -1
        break
      }
      characters += (byte & 0xc0) === 0x80 ? LATER_BYTE_CHARACTERS : 1
    }
    this.#misses = 0
    return characters
  }

  /** Returns the same where the text may be followed by anything. */
  #countBehind(bytes: Buffer, start: number, end: number): number {
    const words = this.#words
    const headBytes = this.#headBytes
    const neckBytes = this.#neckBytes
    if (start + headBytes > end) return -1
    const view = openView(bytes)
    const { byteOffset } = bytes
    if (!isPatternAt(words, 0, headBytes, view, byteOffset + start)) return -1
    let from = start + headBytes
    if (neckBytes > 0) {
      while (bytes[from]! >= ZERO && bytes[from]! <= NINE) from++
      if (from + neckBytes > end) return -1
      if (!isPatternAt(words, countWords(headBytes), neckBytes, view, byteOffset + from)) return -1
      from += neckBytes
    }
    let characters = 0
    for (let i = from; i < end; i++) {
      const byte = bytes[i]!
      if (byte === QUOTE) {
        this.#misses = 0
        return characters
      }
      if (byte === BACKSLASH || byte === LF) {
        characters += countCharacters(bytes, i, end)
        return countedTo < end && bytes[countedTo] === QUOTE ? characters : -1
      }
      characters += (byte & 0xc0) === 0x80 ? LATER_BYTE_CHARACTERS : 1
    }
    return -1
  }

  /** False for a stream whose events always differ: remembering one is of no use. */
  get isOfUse(): boolean {
    return this.#misses <= MAX_MISSES_IN_A_ROW
  }

  remember(bytes: Buffer, { start, number, textStart, textEnd, end }: EventPlaces): void {
    if (this.#misses > MAX_MISSES_IN_A_ROW) return
    if (++this.#misses > MAX_MISSES_IN_A_ROW) {
      this.#words = NONE
      return
    }
    const headEnd = number?.start ?? textStart
    const neckStart = number?.end ?? textStart
    const words: number[] = []
    addPattern(words, bytes.subarray(start, headEnd))
    addPattern(words, bytes.subarray(neckStart, textStart))
    this.#tailWord = words.length
    addPattern(words, bytes.subarray(textEnd, end))
    this.#words = words
    this.#headBytes = headEnd - start
    this.#neckBytes = textStart - neckStart
    this.#tailBytes = end - textEnd
  }
}
