import { type Fault, malformed, tooLarge } from '../fault.ts'
import { BACKSLASH, CR, EQUALS, FIELD_TEXT, HEX_VALUE, LF, QUOTE, SEMICOLON, TOKEN } from '../grammar.ts'
import { MAX_CHUNK_EXTENSION_BYTES, MAX_CHUNK_SIZE_DIGITS, MAX_TRAILER_BYTES } from '../limits.ts'
import { ABSENT, MORE, REFUSED } from './field-scanner.ts'
import { FieldSection } from './field-section.ts'

const BAD_SIZE = malformed('illegal chunk size')
const BAD_EXTENSION = malformed('illegal chunk extension')
const BAD_SIZE_END = malformed('chunk size line does not end in CRLF')
const BAD_DATA_END = malformed('chunk data does not end in CRLF')
const FRAMING_TRAILER = malformed('framing field among the trailers')
const LONG_SIZE = tooLarge('chunk size has too many digits')
const LONG_EXTENSION = tooLarge('chunk extension too long')
const LONG_TRAILERS = tooLarge('trailers too long')
const LONG_BODY = tooLarge('body too long')

const SIZE = 0
const EXTENSION_NAME = 1
const EXTENSION_VALUE = 2
const QUOTED = 3
const ESCAPED = 4
const AFTER_QUOTED = 5
const SIZE_LF = 6
const DATA = 7
const DATA_CR = 8
const DATA_LF = 9
const TRAILERS = 10

/** Below this a loop beats the call into native code. */
const LOOP_COPY_BYTES = 48

function moveDown(buffer: Buffer, target: number, from: number, bytes: number): void {
  if (bytes > LOOP_COPY_BYTES) buffer.copyWithin(target, from, from + bytes)
  else for (let i = 0; i < bytes; i++) buffer[target + i] = buffer[from + i]!
}

/**
 * Decodes a chunked body (RFC 9112 7.1), strictly, in place: the data of all chunks in one read is moved together, so
 * that it can be handed on as one piece `dataFrom`..`dataTo`. Extensions and trailers are checked, bounded, skipped.
 */
export class ChunkedDecoder {
  fault: Fault | null = null
  done = false
  dataFrom = 0
  dataTo = 0

  #state = SIZE
  #remaining = 0
  #digits = 0
  /** Bytes of extension in this chunk; of the part now read. */
  #extensionBytes = 0
  #partBytes = 0
  #room = 0
  #trailers: FieldSection | null = null

  /** @param maxBodyBytes bound of the decoded body */
  reset(maxBodyBytes: number): void {
    this.fault = null
    this.done = false
    this.#state = SIZE
    this.#remaining = 0
    this.#digits = 0
    this.#room = maxBodyBytes
    this.#trailers = null
  }

  /** Overwrites `buffer`. @returns the position after the body or after the last byte read */
  decode(buffer: Buffer, from: number, to: number): number {
    let at = from
    let dataFrom = from
    let dataTo = from
    while (at < to && !this.done && this.fault === null) {
      if (this.#state === DATA) {
        const bytes = Math.min(this.#remaining, to - at)
        if (dataTo === dataFrom) dataFrom = dataTo = at
        else moveDown(buffer, dataTo, at, bytes)
        dataTo += bytes
        at += bytes
        this.#remaining -= bytes
        if (this.#remaining === 0) this.#state = DATA_CR
      } else if (this.#state === TRAILERS) at = this.#readTrailers(buffer, at, to)
      else this.#control(buffer[at++]!)
    }
    this.dataFrom = dataFrom
    this.dataTo = dataTo
    return at
  }

  #control(byte: number): void {
    switch (this.#state) {
      case SIZE:
        this.#size(byte)
        break
      case SIZE_LF:
        if (byte !== LF) this.fault = BAD_SIZE_END
        else if (this.#remaining > 0) this.#state = DATA
        else this.#state = TRAILERS
        break
      case DATA_CR:
        if (byte !== CR) this.fault = BAD_DATA_END
        else this.#state = DATA_LF
        break
      case DATA_LF:
        if (byte !== LF) this.fault = BAD_DATA_END
        else {
          this.#state = SIZE
          this.#digits = 0
        }
        break
      default:
        this.#extension(byte)
    }
  }

  #size(byte: number): void {
    const digit = HEX_VALUE[byte]!
    if (digit < 16) {
      if (++this.#digits > MAX_CHUNK_SIZE_DIGITS) this.fault = LONG_SIZE
      else this.#remaining = this.#remaining * 16 + digit
    } else if (this.#digits === 0) this.fault = BAD_SIZE
    else if (byte === CR) this.#endSizeLine()
    else if (byte === SEMICOLON) {
      this.#state = EXTENSION_NAME
      this.#extensionBytes = 0
      this.#partBytes = 0
    } else this.fault = BAD_SIZE
  }

  #endSizeLine(): void {
    this.#state = SIZE_LF
    this.#room -= this.#remaining
    if (this.#room < 0) this.fault = LONG_BODY
  }

  /** `;name`, `;name=token`, `;name="quoted"`, any number of them, no blanks. */
  #extension(byte: number): void {
    if (++this.#extensionBytes > MAX_CHUNK_EXTENSION_BYTES) {
      this.fault = LONG_EXTENSION
      return
    }
    const state = this.#state
    if (state === QUOTED || state === ESCAPED) {
      if (FIELD_TEXT[byte] === 0) this.fault = BAD_EXTENSION
      else if (state === ESCAPED) this.#state = QUOTED
      else if (byte === BACKSLASH) this.#state = ESCAPED
      else if (byte === QUOTE) this.#state = AFTER_QUOTED
    } else if (TOKEN[byte] === 1 && state !== AFTER_QUOTED) this.#partBytes++
    else if (byte === QUOTE && state === EXTENSION_VALUE && this.#partBytes === 0) this.#state = QUOTED
    else if (state !== AFTER_QUOTED && this.#partBytes === 0) this.fault = BAD_EXTENSION
    else if (byte === CR) this.#endSizeLine()
    else {
      this.#partBytes = 0
      if (byte === SEMICOLON) this.#state = EXTENSION_NAME
      else if (byte === EQUALS && state === EXTENSION_NAME) this.#state = EXTENSION_VALUE
      else this.fault = BAD_EXTENSION
    }
  }

  #readTrailers(buffer: Buffer, from: number, to: number): number {
    this.#trailers ??= new FieldSection(MAX_TRAILER_BYTES, LONG_TRAILERS, false)
    const end = this.#trailers.read(buffer, from, to)
    if (end === MORE) return to
    const { fields } = this.#trailers
    if (end === REFUSED) this.fault = this.#trailers.fault
    else if (fields.contentLength !== ABSENT || fields.chunked) this.fault = FRAMING_TRAILER
    else this.done = true
    return end === REFUSED ? to : end
  }
}
