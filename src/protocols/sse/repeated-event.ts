/**
 * Recognises a chunk by comparison with the last event that had one string of output and no other content: chunks of
 * one stream differ in little but that string. An event that is equal around it is not read.
 */
import { LATER_BYTE_CHARACTERS } from '../../core/pricing/text-tokens.ts'
import { addPattern, isPatternAt, viewOf, wordsOf } from './byte-pattern.ts'

const LF = 0x0a
const QUOTE = 0x22
const BACKSLASH = 0x5c
/** A stream whose events always differ elsewhere is no longer compared. */
const MAX_MISSES_IN_A_ROW = 8
const NONE: readonly number[] = []

export class RepeatedEvent {
  /** Patterns of the bytes before and after the text; empty while there is nothing to compare with. */
  #words: readonly number[] = NONE
  #beforeBytes = 0
  #afterBytes = 0
  #misses = 0

  /**
   * Returns the characters of output in `bytes[start, end)`, weighed by script, when it is the remembered event with
   * another text; else -1. A reader of JSON takes text with an escape.
   */
  charactersIn(bytes: Buffer, start: number, end: number): number {
    const words = this.#words
    if (words.length === 0) return -1
    const beforeBytes = this.#beforeBytes
    const afterBytes = this.#afterBytes
    const from = start + beforeBytes
    const to = end - afterBytes
    if (from > to) return -1
    const view = viewOf(bytes)
    const { byteOffset } = bytes
    if (!isPatternAt(words, 0, beforeBytes, view, byteOffset + start)) return -1
    if (!isPatternAt(words, wordsOf(beforeBytes), afterBytes, view, byteOffset + to)) return -1
    let characters = 0
    for (let i = from; i < to; i++) {
      const byte = bytes[i]!
      if (byte === QUOTE || byte === BACKSLASH || byte === LF) return -1
      characters += (byte & 0xc0) === 0x80 ? LATER_BYTE_CHARACTERS : 1
    }
    this.#misses = 0
    return characters
  }

  /** Remembers `bytes[start, end)`, whose one string of output is at `[saidStart, saidEnd)`. */
  remember(bytes: Buffer, start: number, end: number, saidStart: number, saidEnd: number): void {
    if (this.#misses > MAX_MISSES_IN_A_ROW) return
    if (++this.#misses > MAX_MISSES_IN_A_ROW) {
      this.#words = NONE
      return
    }
    const words: number[] = []
    addPattern(words, bytes.subarray(start, saidStart))
    addPattern(words, bytes.subarray(saidEnd, end))
    this.#words = words
    this.#beforeBytes = saidStart - start
    this.#afterBytes = end - saidEnd
  }
}
