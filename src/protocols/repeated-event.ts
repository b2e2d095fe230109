/**
 * The chunks of one stream differ in little but what the model says. This remembers the last event that said one
 * thing and nothing else; an event that equals it around that one string is known without being read.
 */

const QUOTE = 0x22
const BACKSLASH = 0x5c
const NONE = Buffer.alloc(0)
/** A stream whose events differ elsewhere each time is not compared for ever. */
const MAX_MISSES_IN_A_ROW = 8

export class RepeatedEvent {
  #before: Buffer = NONE
  #after: Buffer = NONE
  #misses = 0

  /**
   * The characters said in `bytes[start, end)`, when it is the remembered event with another text; else -1. Text with
   * an escape in it is left to a reader of JSON.
   */
  charactersIn(bytes: Buffer, start: number, end: number): number {
    const from = start + this.#before.length
    const to = end - this.#after.length
    if (this.#before.length === 0 || from > to) return -1
    if (bytes.compare(this.#before, 0, this.#before.length, start, from) !== 0) return -1
    if (bytes.compare(this.#after, 0, this.#after.length, to, end) !== 0) return -1
    let characters = 0
    for (let i = from; i < to; i++) {
      const byte = bytes[i]!
      if (byte === QUOTE || byte === BACKSLASH) return -1
      if ((byte & 0xc0) !== 0x80) characters++
    }
    this.#misses = 0
    return characters
  }

  /** Remembers `bytes[start, end)`, in which the one thing said stands at `[saidStart, saidEnd)`. */
  remember(bytes: Buffer, start: number, end: number, saidStart: number, saidEnd: number): void {
    if (this.#misses > MAX_MISSES_IN_A_ROW) return
    if (++this.#misses > MAX_MISSES_IN_A_ROW) {
      this.#before = NONE
      return
    }
    this.#before = Buffer.from(bytes.subarray(start, saidStart))
    this.#after = Buffer.from(bytes.subarray(saidEnd, end))
  }
}
