import type { Buffer } from 'node:buffer'
import { StringInterner } from '../../core/string-interner.ts'
import { type Fault, malformed, tooLarge } from '../fault.ts'
import { COLON, CR, DIGIT_0, FIELD_TEXT, HTAB, LF, SP, TOKEN } from '../grammar.ts'
import { MAX_CONTENT_LENGTH_DIGITS, MAX_RESPONSE_HEADER_COUNT } from '../limits.ts'

/** Answers of a scan that are not a position. */
export const MORE = -1
export const REFUSED = -2

export const ABSENT = -1

const BAD_NAME = malformed('illegal header name, folded line or blank before the colon')
const BAD_VALUE = malformed('illegal character in a header value')
const BAD_LINE_END = malformed('header line does not end in CRLF')
const TOO_MANY = tooLarge('too many header fields')
const BAD_LENGTH = malformed('content-length is not a plain number')
const TWO_LENGTHS = malformed('more than one content-length')
const BAD_ENCODING = malformed('transfer-encoding other than one "chunked"')

const CONTENT_LENGTH = 'content-length'
const TRANSFER_ENCODING = 'transfer-encoding'
const CONNECTION = 'connection'
const KEEP_ALIVE = 'keep-alive'
const CONTENT_TYPE = 'content-type'
const CONTENT_ENCODING = 'content-encoding'

/** Compares ASCII letters and hyphens of a name of known length without regard to case. */
function isNamed(buffer: Buffer, from: number, name: string): boolean {
  for (let i = 0; i < name.length; i++) {
    if ((buffer[from + i]! | 0x20) !== name.charCodeAt(i)) return false
  }
  return true
}

/** The answers of an upstream repeat a few values. */
const interner = new StringInterner('latin1')

/** Returns the value of a field that may occur once; undefined for a second one, or one between tabs. */
function decodeText(
  before: string | null | undefined,
  buffer: Buffer,
  from: number,
  to: number,
): string | undefined {
  if (before !== null || buffer[from] === HTAB || buffer[to - 1] === HTAB) return undefined
  return interner.intern(buffer, from, to)
}

/**
 * Reads header field lines strictly (RFC 9112 5). Decodes the fields that frame the message or govern the connection,
 * and the type and the coding of the body. Nothing else is decoded.
 */
export class FieldScanner {
  fault: Fault | null = null
  contentLength = ABSENT
  chunked = false
  /** `Connection: close` was among the fields. */
  close = false
  /** `Connection: keep-alive` was among the fields. */
  keepAlive = false
  /** `Keep-Alive: timeout=…` in seconds. */
  keepAliveSeconds = ABSENT
  /** Null without such a field; undefined where a search of the lines has to decide. */
  contentType: string | null | undefined = null
  contentEncoding: string | null | undefined = null
  #count = 0

  reset(): void {
    this.fault = null
    this.contentLength = ABSENT
    this.chunked = false
    this.close = false
    this.keepAlive = false
    this.keepAliveSeconds = ABSENT
    this.contentType = null
    this.contentEncoding = null
    this.#count = 0
  }

  /**
   * Reads the whole field lines from `from` on, up to the empty line.
   *
   * @returns the position of the first line that is not read; REFUSED with `fault` set
   */
  scan(buffer: Buffer, from: number, to: number): number {
    let line = from
    while (line < to && buffer[line] !== CR) {
      let at = line
      while (at < to && TOKEN[buffer[at]!] === 1) at++
      if (at === to) return line
      if (buffer[at] !== COLON || at === line) return this.#refuse(BAD_NAME)
      const nameLength = at - line
      const valueFrom = ++at
      while (at < to && FIELD_TEXT[buffer[at]!] === 1) at++
      if (at === to) return line
      if (buffer[at] !== CR) return this.#refuse(buffer[at] === LF ? BAD_LINE_END : BAD_VALUE)
      if (at + 1 === to) return line
      if (buffer[at + 1] !== LF) return this.#refuse(BAD_LINE_END)
      if (++this.#count > MAX_RESPONSE_HEADER_COUNT) return this.#refuse(TOO_MANY)
      switch (nameLength) {
        case 10:
        case 12:
        case 14:
        case 16:
        case 17:
          this.#note(buffer, line, nameLength, valueFrom, at)
          if (this.fault !== null) return REFUSED
      }
      line = at + 2
    }
    return line
  }

  #refuse(fault: Fault): number {
    this.fault = fault
    return REFUSED
  }

  #note(buffer: Buffer, nameFrom: number, nameLength: number, valueFrom: number, valueTo: number): void {
    let from = valueFrom
    let to = valueTo
    // Tabs are blanks too, but readers differ about them around a length: there, left in place, they refuse it.
    while (from < to && buffer[from] === SP) from++
    while (to > from && buffer[to - 1] === SP) to--
    if (nameLength === CONTENT_LENGTH.length) {
      if (isNamed(buffer, nameFrom, CONTENT_LENGTH)) this.#noteLength(buffer, from, to)
    } else if (nameLength === TRANSFER_ENCODING.length) {
      if (isNamed(buffer, nameFrom, TRANSFER_ENCODING)) this.#noteEncoding(buffer, from, to)
    } else if (nameLength === CONTENT_TYPE.length) {
      if (isNamed(buffer, nameFrom, CONTENT_TYPE))
        this.contentType = decodeText(this.contentType, buffer, from, to)
    } else if (nameLength === CONTENT_ENCODING.length) {
      if (isNamed(buffer, nameFrom, CONTENT_ENCODING))
        this.contentEncoding = decodeText(this.contentEncoding, buffer, from, to)
    } else if (isNamed(buffer, nameFrom, CONNECTION)) {
      this.#noteConnection(buffer.toString('latin1', from, to).toLowerCase())
    } else if (isNamed(buffer, nameFrom, KEEP_ALIVE)) {
      const timeout = /(?:^|[,\s])timeout=(\d{1,6})(?:$|[,\s])/i.exec(buffer.toString('latin1', from, to))
      if (timeout !== null) this.keepAliveSeconds = Number(timeout[1])
    }
  }

  #noteLength(buffer: Buffer, from: number, to: number): void {
    const digits = to - from
    if (this.contentLength !== ABSENT) this.fault = TWO_LENGTHS
    else if (digits === 0 || digits > MAX_CONTENT_LENGTH_DIGITS) this.fault = BAD_LENGTH
    else {
      let length = 0
      for (let at = from; at < to; at++) {
        const digit = buffer[at]! - DIGIT_0
        if (digit < 0 || digit > 9) {
          this.fault = BAD_LENGTH
          return
        }
        length = length * 10 + digit
      }
      this.contentLength = length
    }
  }

  /** Any other coding, a list, or a second field could be framed differently by another reader. */
  #noteEncoding(buffer: Buffer, from: number, to: number): void {
    if (this.chunked || to - from !== 'chunked'.length || !isNamed(buffer, from, 'chunked')) {
      this.fault = BAD_ENCODING
    } else this.chunked = true
  }

  #noteConnection(value: string): void {
    if (value === KEEP_ALIVE) this.keepAlive = true
    else {
      for (const option of value.split(',')) {
        const token = option.trim()
        if (token === 'close') this.close = true
        else if (token === KEEP_ALIVE) this.keepAlive = true
      }
    }
  }
}
