import { Observable } from 'rxjs'
import type { UpstreamCall, UpstreamHandler } from './client.ts'
import type { ResponseHeaders } from './response/headers.ts'

/** A head, once, then data: the bytes are valid only while the event is delivered. */
export type UpstreamEvent =
  | { readonly type: 'head'; readonly status: number; readonly headers: ResponseHeaders }
  | { readonly type: 'data'; readonly bytes: Uint8Array }

/**
 * Returns one call as a cold Observable: sent on subscription, completes with the response, errors with an
 * UpstreamFailure. Unsubscribing closes the upstream connection at once. For short answers: a stream's chunks go to a
 * handler.
 *
 * @param send sends the call, as `UpstreamClient.send` does
 */
export function observeUpstream(send: (handler: UpstreamHandler) => UpstreamCall): Observable<UpstreamEvent> {
  return new Observable((subscriber) => {
    const call = send({
      onHead: (status, headers) => subscriber.next({ type: 'head', status, headers }),
      onData: (bytes) => subscriber.next({ type: 'data', bytes }),
      onEnd: () => subscriber.complete(),
      onError: (failure) => subscriber.error(failure),
    })
    return () => call.abort()
  })
}
