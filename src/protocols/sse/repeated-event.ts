/**
 * Recognizes an event by comparison with the last one that had one string of output and no other content: events of one
 * stream differ in little but that string, and in their number. An event that is equal around them is not read.
 */
import { countCharacters, countedTo, LATER_BYTE_CHARACTERS } from '../../core/pricing/text-tokens.ts'
import { addPattern, isPatternAt, viewOf, wordsOf } from './byte-pattern.ts'

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
  charactersIn(bytes: Buffer, start: number, end: number): number {
    const words = this.#words
    if (words.length === 0) return -1
    const headBytes = this.#headBytes
    const tailBytes = this.#tailBytes
    const to = end - tailBytes
    let from = start + headBytes
    if (from > to) return -1
    const view = viewOf(bytes)
    const { byteOffset } = bytes
    if (!isPatternAt(words, 0, headBytes, view, byteOffset + start)) return -1
    if (!isPatternAt(words, this.#tailWord, tailBytes, view, byteOffset + to)) return -1
    if (this.#neckBytes > 0) from = this.#neckEnd(bytes, from, to)
    if (from < 0) return -1
    let characters = 0
    const isTailFree = tailBytes === 0
    for (let i = from; i < to; i++) {
      const byte = bytes[i]!
      if (byte === QUOTE && isTailFree) {
        this.#misses = 0
        return characters
      }
      if (byte === QUOTE || byte === BACKSLASH || byte === LF)
        return this.#charactersUpTo(bytes, i, to, characters)
      characters += (byte & 0xc0) === 0x80 ? LATER_BYTE_CHARACTERS : 1
    }
    if (isTailFree) return -1
    this.#misses = 0
    return characters
  }

  /** Returns the place after the number at `at` and what follows it up to the text; -1 for something else. */
  #neckEnd(bytes: Buffer, at: number, end: number): number {
    let from = at
    while (bytes[from]! >= ZERO && bytes[from]! <= NINE) from++
    const neckEnd = from + this.#neckBytes
    const isNeck =
      neckEnd <= end &&
      isPatternAt(
        this.#words,
        wordsOf(this.#headBytes),
        this.#neckBytes,
        viewOf(bytes),
        bytes.byteOffset + from,
      )
    return isNeck ? neckEnd : -1
  }

  /** Counts on from the first byte that is not plain text. Returns -1 if the text does not end where it has to. */
  #charactersUpTo(bytes: Buffer, from: number, to: number, before: number): number {
    const characters = before + countCharacters(bytes, from, to)
    const isWhole = this.#tailBytes > 0 ? countedTo === to : countedTo < to && bytes[countedTo] === QUOTE
    if (!isWhole) return -1
    this.#misses = 0
    return characters
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
