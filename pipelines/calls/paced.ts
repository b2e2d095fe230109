/** A long reply, made piece by piece and no faster than its client takes it. */
import { Observable } from 'rxjs'
import type { Flow, HeaderList, Reply } from '../../src/http/handler.ts'

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

  async passed(): Promise<void> {
    await this.#shut?.promise
  }
}

const PIECE_BYTES = 64 * 1024

/** Yields bytes that are all there already. */
export async function* piecesOf(bytes: Buffer): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += PIECE_BYTES) yield bytes.subarray(at, at + PIECE_BYTES)
}

/**
 * Returns a reply whose `signal` aborts when the client has left. An error before the first piece is an error like all
 * others.
 */
export const pacedReply = (begin: (signal: AbortSignal) => Promise<PacedBody>): Observable<Reply> =>
  new Observable((subscriber) => {
    const abort = new AbortController()
    const gate = new Gate()
    const send = async () => {
      const { status = 200, requestId, headers, length, pieces } = await begin(abort.signal)
      subscriber.next({ type: 'head', status, requestId, headers, flow: gate, length })
      for await (const bytes of pieces) {
        subscriber.next({ type: 'data', bytes })
        await gate.passed()
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
