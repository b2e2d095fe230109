/** Replies of the gateway: JSON in one piece, long ones in pieces; and what every reply to a call gets. */
import { catchError, type MonoTypeOperatorFunction, map, Observable, throwError } from 'rxjs'
import type { Flow, FullReply, HeaderList, Reply } from '../../src/http/handler.ts'
import { ErrorWithHeaders, unwrapError } from './errors.ts'
import { UpstreamRefusal } from './upstream-error.ts'

const TOO_MANY_REQUESTS = 429
const JSON_HEADERS: HeaderList = [['content-type', 'application/json; charset=utf-8']]

/** Returns a reply. `body` is JSON already. */
export const jsonTextReply = (body: string): FullReply => ({
  type: 'full',
  status: 200,
  headers: JSON_HEADERS,
  body,
})

export const jsonReply = (body: unknown): FullReply => jsonTextReply(JSON.stringify(body))

interface PacedBody {
  /** Default: 200. */
  readonly status?: number
  /** As of a `full` reply. */
  readonly requestId?: string
  readonly headers: HeaderList
  /** Bytes of all pieces together, where that is known and not 0. */
  readonly length?: number
  /** Requests the next piece when the client has taken the one before. */
  readonly pieces: AsyncIterable<string | Uint8Array>
}

/** Shut while the client is behind. */
class Gate implements Flow {
  #shut: PromiseWithResolvers<void> | null = null

  pause(): void {
    this.#shut ??= Promise.withResolvers()
  }

  resume(): void {
    this.#shut?.resolve()
    this.#shut = null
  }

  async waitUntilOpen(): Promise<void> {
    await this.#shut?.promise
  }
}

const PIECE_BYTES = 64 * 1024

/** Yields bytes that are all there already. */
export async function* cutPieces(bytes: Buffer): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += PIECE_BYTES) yield bytes.subarray(at, at + PIECE_BYTES)
}

/**
 * Returns a reply whose `signal` aborts when the client has left. An error before the first piece is an error like all
 * others.
 */
export const paceReply = (begin: (signal: AbortSignal) => Promise<PacedBody>): Observable<Reply> =>
  new Observable((subscriber) => {
    const abort = new AbortController()
    const gate = new Gate()
    const send = async () => {
      const { status = 200, requestId, headers, length, pieces } = await begin(abort.signal)
      subscriber.next({ type: 'head', status, requestId, headers, flow: gate, length })
      for await (const bytes of pieces) {
        subscriber.next({ type: 'data', bytes })
        await gate.waitUntilOpen()
        if (subscriber.closed) return
      }
      subscriber.complete()
    }
    send().catch((error: unknown) => subscriber.error(error))
    return () => {
      abort.abort()
      gate.resume()
    }
  })

/** Adds headers to each reply, and to each error but the refusal of an upstream's own limit: clients can distinguish the two. */
export const addReplyHeaders =
  (headers: HeaderList): MonoTypeOperatorFunction<Reply> =>
  (replies) =>
    new Observable((subscriber) =>
      replies.subscribe({
        next: (reply) =>
          subscriber.next(
            reply.type === 'data' ? reply : { ...reply, headers: [...reply.headers, ...headers] },
          ),
        error: (error) => {
          const { error: cause } = unwrapError(error)
          const isUpstreamLimit = cause instanceof UpstreamRefusal && cause.status === TOO_MANY_REQUESTS
          subscriber.error(isUpstreamLimit ? error : new ErrorWithHeaders(error, headers))
        },
        complete: () => subscriber.complete(),
      }),
    )

/** Gives answers and errors the id of the original request. */
export const answerUnder =
  (requestId: string): MonoTypeOperatorFunction<Reply> =>
  (replies) =>
    replies.pipe(
      map((reply) => (reply.type === 'data' ? reply : { ...reply, requestId })),
      catchError((error) => throwError(() => new ErrorWithHeaders(error, [], requestId))),
    )
