/**
 * The chunks of one stream differ in little but what the model says. This remembers the last event that said one
 * thing and nothing else; an event that equals it around that one string is known without being read.
 */
import { BytePattern, viewOf } from './byte-pattern.ts'

const LF = 0x0a
const QUOTE = 0x22
const BACKSLASH = 0x5c
/** A stream whose events differ elsewhere each time is not compared for ever. */
const MAX_MISSES_IN_A_ROW = 8

export class RepeatedEvent {
  /** Null while there is nothing to compare with. */
  #before: BytePattern | null = null
  #after: BytePattern | null = null
  #misses = 0

  /**
   * The characters said in `bytes[start, end)`, when it is the remembered event with another text; else -1. Text with
   * an escape in it is left to a reader of JSON.
   */
  charactersIn(bytes: Buffer, start: number, end: number): number {
    const before = this.#before
    const after = this.#after
    if (before === null || after === null) return -1
    const from = start + before.length
    const to = end - after.length
    if (from > to) return -1
    const view = viewOf(bytes)
    if (!before.isAt(view, bytes.byteOffset + start) || !after.isAt(view, bytes.byteOffset + to)) return -1
    let characters = 0
    for (let i = from; i < to; i++) {
      const byte = bytes[i]!
      if (byte === QUOTE || byte === BACKSLASH || byte === LF) return -1
      if ((byte & 0xc0) !== 0x80) characters++
    }
    this.#misses = 0
    return characters
  }

  /** Remembers `bytes[start, end)`, in which the one thing said stands at `[saidStart, saidEnd)`. */
  remember(bytes: Buffer, start: number, end: number, saidStart: number, saidEnd: number): void {
    if (this.#misses > MAX_MISSES_IN_A_ROW) return
    if (++this.#misses > MAX_MISSES_IN_A_ROW) {
      this.#before = null
      return
    }
    this.#before = new BytePattern(bytes.subarray(start, saidStart))
    this.#after = new BytePattern(bytes.subarray(saidEnd, end))
  }
}
