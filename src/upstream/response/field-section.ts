import { Buffer } from 'node:buffer'
import { type Fault, malformed } from '../fault.ts'
import { CR, DIGIT_0, FIELD_TEXT, LF, SP } from '../grammar.ts'
import { FieldScanner, MORE, REFUSED } from './field-scanner.ts'

const BAD_STATUS_LINE = malformed('illegal status line')
const BAD_SECTION_END = malformed('header section does not end in CRLF')

const VERSION_STEM = 'HTTP/1.'
const MINOR_AT = 7
const STATUS_AT = 9
/** After `HTTP/1.1 200`. */
const REASON_AT = 12
const CRLF_BYTES = 2
const FIRST_HELD_BYTES = 1_024

/**
 * Reads a status line (unless it is a trailer section) and header fields up to the empty line, however they are split
 * over reads. A section that comes in one read is not copied.
 */
export class FieldSection {
  readonly fields = new FieldScanner()
  fault: Fault | null = null
  status = 0
  http10 = false
  /** The field lines, each between two line ends, as `ResponseHeaders` wants them; empty for trailers. */
  text = ''

  readonly #maxBytes: number
  readonly #excess: Fault
  readonly #hasStatusLine: boolean
  /** An unfinished section, gathered from earlier reads. */
  #held: Buffer | null = null
  #heldBytes = 0
  /** Where the first line not yet read begins, counted from the section's start. */
  #lineAt = 0
  #fieldsAt = 0

  constructor(maxBytes: number, excess: Fault, hasStatusLine: boolean) {
    this.#maxBytes = maxBytes
    this.#excess = excess
    this.#hasStatusLine = hasStatusLine
  }

  reset(): void {
    this.fields.reset()
    this.fault = null
    this.text = ''
    this.#held = null
    this.#heldBytes = 0
    this.#lineAt = 0
    this.#fieldsAt = 0
  }

  /** @returns the position after the section, MORE, or REFUSED with `fault` set */
  read(buffer: Buffer, from: number, to: number): number {
    const heldBefore = this.#heldBytes
    const room = this.#maxBytes - heldBefore
    const limit = Math.min(to, from + room)
    if (heldBefore > 0) this.#hold(buffer, from, limit)
    const end =
      heldBefore > 0 ? this.#lines(this.#held!, 0, this.#heldBytes) : this.#lines(buffer, from, limit)
    if (end === MORE) {
      if (limit - from === room) return this.#refuse(this.#excess)
      if (heldBefore === 0) this.#hold(buffer, from, limit)
    }
    return end > 0 && heldBefore > 0 ? from + end - heldBefore : end
  }

  #refuse(fault: Fault): number {
    this.fault = fault
    return REFUSED
  }

  #hold(buffer: Buffer, from: number, to: number): void {
    const bytes = this.#heldBytes + to - from
    if (this.#held === null || this.#held.length < bytes) {
      const larger = Buffer.allocUnsafeSlow(Math.min(this.#maxBytes, Math.max(2 * bytes, FIRST_HELD_BYTES)))
      this.#held?.copy(larger, 0, 0, this.#heldBytes)
      this.#held = larger
    }
    buffer.copy(this.#held, this.#heldBytes, from, to)
    this.#heldBytes = bytes
  }

  #lines(buffer: Buffer, base: number, to: number): number {
    let at = base + this.#lineAt
    if (this.#hasStatusLine && this.#fieldsAt === 0) {
      at = this.#statusLine(buffer, at, to)
      if (at < 0) return at
      this.#fieldsAt = at - base
    }
    at = this.fields.scan(buffer, at, to)
    if (at === REFUSED) return this.#refuse(this.fields.fault!)
    this.#lineAt = at - base
    if (at === to || buffer[at] !== CR || at + 1 === to) return MORE
    if (buffer[at + 1] !== LF) return this.#refuse(BAD_SECTION_END)
    if (this.#hasStatusLine) this.text = buffer.toString('latin1', base + this.#fieldsAt - CRLF_BYTES, at)
    return at + CRLF_BYTES
  }

  /** `HTTP/1.x NNN`, optionally a blank and a reason, CRLF. Refuses another protocol at its first wrong byte. */
  #statusLine(buffer: Buffer, from: number, to: number): number {
    const stemTo = Math.min(to, from + MINOR_AT)
    for (let at = from; at < stemTo; at++) {
      if (buffer[at] !== VERSION_STEM.charCodeAt(at - from)) return this.#refuse(BAD_STATUS_LINE)
    }
    if (to < from + REASON_AT + 1) return MORE
    const minor = buffer[from + MINOR_AT]! - DIGIT_0
    const hundreds = buffer[from + STATUS_AT]! - DIGIT_0
    const tens = buffer[from + STATUS_AT + 1]! - DIGIT_0
    const units = buffer[from + STATUS_AT + 2]! - DIGIT_0
    if ((minor !== 0 && minor !== 1) || buffer[from + STATUS_AT - 1] !== SP)
      return this.#refuse(BAD_STATUS_LINE)
    if (hundreds < 1 || hundreds > 5 || tens < 0 || tens > 9 || units < 0 || units > 9) {
      return this.#refuse(BAD_STATUS_LINE)
    }
    let at = from + REASON_AT
    if (buffer[at] !== SP && buffer[at] !== CR) return this.#refuse(BAD_STATUS_LINE)
    while (at < to && FIELD_TEXT[buffer[at]!] === 1) at++
    if (at === to) return MORE
    if (buffer[at] !== CR) return this.#refuse(BAD_STATUS_LINE)
    if (at + 1 === to) return MORE
    if (buffer[at + 1] !== LF) return this.#refuse(BAD_STATUS_LINE)
    this.status = hundreds * 100 + tens * 10 + units
    this.http10 = minor === 0
    return at + CRLF_BYTES
  }
}
