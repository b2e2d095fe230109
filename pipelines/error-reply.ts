/** The one place where an error becomes a response. Source: specification, "Errors"; design rule 7. */
import { Failure } from '../schemas/failure.ts'
import type { Reply } from '../src/http/exchange.ts'
import { type ErrorShape, errorBody, errorShapeOf, upstreamErrorBody } from '../src/protocols/error-shape.ts'
import { UpstreamRefusal } from './upstream-error.ts'

const JSON_TYPE = ['content-type', 'application/json'] as const

/** Told of what the client is not. */
export interface ErrorListener {
  onUnforeseen(error: unknown, requestId: string): void
  /** The internal text of a refusal. */
  onInternal(text: string, code: string, requestId: string): void
}

/** Errors no one foresaw are reported and shown to the client as `internal_error`, without a detail. */
export function errorReply(
  path: string,
  requestId: string,
  told: ErrorListener,
): (error: unknown) => Extract<Reply, { type: 'full' }> {
  return (error) => {
    const shape: ErrorShape = errorShapeOf(path)
    if (error instanceof UpstreamRefusal) {
      const { status, headers } = error
      return { type: 'full', status, headers: [JSON_TYPE, ...headers], body: upstreamErrorBody(shape, error) }
    }
    if (!(error instanceof Failure)) told.onUnforeseen(error, requestId)
    else if (error.internal !== undefined) told.onInternal(error.internal, error.code, requestId)
    const failure =
      error instanceof Failure
        ? error
        : new Failure('internal_error', 'The gateway failed to handle the call.')
    return {
      type: 'full',
      status: failure.status,
      headers: [JSON_TYPE, ...failure.headers],
      body: errorBody(shape, failure),
    }
  }
}
