/**
 * One failure in three shapes. The shape follows the endpoint called; a path that belongs to no protocol has the
 * chat-completions shape. See docs/errors.md, "Catalog"; docs/api-rules.md, "Every endpoint".
 */
import type { ChatProtocol } from '../../schemas/config/catalog.ts'
import { FAILURES, type Failure, type FailureCode } from '../../schemas/failure.ts'
import { ROUTES } from '../../schemas/routes.ts'

const [, MESSAGES_PATH] = ROUTES.createMessage

/** Versions that no other protocol has. */
const CONTENT_VERSION = /^\/v1(?:beta|alpha)\//
/** A method at a model, served or not; the colon may be escaped. */
const METHOD_AT_MODEL = /^\/v1\/models\/.*(?::|%3[Aa])[a-z]+[A-Z][A-Za-z]*$/

/** The errors of responses have the shape of chat-completions. */
type ErrorShape = Exclude<ChatProtocol, 'responses'>

export function findErrorShape(path: string): ErrorShape {
  if (path === MESSAGES_PATH || path.startsWith(`${MESSAGES_PATH}/`)) return 'messages'
  if (CONTENT_VERSION.test(path) || METHOD_AT_MODEL.test(path)) return 'generate-content'
  return 'chat-completions'
}

type Headers = ReadonlyArray<readonly [string, string]>

/** Tells clients of generate-content when another try makes sense: they do not read the header. It may be a date. */
function retryInfo(headers: Headers) {
  const [, after = ''] = headers.find(([name]) => name === 'retry-after') ?? []
  if (!/^\d+$/.test(after)) return null
  return { details: [{ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: `${after}s` }] }
}

/** Returns the JSON body for `failure`; its status and extra headers are in the failure itself. */
export function errorBody(shape: ErrorShape, failure: Failure): string {
  const row = FAILURES[failure.code]
  const { message, status, details } = failure
  switch (shape) {
    case 'chat-completions':
      return JSON.stringify({ error: { message, type: row.type, code: failure.code } })
    case 'messages':
      return JSON.stringify({ type: 'error', error: { type: row.messagesType, message, details } })
    case 'generate-content':
      return JSON.stringify({
        error: { code: status, message, status: row.generateStatus, ...retryInfo(failure.headers) },
      })
  }
}

/** Statuses of an upstream that keep the names of their rows in the shapes that have no code; see docs/errors.md. */
const LISTED: Readonly<Record<number, (typeof FAILURES)[FailureCode]>> = {
  403: FAILURES.permission_denied,
  429: FAILURES.rate_limit_exceeded,
  504: FAILURES.upstream_timeout,
}

/** Returns an upstream's own refusal: its error object where the client gets that, else mapped names with what it says. */
export function upstreamErrorBody(
  shape: ErrorShape,
  refusal: {
    readonly status: number
    readonly message: string
    readonly type: string
    readonly code: string
    readonly headers: Headers
    readonly extras?: { readonly param?: string; readonly details?: unknown }
    readonly native?: object | null
  },
): string {
  const { message, type, code, status, headers, extras, native = null } = refusal
  if (native !== null) return JSON.stringify(native)
  const row = LISTED[status] ?? FAILURES.upstream_error
  switch (shape) {
    case 'chat-completions':
      return JSON.stringify({ error: { message, type, code, ...extras } })
    case 'messages':
      return JSON.stringify({ type: 'error', error: { type: row.messagesType, message, ...extras } })
    case 'generate-content':
      return JSON.stringify({
        error: { code: status, message, status: row.generateStatus, ...retryInfo(headers), ...extras },
      })
  }
}
