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
  'session_id',
  'conversation_id',
] as const

/** Decisions, "Every endpoint". */
export const MAX_BODY_BYTES = 32 * 1024 * 1024

export interface RequestHead {
  readonly method: string
  readonly path: string
  readonly query: string
  readonly header: HeaderLookup
}

export function readHead(request: HttpRequest): RequestHead {
  const headers: Record<string, string> = Object.create(null)
  for (const name of COPIED_HEADERS) {
    const value = request.getHeader(name)
    if (value !== '') headers[name] = value
  }
  return {
    method: request.getCaseSensitiveMethod(),
    path: request.getUrl(),
    query: request.getQuery() ?? '',
    header: (name) => headers[name] ?? '',
  }
}

function copied(piece: ArrayBuffer): Buffer {
  const copy = Buffer.allocUnsafe(piece.byteLength)
  copy.set(new Uint8Array(piece))
  return copy
}

/** Collects the body and calls `done` once: with all of it, or with null as soon as it is longer than `limitBytes`. */
export function readBody(
  response: HttpResponse,
  limitBytes: number,
  done: (body: Buffer | null) => void,
): void {
  const pieces: Buffer[] = []
  let length = 0
  response.onData((piece, isLast) => {
    if (length > limitBytes) return
    length += piece.byteLength
    if (length > limitBytes) return done(null)
    const bytes = copied(piece)
    if (!isLast) {
      pieces.push(bytes)
      return
    }
    if (pieces.length === 0) return done(bytes)
    pieces.push(bytes)
    // The server keeps this handler, and what it holds, until the reply is over.
    done(Buffer.concat(pieces.splice(0), length))
  })
}
