/**
 * Copies a request out of the server. Its head is valid only until the handler returns, a piece of its body only
 * inside the callback: both are copied here and nowhere else.
 */
import type { HttpRequest, HttpResponse } from 'uWebSockets.js'
import type { HeaderLookup } from './exchange.ts'

/** Request headers that any pipeline reads. Copying each one costs, so there is one list. */
const COPIED_HEADERS = [
  'authorization',
  'x-api-key',
  'x-partner-api-key',
  'x-goog-api-key',
  'content-type',
  'content-length',
  'accept',
  'idempotency-key',
  'traceparent',
  'range',
  'if-range',
  'if-none-match',
  'session_id',
  'conversation_id',
  'mcp-protocol-version',
  'vendor-version',
  'anthropic-version',
  'anthropic-beta',
]
/** Where each one's value is kept. */
const PLACES: ReadonlyMap<string, number> = new Map(COPIED_HEADERS.map((name, place) => [name, place]))
const CONTENT_LENGTH = PLACES.get('content-length')!
const IDEMPOTENCY_KEY = PLACES.get('idempotency-key')!
const NO_VALUES: readonly (string | undefined)[] = COPIED_HEADERS.map(() => undefined)

/** By length: a name that has just come has no hash yet, and to make one costs more than to compare it with a few. */
const NAMES: ReadonlyArray<ReadonlyArray<readonly [name: string, place: number]>> = Array.from(
  { length: Math.max(...COPIED_HEADERS.map((name) => name.length)) + 1 },
  (_, length) => [...PLACES].filter(([name]) => name.length === length),
)

function placeOf(received: string): number | undefined {
  for (const [name, place] of NAMES[received.length] ?? []) if (name === received) return place
  return undefined
}

/** Decisions, "Every endpoint". */
export const MAX_BODY_BYTES = 32 * 1024 * 1024
/**
 * The server ends an upload that brings less than 160 KB in 10 s. So long a slow one is borne all the same, as long as
 * something comes every 10 s.
 */
export const SLOW_UPLOAD_MS = 120_000

export interface RequestHead {
  readonly method: string
  readonly path: string
  readonly query: string
  readonly header: HeaderLookup
  /** Tells an absent header from an empty one. Known of `idempotency-key` alone. */
  readonly hasHeader: (name: 'idempotency-key') => boolean
  /**
   * Where the body ends could be read in two ways: whoever stands in front may have read the other. Length and
   * chunks together are refused by the server itself.
   */
  readonly isAmbiguous: boolean
}

export function readHead(request: HttpRequest): RequestHead {
  const values = NO_VALUES.slice()
  let isAmbiguous = false
  request.forEach((name, value) => {
    const place = placeOf(name)
    if (place !== undefined) {
      if (place === CONTENT_LENGTH) isAmbiguous ||= (values[place] ?? value) !== value
      if (value !== '' || place === IDEMPOTENCY_KEY) values[place] ??= value
    } else if (name === 'transfer-encoding') isAmbiguous ||= value.toLowerCase() !== 'chunked'
  })
  return {
    method: request.getCaseSensitiveMethod(),
    path: request.getUrl(),
    query: request.getQuery() ?? '',
    header: (name) => values[PLACES.get(name) ?? -1] ?? '',
    hasHeader: (name) => values[PLACES.get(name) ?? -1] !== undefined,
    isAmbiguous,
  }
}

/** A piece is valid only inside the callback that brings it. */
export function copied(piece: ArrayBuffer): Buffer {
  const copy = Buffer.allocUnsafe(piece.byteLength)
  copy.set(new Uint8Array(piece))
  return copy
}

/** The server counts a connection's seconds anew. It has no other call for it. */
export function restartTimeout(response: HttpResponse): void {
  response.pause()
  response.resume()
}

/** Collects the body and calls `done` once: with all of it, or with null as soon as it is longer than `limitBytes`. */
export function readBody(
  response: HttpResponse,
  limitBytes: number,
  done: (body: Buffer | null) => void,
): void {
  const pieces: Buffer[] = []
  let length = 0
  let slowUntil = 0
  response.onData((piece, isLast) => {
    if (length > limitBytes) return
    length += piece.byteLength
    if (length > limitBytes) return done(null)
    const bytes = copied(piece)
    if (!isLast) {
      pieces.push(bytes)
      slowUntil ||= performance.now() + SLOW_UPLOAD_MS
      if (performance.now() < slowUntil) restartTimeout(response)
      return
    }
    if (pieces.length === 0) return done(bytes)
    pieces.push(bytes)
    // The server keeps this handler, and what it holds, until the reply is over.
    done(Buffer.concat(pieces.splice(0), length))
  })
}
