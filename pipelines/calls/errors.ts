/** The one place where an error becomes a response. See docs/errors.md, "Catalog". */
import { Failure } from '../../schemas/failure.ts'
import type { FullReply, HeaderList } from '../../src/http/handler.ts'
import { errorBody, findErrorShape, upstreamErrorBody } from '../../src/protocols/error-shape.ts'
import { UpstreamRefusal } from './upstream-error.ts'

const JSON_TYPE = ['content-type', 'application/json'] as const

/** Receives internal texts of errors. */
interface ErrorListener {
  onUnforeseen(error: unknown, requestId: string): void
  /** Called with the internal text of a refusal. */
  onInternal(text: string, code: string, requestId: string): void
  /** Called when a key was refused, with the public text. */
  onUnauthenticated?(text: string): void
}

/** An error with headers to add to its response, or with the id of the original request. */
export class ErrorWithHeaders extends Error {
  readonly headers: HeaderList
  readonly requestId: string | undefined

  constructor(cause: unknown, headers: HeaderList, requestId?: string) {
    super((cause as Error | null)?.message, { cause })
    this.name = 'ErrorWithHeaders'
    this.headers = headers
    this.requestId = requestId
  }
}

/** Returns the error with headers to add to its response: the error itself where there are none. */
export const withHeaders = (error: unknown, headers: HeaderList): unknown =>
  headers.length === 0 ? error : new ErrorWithHeaders(error, headers)

/** Returns the error itself, and the headers added to it. */
export function unwrapError(error: unknown): { readonly error: unknown; readonly headers: HeaderList } {
  if (!(error instanceof ErrorWithHeaders)) return { error, headers: [] }
  const inner = unwrapError(error.cause)
  return { error: inner.error, headers: [...inner.headers, ...error.headers] }
}

/** Errors no one foresaw are reported and shown to the client as `internal_error`, without a detail. */
export function makeErrorReply(
  path: string,
  requestId: string,
  listener: ErrorListener,
): (error: unknown) => FullReply {
  const toReply = (error: unknown): FullReply => {
    if (error instanceof ErrorWithHeaders) {
      const reply = toReply(error.cause)
      const headers = [...reply.headers, ...error.headers]
      return { ...reply, headers, ...(error.requestId !== undefined && { requestId: error.requestId }) }
    }
    const shape = findErrorShape(path)
    if (error instanceof UpstreamRefusal) {
      const { status, headers } = error
      const body = upstreamErrorBody(shape, error)
      return { type: 'full', status, headers: [JSON_TYPE, ...headers], body, isOfUpstream: true }
    }
    const failure =
      error instanceof Failure
        ? error
        : new Failure('internal_error', 'The gateway failed to handle the call.')
    if (failure !== error) listener.onUnforeseen(error, requestId)
    else if (failure.internal !== undefined) listener.onInternal(failure.internal, failure.code, requestId)
    if (failure.code === 'invalid_api_key') listener.onUnauthenticated?.(failure.message)
    return {
      type: 'full',
      status: failure.status,
      headers: [JSON_TYPE, ...failure.headers],
      body: errorBody(shape, failure),
    }
  }
  return toReply
}
