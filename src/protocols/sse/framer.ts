/**
 * Cuts a server-sent event stream into events without decoding it. Bytes come in pieces of any size; an event is
 * emitted when the empty line that ends it has arrived. Lines end with LF, CRLF or CR; the stream may begin with a
 * byte order mark, which is left in front of its first event.
 */
import { Buffer } from 'node:buffer'

const LF = 0x0a
const CR = 0x0d
const COLON = 0x3a
const SPACE = 0x20
const FIELD = Buffer.from('data')
const LINE_BREAK = Buffer.from([LF])
const NONE = Buffer.alloc(0)
const BYTE_ORDER_MARK = Buffer.from([0xef, 0xbb, 0xbf])

/** A longer event is not kept: it is read as its bytes pass. */
export const MAX_READ_EVENT_BYTES = 262_144
const FIRST_CAPACITY_BYTES = 1024

function isDataLine(bytes: Buffer, at: number, lineEnd: number): boolean {
  const after = at + FIELD.length
  if (after > lineEnd) return false
  for (let i = 0; i < FIELD.length; i++) if (bytes[at + i] !== FIELD[i]) return false
  return after === lineEnd || bytes[after] === COLON
}

function lfLineEnd(bytes: Buffer, from: number, end: number): number {
  const found = bytes.indexOf(LF, from)
  return found < 0 || found > end ? anyLineEnd(bytes, from, end) : found
}

function anyLineEnd(bytes: Buffer, from: number, end: number): number {
  let i = from
  while (i < end && bytes[i] !== LF && bytes[i] !== CR) i++
  return i
}

const hasMark = (bytes: Buffer, at: number): boolean =>
  bytes[at] === BYTE_ORDER_MARK[0] &&
  bytes[at + 1] === BYTE_ORDER_MARK[1] &&
  bytes[at + 2] === BYTE_ORDER_MARK[2]

/** Returns the payload of one event: the text after `data:` on each such line, joined by LF; null when it has none. */
export function eventData(bytes: Buffer, start: number, end: number): Buffer | null {
  let single: Buffer | null = null
  let joined: Buffer[] | null = null
  let at = hasMark(bytes, start) ? start + BYTE_ORDER_MARK.length : start
  const hasCrLines = bytes[end - 1] === CR
  while (at < end) {
    const next = hasCrLines ? anyLineEnd(bytes, at, end) : lfLineEnd(bytes, at, end)
    const lineEnd = next > at && bytes[next - 1] === CR ? next - 1 : next
    if (isDataLine(bytes, at, lineEnd)) {
      let from = Math.min(lineEnd, at + FIELD.length + 1)
      if (from < lineEnd && bytes[from] === SPACE) from++
      const line = bytes.subarray(from, lineEnd)
      if (single === null) single = line
      else {
        joined ??= [single]
        joined.push(LINE_BREAK, line)
      }
    }
    at = next + 1
  }
  return joined === null ? single : Buffer.concat(joined)
}

/**
 * Returns the index at which a payload of `eventData` begins in its event, `bytes[start, end)`; -1 for one that is joined
 * from several lines: it is a copy, and its places are not places of the event.
 */
export function payloadStart(data: Buffer, bytes: Buffer, start: number, end: number): number {
  const at = data.byteOffset - bytes.byteOffset
  return data.buffer === bytes.buffer && at >= start && at + data.length <= end ? at : -1
}

/**
 * Called for each event: `bytes[start, end)` is all of it, its empty line included, valid only during the call. Of an
 * event too long to be read (`isReadable` false) comes what `takeTail` has not handed out.
 */
type OnEvent = (bytes: Buffer, start: number, end: number, isReadable: boolean) => void

/** Takes the bytes of events that are too long to be kept. */
export interface LongEventReader {
  /** @param bytes of which `[start, end)` belongs to the event; valid only during the call */
  push(bytes: Buffer, start: number, end: number): void
}

export class SseFramer {
  readonly #onEvent: OnEvent
  readonly #long: LongEventReader
  #pending: Buffer = NONE
  #pendingLength = 0
  #skipping = false
  #lineIsEmpty = true
  /** The last byte was a CR, and an LF may belong to it. */
  #endsWithCr = false
  /** The last line ended with only a CR. */
  #isCrStyle = false
  /** Events too long to be read, ended or not. */
  unread = 0

  constructor(onEvent: OnEvent, long: LongEventReader) {
    this.#onEvent = onEvent
    this.#long = long
  }

  /** Inside an event that is too long to be read: its bytes are no longer kept. */
  get isSkipping(): boolean {
    return this.#skipping
  }

  /** All that came belongs to events that have ended. */
  get isBetweenEvents(): boolean {
    return this.#pendingLength === 0 && this.#lineIsEmpty && !this.#skipping
  }

  /** The bytes of an unfinished event; a view that the next piece overwrites. */
  get tail(): Buffer {
    return this.#pending.subarray(0, this.#pendingLength)
  }

  /** Takes the next piece. Returns the index in it after the last event that it ended; 0 when it ended none. */
  push(piece: Buffer): number {
    if (this.#endsWithCr || piece.includes(CR)) return this.#pushAnyLines(piece)
    let start = 0
    let line = 0
    for (let lf = piece.indexOf(LF); lf >= 0; lf = piece.indexOf(LF, line)) {
      if (this.#lineIsEmpty && lf === line) {
        this.#close(piece, start, lf + 1)
        start = lf + 1
      }
      this.#lineIsEmpty = true
      this.#isCrStyle = false
      line = lf + 1
    }
    this.#lineIsEmpty &&= line === piece.length
    this.#buffer(piece, start)
    return start
  }

  /** Reads a piece with a CR, or one after a CR to which an LF may belong. */
  #pushAnyLines(piece: Buffer): number {
    let start = 0
    let i = 0
    if (this.#endsWithCr && piece.length > 0) {
      this.#endsWithCr = false
      this.#isCrStyle = piece[0] !== LF
      i = this.#isCrStyle ? 0 : 1
      start = this.#endLine(piece, start, i)
    }
    while (i < piece.length) {
      const byte = piece[i++]!
      if (byte !== LF && byte !== CR) {
        this.#lineIsEmpty = false
        continue
      }
      if (byte === CR) {
        // The end of the line before decides whether an LF is expected.
        if (i === piece.length && !this.#isCrStyle) {
          this.#endsWithCr = true
          break
        }
        if (i < piece.length) this.#isCrStyle = piece[i] !== LF
        if (i < piece.length && !this.#isCrStyle) i++
      } else this.#isCrStyle = false
      start = this.#endLine(piece, start, i)
    }
    this.#buffer(piece, start)
    return start
  }

  /** Ends a line before `end`. Returns the index at which the current event begins. */
  #endLine(piece: Buffer, start: number, end: number): number {
    const isEventOver = this.#lineIsEmpty
    this.#lineIsEmpty = true
    if (!isEventOver) return start
    this.#close(piece, start, end)
    return end
  }

  #close(piece: Buffer, start: number, end: number): void {
    if (this.#skipping) {
      this.#skipping = false
      this.#pendingLength = 0
      this.#long.push(piece, start, end)
      this.#onEvent(piece, start, end, false)
    } else if (this.#pendingLength === 0) {
      this.#emit(piece, start, end)
    } else {
      this.#append(piece, start, end)
      const whole = this.tail
      this.#pendingLength = 0
      this.#emit(whole, 0, whole.length)
    }
  }

  /** Emits an event, in the same form however it was cut into pieces. */
  #emit(bytes: Buffer, start: number, end: number): void {
    const isReadable = end - start <= MAX_READ_EVENT_BYTES
    if (!isReadable) {
      this.unread++
      this.#long.push(bytes, start, end)
    }
    this.#onEvent(bytes, start, end, isReadable)
  }

  #buffer(piece: Buffer, start: number): void {
    if (start === piece.length) return
    if (this.#skipping) this.#long.push(piece, start, piece.length)
    else if (this.#pendingLength + piece.length - start > MAX_READ_EVENT_BYTES) {
      this.#skipping = true
      this.unread++
      this.#long.push(this.#pending, 0, this.#pendingLength)
      this.#long.push(piece, start, piece.length)
    } else this.#append(piece, start, piece.length)
  }

  /** Returns the bytes of an unfinished event and clears them. */
  takeTail(): Buffer {
    const tail = Buffer.from(this.tail)
    this.#pendingLength = 0
    return tail
  }

  #append(piece: Buffer, start: number, end: number): void {
    const needed = this.#pendingLength + end - start
    if (needed > this.#pending.length) {
      const grown = Buffer.allocUnsafeSlow(Math.max(needed, 2 * this.#pending.length, FIRST_CAPACITY_BYTES))
      this.#pending.copy(grown, 0, 0, this.#pendingLength)
      this.#pending = grown
    }
    piece.copy(this.#pending, this.#pendingLength, start, end)
    this.#pendingLength = needed
  }
}
