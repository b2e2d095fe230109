/**
 * Finds the payload of server-sent events in bytes that come in pieces of any size, and hands it on as it comes:
 * nothing is kept, so an event may be of any length. Lines end with LF or CRLF; the CR is left in the payload, where
 * to JSON it is white space.
 */
import { Buffer } from 'node:buffer'

const LF = 0x0a
const CR = 0x0d
const COLON = 0x3a
const SPACE = 0x20
const FIELD = Buffer.from('data')
const LINE_BREAK = Buffer.from([LF])

/** Where in a line the next byte stands. Up to `FIELD.length` it is the number of bytes that matched `FIELD`. */
const AFTER_COLON = FIELD.length + 1
const IN_PAYLOAD = FIELD.length + 2
const IN_OTHER_FIELD = FIELD.length + 3

export interface PayloadSink {
  /** The next bytes of a payload: `bytes[from, to)`, valid only during the call. */
  push(bytes: Buffer, from: number, to: number): void
  /** An event that had a payload is over. */
  reset(): void
}

export class SsePayload {
  readonly #sink: PayloadSink
  #at = 0
  #isLineEmpty = true
  #hasPayload = false

  constructor(sink: PayloadSink) {
    this.#sink = sink
  }

  push(bytes: Buffer, from = 0, to = bytes.length): void {
    let i = from
    while (i < to) {
      if (this.#at < IN_PAYLOAD) {
        if (!this.#startOfLine(bytes[i]!)) i++
        continue
      }
      const found = bytes.indexOf(LF, i)
      const isLineEnd = found >= 0 && found < to
      const end = isLineEnd ? found : to
      if (this.#at === IN_PAYLOAD && end > i) this.#sink.push(bytes, i, end)
      if (isLineEnd) this.#endLine()
      i = end + 1
    }
  }

  /** Takes a byte of the field's name. Returns whether the byte belongs to what comes after it. */
  #startOfLine(byte: number): boolean {
    if (byte === LF) {
      this.#endLine()
      return false
    }
    if (this.#at === AFTER_COLON) {
      this.#beginPayload()
      return byte !== SPACE
    }
    // A line that holds a CR alone is empty.
    if (byte === CR && this.#isLineEmpty) return false
    this.#isLineEmpty = false
    if (this.#at < FIELD.length && byte === FIELD[this.#at]) this.#at++
    else this.#at = this.#at === FIELD.length && byte === COLON ? AFTER_COLON : IN_OTHER_FIELD
    return false
  }

  /** The payload's lines are joined by LF. */
  #beginPayload(): void {
    this.#at = IN_PAYLOAD
    if (this.#hasPayload) this.#sink.push(LINE_BREAK, 0, LINE_BREAK.length)
    this.#hasPayload = true
  }

  #endLine(): void {
    if (this.#isLineEmpty && this.#hasPayload) {
      this.#hasPayload = false
      this.#sink.reset()
    }
    this.#at = 0
    this.#isLineEmpty = true
  }
}
