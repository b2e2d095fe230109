/**
 * Reads the binary framing of AWS event streams piece by piece: a length, headers, a payload, and checksums of the
 * prelude and of the whole message.
 */
import { Buffer } from 'node:buffer'

const PRELUDE_BYTES = 12
const CHECKSUM_BYTES = 4
/** Of one message, by the format's own limit. */
const MAX_MESSAGE_BYTES = 24 * 1024 * 1024
const POLYNOMIAL = 0xedb88320
const STRING_TYPE = 7
/** Bytes of a value by its type; strings and byte arrays have a length before them. */
const VALUE_BYTES: Readonly<Record<number, number>> = { 0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16 }

const TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let value = byte
  for (let bit = 0; bit < 8; bit++) value = value & 1 ? (value >>> 1) ^ POLYNOMIAL : value >>> 1
  return value
})

/** Returns the CRC-32 of a part of the bytes. `node:zlib` has one too, but protocols import no module that does I/O. */
function checksum(bytes: Buffer, start: number, end: number): number {
  let crc = 0xffffffff
  for (let at = start; at < end; at++) crc = TABLE[(crc ^ bytes[at]!) & 0xff]! ^ (crc >>> 8)
  return ~crc >>> 0
}

export interface EventMessage {
  /** Those with text, by their names. */
  readonly headers: Readonly<Record<string, string>>
  readonly payload: Buffer
}

/** The bytes are no event stream, or were damaged on their way. */
class EventStreamError extends Error {
  constructor(what: string) {
    super(`The event stream is damaged: ${what}.`)
    this.name = 'EventStreamError'
  }
}

function readHeaders(bytes: Buffer): Record<string, string> {
  const headers: Record<string, string> = {}
  let at = 0
  while (at < bytes.length) {
    const nameEnd = at + 1 + bytes[at]!
    const type = bytes[nameEnd]
    const fixed = type === undefined ? undefined : VALUE_BYTES[type]
    const start = nameEnd + 1 + (fixed === undefined ? 2 : 0)
    if (type === undefined || type > 9 || start > bytes.length) throw new EventStreamError('a header is cut')
    const end = start + (fixed ?? bytes.readUInt16BE(nameEnd + 1))
    if (end > bytes.length) throw new EventStreamError('a header is cut')
    if (type === STRING_TYPE)
      headers[bytes.toString('utf8', at + 1, nameEnd)] = bytes.toString('utf8', start, end)
    at = end
  }
  return headers
}

export class EventStreamReader {
  /** Pieces of the message that has not ended. */
  #held: Buffer[] = []
  #heldBytes = 0
  /** Of the message under way; 0 before its prelude is there. */
  #messageBytes = 0

  /** Returns the messages that end with this piece. @throws EventStreamError */
  push(piece: Buffer): EventMessage[] {
    this.#held.push(Buffer.from(piece))
    this.#heldBytes += piece.length
    const messages: EventMessage[] = []
    for (;;) {
      if (this.#messageBytes === 0 && this.#heldBytes >= PRELUDE_BYTES)
        this.#messageBytes = readLength(this.#join())
      if (this.#messageBytes === 0 || this.#heldBytes < this.#messageBytes) return messages
      messages.push(this.#take())
    }
  }

  #join(): Buffer {
    if (this.#held.length > 1) this.#held = [Buffer.concat(this.#held, this.#heldBytes)]
    return this.#held[0]!
  }

  #take(): EventMessage {
    const all = this.#join()
    const end = this.#messageBytes
    const headersEnd = PRELUDE_BYTES + all.readUInt32BE(4)
    const payloadEnd = end - CHECKSUM_BYTES
    if (headersEnd > payloadEnd) throw new EventStreamError('the headers are longer than the message')
    if (checksum(all, 0, payloadEnd) !== all.readUInt32BE(payloadEnd))
      throw new EventStreamError('the checksum of a message is wrong')
    this.#held = end < all.length ? [all.subarray(end)] : []
    this.#heldBytes = all.length - end
    this.#messageBytes = 0
    return {
      headers: readHeaders(all.subarray(PRELUDE_BYTES, headersEnd)),
      payload: all.subarray(headersEnd, payloadEnd),
    }
  }
}

/** Returns the length of the message that begins here. */
function readLength(bytes: Buffer): number {
  if (checksum(bytes, 0, 8) !== bytes.readUInt32BE(8))
    throw new EventStreamError('the checksum of a prelude is wrong')
  const length = bytes.readUInt32BE(0)
  if (length < PRELUDE_BYTES + CHECKSUM_BYTES || length > MAX_MESSAGE_BYTES)
    throw new EventStreamError(`a message has ${length} bytes`)
  return length
}
