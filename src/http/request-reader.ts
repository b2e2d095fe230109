/**
 * Copies a request out of the server. Its head is valid only until the handler returns, a piece of its body only
 * inside the callback.
 */

import { Buffer } from 'node:buffer'
import { performance } from 'node:perf_hooks'
import type { Failure } from '../../schemas/failure.ts'
import { SESSION_HEADERS } from '../core/routing/session.ts'
import type { TextLimit } from './body/text-limit.ts'
import type { HeldBytes } from './client-limits.ts'
import type { HeaderLookup } from './handler.ts'
import { ambiguousHost, ambiguousLength, tooLarge } from './refusals.ts'
import type { HttpRequest, HttpResponse } from './uws.ts'

/**
 * Meaning of several lines of one name. `list`: one list. `one`: a fault unless they are equal, since a proxy that reads the
 * other line decides otherwise. `first`: the first line, where nothing depends on it.
 */
type Lines = 'list' | 'one' | 'first'

/** Request headers that any handler reads. Copying each one costs, so there is one list. */
const COPIED_HEADERS: Readonly<Record<string, Lines>> = {
  authorization: 'one',
  'x-api-key': 'one',
  'x-partner-api-key': 'one',
  'x-goog-api-key': 'one',
  upgrade: 'list',
  'content-type': 'one',
  'content-length': 'one',
  'content-encoding': 'list',
  accept: 'list',
  // A list of keys has a space, which no key has.
  'idempotency-key': 'list',
  'x-max-price': 'one',
  traceparent: 'first',
  range: 'one',
  'if-range': 'one',
  'if-none-match': 'list',
  'x-forwarded-for': 'list',
  'mcp-protocol-version': 'one',
  'mcp-method': 'one',
  'mcp-name': 'one',
  'vendor-version': 'one',
  'anthropic-version': 'one',
  'anthropic-beta': 'list',
  host: 'one',
  origin: 'one',
  cookie: 'one',
  'user-agent': 'first',
  'accept-encoding': 'list',
  'sec-fetch-site': 'one',
  'x-csrf-token': 'one',
  'stripe-signature': 'one',
  'last-event-id': 'one',
  ...Object.fromEntries(SESSION_HEADERS.map((name) => [name, 'one' as const])),
}
const HEADER_NAMES = Object.keys(COPIED_HEADERS)
/** Index of each one's value. */
const PLACES: ReadonlyMap<string, number> = new Map(HEADER_NAMES.map((name, place) => [name, place]))
const CONTENT_LENGTH = PLACES.get('content-length')!
const IDEMPOTENCY_KEY = PLACES.get('idempotency-key')!
const HOST = PLACES.get('host')!
/** A host name or an address, with or without a port. */
const HOST_VALUE = /^(?:[\w.~!$&'()*+,;=%-]*|\[[\da-f:.]+\])(?::\d*)?$/i
const NO_VALUES: readonly (string | undefined)[] = HEADER_NAMES.map(() => undefined)

/** By length: a name that has just come has no hash yet, and to make one costs more than to compare it with a few. */
const NAMES: ReadonlyArray<ReadonlyArray<readonly [name: string, place: number]>> = Array.from(
  { length: Math.max(...HEADER_NAMES.map((name) => name.length)) + 1 },
  (_, length) => [...PLACES].filter(([name]) => name.length === length),
)

function findPlace(received: string): number | undefined {
  for (const [name, place] of NAMES[received.length] ?? []) if (name === received) return place
  return undefined
}

export const MAX_BODY_BYTES = 32 * 1024 * 1024
/**
 * The server ends an upload of less than 160 KB in 10 s. A slow one is allowed for this long, as long as bytes arrive
 * every 10 s.
 */
export const SLOW_UPLOAD_MS = 120_000

/** Methods whose requests have no chunked body. Their replies end in ways that cannot also close the connection. */
const WITHOUT_BODY: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS'])

export interface CopiedHead {
  readonly method: string
  readonly path: string
  readonly query: string
  readonly header: HeaderLookup
  /** Distinguishes an absent header from an empty one. Known only for `idempotency-key`. */
  readonly hasHeader: (name: 'idempotency-key') => boolean
  /**
   * Why nothing more may be read on the connection, where the end of the body or the host is ambiguous: a proxy in front
   * may have read another one. The server itself refuses length and chunks together.
   */
  readonly fault: Failure | null
  /** A header with two different values where one decides; null without any. */
  readonly conflict: string | null
  /** The body comes in chunks. The server does not check their framing, so nothing behind it may be answered. */
  readonly isChunked: boolean
}

type RequestTarget = Pick<CopiedHead, 'method' | 'path'>

export const readTarget = (request: HttpRequest): RequestTarget => ({
  method: request.getCaseSensitiveMethod(),
  path: request.getUrl(),
})

export function readHead(request: HttpRequest, { method, path }: RequestTarget): CopiedHead {
  const values = NO_VALUES.slice()
  let fault: Failure | null = null
  let conflict: string | null = null
  let isChunked = false
  let hasHost = false
  request.forEach((name, value) => {
    const place = findPlace(name)
    if (place !== undefined) {
      if (place === CONTENT_LENGTH && (value === '' || (values[place] ?? value) !== value))
        fault = ambiguousLength()
      if (place === HOST) {
        if (hasHost || !HOST_VALUE.test(value)) fault = ambiguousHost()
        hasHost = true
      }
      if (value !== '' || place === IDEMPOTENCY_KEY) {
        const before = values[place]
        if (before === undefined) values[place] = value
        else if (COPIED_HEADERS[name] === 'list') values[place] = `${before}, ${value}`
        else if (COPIED_HEADERS[name] === 'one' && before !== value) conflict = name
      }
    } else if (name === 'transfer-encoding') {
      if (isChunked || value.toLowerCase() !== 'chunked' || WITHOUT_BODY.has(method))
        fault = ambiguousLength()
      isChunked = true
    }
  })
  return {
    method,
    path,
    query: request.getQuery() ?? '',
    header: (name) => values[PLACES.get(name) ?? -1] ?? '',
    hasHeader: (name) => values[PLACES.get(name) ?? -1] !== undefined,
    fault,
    conflict,
    isChunked,
  }
}

/** Restarts the server's timeout of the connection. The server has no other call for it. */
export function restartTimeout(response: HttpResponse): void {
  response.pause()
  response.resume()
}

/**
 * Pauses the connection at the end of this turn, when the server has handed over all that it has read, where `isWanted`
 * says so then. Resumed, the server closes a connection that sends nothing for ten seconds: one whose request is whole
 * must not have been paused, as its answer may take longer.
 */
export function pauseAfterTurn(response: HttpResponse, isWanted: () => boolean): void {
  setImmediate(() => {
    if (isWanted()) response.pause()
  })
}

/** Copies a piece, which is valid only inside its callback. */
export function copyPiece(piece: ArrayBuffer): Buffer {
  const copy = Buffer.allocUnsafe(piece.byteLength)
  copy.set(new Uint8Array(piece))
  return copy
}

/**
 * The most of an announced body for which room is made before it arrives. The rest gets its room at once when more has arrived:
 * each further step would copy the body again.
 */
const ROOM_MAX_BYTES = 256 * 1024

const NO_BYTES = Buffer.alloc(0)

/** Pieces of a body, put together as they come. */
class BodyPieces {
  #bytes: Buffer = NO_BYTES
  length = 0

  /** Returns how many bytes of memory the next piece takes besides those that are taken. */
  computeGrowth(pieceBytes: number, announcedBytes: number): number {
    const end = this.length + pieceBytes
    if (end <= this.#bytes.length) return 0
    const room =
      this.length === 0
        ? Math.min(announcedBytes, ROOM_MAX_BYTES)
        : Math.max(announcedBytes, 2 * this.#bytes.length)
    return Math.max(end, room) - this.#bytes.length
  }

  /**
   * Adds a piece.
   * @param growth the result of that method
   */
  add(piece: ArrayBuffer, growth: number): void {
    if (growth > 0) {
      const larger = Buffer.allocUnsafe(this.#bytes.length + growth)
      this.#bytes.copy(larger, 0, 0, this.length)
      this.#bytes = larger
    }
    this.#bytes.set(new Uint8Array(piece), this.length)
    this.length += piece.byteLength
  }

  get soFar(): Buffer {
    return this.#bytes.subarray(0, this.length)
  }

  /** Returns what came; from here on it is the caller's. */
  take(): Buffer {
    const bytes = this.#bytes
    // The server keeps this object until the reply is over.
    this.#bytes = NO_BYTES
    return bytes.length === this.length ? bytes : bytes.subarray(0, this.length)
  }
}

/** The most of a body that may come before its key is checked: usual calls then cost one check, in their handler. */
export const UNCHECKED_MAX_BYTES = 16 * 1024

interface BodyLimits {
  readonly limitBytes: number
  readonly announcedBytes: number
  /** Bounds the text of a body that may have too much; else null. */
  readonly text: Pick<TextLimit, 'checkArrived'> | null
  /** Counts the memory that the body takes up. */
  readonly held: Pick<HeldBytes, 'take' | 'release'>
  /** Called before each further piece: an unwanted body is discarded. */
  readonly isWanted: () => boolean
  /** The connection is paused: only bytes that the server has already read still arrive. */
  readonly isPaused: () => boolean
}

/**
 * Collects the body and calls `done` once: with all of it, or with the refusal as soon as it is longer than the limit
 * or there is no room for it; not at all where it stops being wanted. With too much text the rest is discarded and the
 * refusal follows it: a client whose connection closes with the answer would lose that while it still sends.
 */
export function readBody(
  response: HttpResponse,
  { limitBytes, announcedBytes, text, held, isWanted, isPaused }: BodyLimits,
  done: (body: Buffer | Failure) => void,
): void {
  const pieces = new BodyPieces()
  let length = 0
  let excess: Failure | null = null
  let isOver = false
  let slowUntil = 0
  const end = (refusal?: Failure) => {
    isOver = true
    pieces.take()
    if (refusal !== undefined) done(refusal)
  }
  response.onData((piece, isLast) => {
    if (isOver) return
    if (!isWanted()) return end()
    length += piece.byteLength
    if (length > limitBytes) return end(tooLarge(limitBytes))
    if (excess === null) {
      const growth = pieces.computeGrowth(piece.byteLength, announcedBytes)
      const refusal = growth === 0 ? null : held.take(growth)
      if (refusal !== null) return end(refusal)
      pieces.add(piece, growth)
    }
    if (isLast) return excess === null ? done(pieces.take()) : end(excess)
    if (excess === null && text !== null) {
      excess = text.checkArrived(pieces.soFar)
      if (excess !== null) {
        pieces.take()
        held.release()
      }
    }
    slowUntil ||= performance.now() + SLOW_UPLOAD_MS
    if (!isPaused() && performance.now() < slowUntil) restartTimeout(response)
  })
}
