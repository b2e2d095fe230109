/**
 * Recognizes an event by comparison with the last one that had one string of output and no other content: events of one
 * stream differ in little but that string, and in values that no meter reads, such as numbers and random padding. An event
 * that is equal around them is not read.
 */
import type { Buffer } from 'node:buffer'
import { countCharacters, countedTo, LATER_BYTE_CHARACTERS } from '../../core/pricing/text-tokens.ts'
import { findUnread, type Unread } from '../answer/place-read.ts'
import type { AnswerFacts, Place } from '../answer/places.ts'
import { addPattern, countEqual, countWords, isPatternAt, openView, WORD_BYTES } from './byte-pattern.ts'
import { payloadStart } from './framer.ts'

const QUOTE = 0x22
const COMMA = 0x2c
const OPEN_BRACKET = 0x5b
const BACKSLASH = 0x5c
const CLOSE_BRACKET = 0x5d
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d
const SPACE = 0x20
/** A stream whose events always differ elsewhere is no longer compared. */
const MAX_MISSES_IN_A_ROW = 8
const NONE: readonly number[] = []

/** What follows fixed bytes of the remembered event: its end, its text, a value that differs, or such a value other than an
 * object or a list. */
const END = 0
const TEXT = 1
const VALUE = 2
const SCALAR = 3

export class RepeatedEvent {
  /**
   * Parts of the event: each is the number of its fixed bytes, what follows them, and their words. Empty while there is
   * none. One list: with many streams open each piece of memory costs.
   */
  #parts: readonly number[] = NONE
  #misses = 0
  /** Where the last event differed from the remembered one, counted from its start. */
  #differsAt = -WORD_BYTES
  /** The number of values in the remembered event that no meter reads, and which of them differ, as bits. */
  #unread = 0
  #differing = 0

  /**
   * Returns the characters of output in `bytes[start, end)`, weighed by script, when it is the remembered event with
   * another text and other values that no meter reads; else -1.
   */
  countRepeated(bytes: Buffer, start: number, end: number): number {
    const parts = this.#parts
    if (parts.length === 0) return -1
    const view = openView(bytes)
    const { byteOffset } = bytes
    let characters = 0
    let at = start
    let part = 0
    while (true) {
      const length = parts[part]! | 0
      if (at + length > end || !isPatternAt(parts, part + 2, length, view, byteOffset + at)) break
      const next = parts[part + 1]!
      if (next === END) {
        if (at + length !== end) break
        this.#misses = 0
        return characters
      }
      at += length
      part += 2 + countWords(length)
      if (next === TEXT) {
        const from = at
        let laterBytes = 0
        for (; at < end; at++) {
          const byte = bytes[at]!
          if (byte === QUOTE || byte === BACKSLASH || byte < SPACE) break
          if ((byte & 0xc0) === 0x80) laterBytes++
        }
        characters = at - from + laterBytes * (LATER_BYTE_CHARACTERS - 1)
        if (bytes[at] === BACKSLASH) {
          characters += countCharacters(bytes, at, end)
          at = countedTo
        }
      } else at = skipValue(bytes, at, end, next === SCALAR)
    }
    const equal = countEqual(parts, part + 2, parts[part]!, view, byteOffset + at, byteOffset + end)
    this.#differsAt = at - start + equal
    return -1
  }

  /**
   * Remembers the event `bytes[start, end)`, whose payload is `data`, with one string of output.
   * @param root the places that are read of events like this one
   */
  remember(
    bytes: Buffer,
    start: number,
    end: number,
    data: Buffer,
    { spokenStart, spokenEnd }: AnswerFacts,
    root: Place,
  ): void {
    const payload = payloadStart(data, bytes, start, end)
    if (payload < 0 || this.#misses > MAX_MISSES_IN_A_ROW) return
    this.#parts = NONE
    if (++this.#misses > MAX_MISSES_IN_A_ROW) return
    const unread = this.#differsAt < 0 ? [] : findUnread(data, root)
    this.#findDiffering(unread, start + this.#differsAt - payload)
    const gaps = unread
      .filter((_, i) => (this.#differing & (1 << i)) !== 0)
      .map((value) => ({ ...value, next: value.isScalar ? SCALAR : VALUE }))
    const text = { start: spokenStart, end: spokenEnd, next: TEXT }
    const parts: number[] = []
    let from = start
    for (const gap of [...gaps, text].sort((one, other) => one.start - other.start)) {
      addPart(parts, bytes.subarray(from, payload + gap.start), gap.next)
      from = payload + gap.end
    }
    addPart(parts, bytes.subarray(from, end), END)
    this.#parts = parts
  }

  /** Adds the values around `at`, where an event differs, to those that do. */
  #findDiffering(unread: readonly Unread[], at: number): void {
    if (unread.length !== this.#unread) this.#differing = 0
    this.#unread = unread.length
    for (const [i, { start, end }] of unread.entries())
      if (start <= at + WORD_BYTES && end >= at) this.#differing |= 1 << i
  }
}

function addPart(parts: number[], fixed: Buffer, next: number): void {
  parts.push(fixed.length, next)
  addPattern(parts, fixed)
}

/** Returns the index after the value at `from`, or the index at which it turns out not to be one. */
function skipValue(bytes: Buffer, from: number, end: number, isScalar: boolean): number {
  let depth = 0
  if (isScalar && (bytes[from] === OPEN_BRACE || bytes[from] === OPEN_BRACKET)) return from
  for (let i = from; i < end; i++) {
    const byte = bytes[i]!
    if (byte === QUOTE) {
      i = skipString(bytes, i + 1, end)
      if (depth === 0) return i + 1
    } else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) depth++
    else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) {
      if (depth === 0) return i
      if (--depth === 0) return i + 1
    } else if (byte < SPACE || (byte === COMMA && depth === 0)) return i
  }
  return end
}

/** Returns the index of the quote that ends the string whose text begins at `from`, or of the byte that no string has. */
function skipString(bytes: Buffer, from: number, end: number): number {
  let i = from
  while (i < end && bytes[i] !== QUOTE && bytes[i]! >= SPACE) i += bytes[i] === BACKSLASH ? 2 : 1
  return i
}
