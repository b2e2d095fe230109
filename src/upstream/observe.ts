import { Observable, type Subscriber } from 'rxjs'
import type { UpstreamCall, UpstreamClient, UpstreamHandler, UpstreamRequest } from './client.ts'
import type { UpstreamFailure } from './failure.ts'
import type { ResponseHeaders } from './response-headers.ts'

export type UpstreamFlow = Pick<UpstreamCall, 'pause' | 'resume'>

/**
 * A head, once, then data: the bytes are valid only while the event is delivered. Whoever hands a sink to `direct` while
 * the head is delivered gets the data there instead, without what an event costs.
 */
export type UpstreamEvent =
  | {
      readonly type: 'head'
      readonly status: number
      readonly headers: ResponseHeaders
      readonly flow: UpstreamFlow
      readonly direct?: (sink: UpstreamSink) => void
    }
  | { readonly type: 'data'; readonly bytes: Uint8Array }

/** An object, not a function with a context of its own: memory that each chunk of each stream would touch. */
export interface UpstreamSink {
  /** @param bytes valid only during the call */
  data(bytes: Uint8Array): void
}

class ObservingHandler implements UpstreamHandler {
  #sink: UpstreamSink | null = null
  readonly #subscriber: Subscriber<UpstreamEvent>
  flow: UpstreamFlow | null = null

  constructor(subscriber: Subscriber<UpstreamEvent>) {
    this.#subscriber = subscriber
  }

  onHead(status: number, headers: ResponseHeaders): void {
    const direct = (sink: UpstreamSink) => {
      this.#sink = sink
    }
    this.#subscriber.next({ type: 'head', status, headers, flow: this.flow!, direct })
  }

  onData(bytes: Uint8Array): void {
    // Whoever unsubscribes ends the call, and nothing comes after that.
    if (this.#sink !== null) this.#sink.data(bytes)
    else this.#subscriber.next({ type: 'data', bytes })
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
