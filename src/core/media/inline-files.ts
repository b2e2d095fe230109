/** Separates the text of a JSON body from the files that it carries inline as base64. */
import type { Buffer } from 'node:buffer'

/** A shorter string is text: no limit depends on it. */
const MIN_FILE_BYTES = 4096
const QUOTE = 0x22
const BACKSLASH = 0x5c
/** A slash may be escaped. */
const PREFIX = /^data:[\w.+/;=\\-]{0,200},/
const MAX_PREFIX_CHARS = 256
const BASE64 = /^[A-Za-z0-9+/_=\\-]*$/
/** Bytes between two pauses: a few milliseconds' work at most. */
const PIECE_BYTES = 256 * 1024
/** Quotes so near are found byte by byte: a call into the runtime costs more. */
const NEAR_BYTES = 32

/** A body as far as it has come. */
export interface ArrivingBody {
  bytes: Buffer
  isWhole: boolean
}

/**
 * Returns whether a JSON body is longer than `maxBytes` without its strings of base64 of 4 KiB and more. Reads no
 * further than it must. Yields after each piece of work, so that its caller can let others go first, and where it needs
 * more of the body.
 */
export function* hasTextBeyond(body: ArrivingBody, maxBytes: number): Generator<void, boolean> {
  let fileBytes = 0
  let pauseAt = PIECE_BYTES
  let at = 0
  for (;;) {
    at = nextQuote(body.bytes, at)
    if (at - fileBytes > maxBytes) return true
    const { length } = body.bytes
    const end = at < length ? skipString(body.bytes, at) : at
    if (end >= length && !body.isWhole) {
      // A string without an end is looked through again only when there is twice as much of it.
      const enough = Math.max(2 * length - at, length + 1)
      while (!body.isWhole && body.bytes.length < enough) yield
      continue
    }
    if (end === at) return false
    if (end - at > MIN_FILE_BYTES && (yield* isBase64(body.bytes, at + 1, end - 1))) fileBytes += end - at
    at = end
    if (at > pauseAt) {
      yield
      pauseAt = at + PIECE_BYTES
    }
  }
}

/** Returns the index of the first quote from `from` on; the length of the body where there is none. */
function nextQuote(body: Buffer, from: number): number {
  const near = Math.min(body.length, from + NEAR_BYTES)
  for (let at = from; at < near; at++) if (body[at] === QUOTE) return at
  const found = body.indexOf(QUOTE, near)
  return found < 0 ? body.length : found
}

/** Returns the index after the string that opens at `open`; the length of the body where it has no end. */
function skipString(body: Buffer, open: number): number {
  let at = open + 1
  for (;;) {
    const near = Math.min(body.length, at + NEAR_BYTES)
    while (at < near) {
      const byte = body[at]!
      if (byte === QUOTE) return at + 1
      at += byte === BACKSLASH ? 2 : 1
    }
    const quote = body.indexOf(QUOTE, at)
    if (quote < 0) return body.length
    let before = quote
    while (before > at && body[before - 1] === BACKSLASH) before--
    // An even number of backslashes escapes itself, not the quote.
    if ((quote - before) % 2 === 0) return quote + 1
    at = quote + 1
  }
}

function* isBase64(body: Buffer, start: number, end: number): Generator<void, boolean> {
  const prefix =
    PREFIX.exec(body.toString('latin1', start, Math.min(end, start + MAX_PREFIX_CHARS)))?.[0] ?? ''
  for (let at = start + prefix.length; at < end; at += PIECE_BYTES) {
    if (!BASE64.test(body.toString('latin1', at, Math.min(end, at + PIECE_BYTES)))) return false
    yield
  }
  return true
}
