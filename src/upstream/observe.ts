import { Observable, type Subscriber } from 'rxjs'
import type { UpstreamCall, UpstreamClient, UpstreamHandler, UpstreamRequest } from './client.ts'
import type { UpstreamFailure } from './failure.ts'
import type { ResponseHeaders } from './response-headers.ts'

export type UpstreamFlow = Pick<UpstreamCall, 'pause' | 'resume'>

/**
 * A head, once, then data: the bytes are valid only while the event is delivered. Whoever hands a function to `direct`
 * while the head is delivered gets the data there instead, without what an event costs.
 */
export type UpstreamEvent =
  | {
      readonly type: 'head'
      readonly status: number
      readonly headers: ResponseHeaders
      readonly flow: UpstreamFlow
      readonly direct?: (onData: (bytes: Uint8Array) => void) => void
    }
  | { readonly type: 'data'; readonly bytes: Uint8Array }

class ObservingHandler implements UpstreamHandler {
  readonly #subscriber: Subscriber<UpstreamEvent>
  flow: UpstreamFlow | null = null
  #direct: ((bytes: Uint8Array) => void) | null = null

  constructor(subscriber: Subscriber<UpstreamEvent>) {
    this.#subscriber = subscriber
  }

  onHead(status: number, headers: ResponseHeaders): void {
    const direct = (onData: (bytes: Uint8Array) => void) => {
      this.#direct = onData
    }
    this.#subscriber.next({ type: 'head', status, headers, flow: this.flow!, direct })
  }

  onData(bytes: Uint8Array): void {
    if (this.#direct === null) this.#subscriber.next({ type: 'data', bytes })
    else if (!this.#subscriber.closed) this.#direct(bytes)
  }

  onEnd(): void {
    this.#subscriber.complete()
  }

  onError(failure: UpstreamFailure): void {
    this.#subscriber.error(failure)
  }
}

/**
 * One call as a cold Observable: sent on subscription, completes with the response, errors with an UpstreamFailure.
 * Unsubscribing closes the upstream connection at once.
 *
 * @param onReleased told at the end of each subscription, however it ends, whether any of the request went out
 */
export function observeUpstream(
  client: UpstreamClient,
  request: UpstreamRequest,
  onReleased: (wasSent: boolean) => void = () => {},
): Observable<UpstreamEvent> {
  return new Observable((subscriber) => {
    const handler = new ObservingHandler(subscriber)
    const call = client.send(request, handler)
    handler.flow = call
    return releasing(call, onReleased)
  })
}

/** Made outside, where the request is not in sight: a closure beside it would hold its body while the answer streams. */
const releasing = (call: UpstreamCall, onReleased: (wasSent: boolean) => void) => () => {
  call.abort()
  onReleased(call.sent)
}
