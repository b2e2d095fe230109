/**
 * Finds the payload of server-sent events in bytes that come in pieces of any size, and hands it on as it comes:
 * nothing is kept, so an event may be of any length. Lines end with LF, CRLF or CR; the stream may begin with a byte
 * order mark.
 */
import { Buffer } from 'node:buffer'

const LF = 0x0a
const CR = 0x0d
const COLON = 0x3a
const SPACE = 0x20
const FIELD = Buffer.from('data')
const LINE_BREAK = Buffer.from([LF])
const BYTE_ORDER_MARK = Buffer.from([0xef, 0xbb, 0xbf])

/** Position of the next byte in a line. Up to `FIELD.length` it is the number of bytes that matched `FIELD`. */
const AFTER_COLON = FIELD.length + 1
const IN_PAYLOAD = FIELD.length + 2
const IN_OTHER_FIELD = FIELD.length + 3

/** Returns the index of the LF or CR that ends the line of `from`; `to` without one. */
function lineEnd(bytes: Buffer, from: number, to: number, hasCr: boolean): number {
  if (!hasCr) {
    const found = bytes.indexOf(LF, from)
    return found < 0 || found > to ? to : found
  }
  let i = from
  while (i < to && bytes[i] !== LF && bytes[i] !== CR) i++
  return i
}

interface PayloadSink {
  /** Takes the next bytes of a payload: `bytes[from, to)`, valid only during the call. */
  push(bytes: Buffer, from: number, to: number): void
  /** Called when an event with a payload has ended. */
  reset(): void
}

export class SsePayload {
  readonly #sink: PayloadSink
  #at = 0
  #isLineEmpty = true
  #hasPayload = false
  /** A line has arrived since the last empty one. */
  #isInEvent = false
  /** The last byte was a CR: an LF behind it belongs to it. */
  #isAfterCr = false
  /** Number of bytes of the mark that have arrived; all of them once the stream has begun. */
  #markBytes = 0

  constructor(sink: PayloadSink) {
    this.#sink = sink
  }

  /** All that came belongs to events that have ended. */
  get isBetweenEvents(): boolean {
    return this.#at === 0 && this.#isLineEmpty && !this.#isInEvent
  }

  push(bytes: Buffer, from = 0, to = bytes.length): void {
    let i = this.#markBytes < BYTE_ORDER_MARK.length ? this.#mark(bytes, from, to) : from
    const cr = bytes.indexOf(CR, i)
    const hasCr = cr >= 0 && cr < to
    while (i < to) {
      if (this.#isAfterCr) {
        this.#isAfterCr = false
        if (bytes[i] === LF) {
          i++
          continue
        }
      }
      if (this.#at < IN_PAYLOAD) {
        if (!this.#startOfLine(bytes[i]!)) i++
        continue
      }
      const end = lineEnd(bytes, i, to, hasCr)
      if (this.#at === IN_PAYLOAD && end > i) this.#sink.push(bytes, i, end)
      if (end < to) this.#endLine(bytes[end]!)
      i = end + 1
    }
  }

  /** Passes over a byte order mark at the beginning of the stream. Returns the index behind it. */
  #mark(bytes: Buffer, from: number, to: number): number {
    let i = from
    while (i < to && this.#markBytes < BYTE_ORDER_MARK.length) {
      if (bytes[i] !== BYTE_ORDER_MARK[this.#markBytes]) {
        this.#markBytes = BYTE_ORDER_MARK.length
        break
      }
      this.#markBytes++
      i++
    }
    return i
  }

  /** Takes a byte of the field's name. Returns whether the byte belongs to what comes after it. */
  #startOfLine(byte: number): boolean {
    if (byte === LF || byte === CR) {
      this.#endLine(byte)
      return false
    }
    this.#isInEvent = true
    if (this.#at === AFTER_COLON) {
      this.#beginPayload()
      return byte !== SPACE
    }
    this.#isLineEmpty = false
    if (this.#at < FIELD.length && byte === FIELD[this.#at]) this.#at++
    else this.#at = this.#at === FIELD.length && byte === COLON ? AFTER_COLON : IN_OTHER_FIELD
    return false
  }

  /** Begins a payload line; its lines are joined by LF. */
  #beginPayload(): void {
    this.#at = IN_PAYLOAD
    if (this.#hasPayload) this.#sink.push(LINE_BREAK, 0, LINE_BREAK.length)
    this.#hasPayload = true
  }

  #endLine(byte: number): void {
    this.#isAfterCr = byte === CR
    if (this.#isLineEmpty) {
      this.#isInEvent = false
      if (this.#hasPayload) this.#sink.reset()
      this.#hasPayload = false
    }
    this.#at = 0
    this.#isLineEmpty = true
  }
}
