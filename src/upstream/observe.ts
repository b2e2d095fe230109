import { Observable, type Subscriber } from 'rxjs'
import type { UpstreamCall, UpstreamHandler } from './client.ts'
import type { UpstreamFailure } from './failure.ts'
import type { ResponseHeaders } from './response/headers.ts'

/** A head, once, then data: the bytes are valid only while the event is delivered. */
export type UpstreamEvent =
  | { readonly type: 'head'; readonly status: number; readonly headers: ResponseHeaders }
  | { readonly type: 'data'; readonly bytes: Uint8Array }

class ObservingHandler implements UpstreamHandler {
  readonly #subscriber: Subscriber<UpstreamEvent>

  constructor(subscriber: Subscriber<UpstreamEvent>) {
    this.#subscriber = subscriber
  }

  onHead(status: number, headers: ResponseHeaders): void {
    this.#subscriber.next({ type: 'head', status, headers })
  }

  onData(bytes: Uint8Array): void {
    this.#subscriber.next({ type: 'data', bytes })
  }

  onEnd(): void {
    this.#subscriber.complete()
  }

  onError(failure: UpstreamFailure): void {
    this.#subscriber.error(failure)
  }
}

/**
 * Returns one call as a cold Observable: sent on subscription, completes with the response, errors with an
 * UpstreamFailure. Unsubscribing closes the upstream connection at once. For short answers: a stream's chunks go to a
 * handler.
 *
 * @param send sends the call, as `UpstreamClient.send` does
 */
export function observeUpstream(send: (handler: UpstreamHandler) => UpstreamCall): Observable<UpstreamEvent> {
  return new Observable((subscriber) => {
    const call = send(new ObservingHandler(subscriber))
    return () => call.abort()
  })
}
