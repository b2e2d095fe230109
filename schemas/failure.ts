/**
 * The failure catalog: every refusal the gateway itself can give, with its HTTP status and its name
 * in the error shape of each client protocol. See docs/errors.md, "Catalog".
 */

/** Names of one failure on the wire. */
interface FailureRow {
  readonly status: number
  /** `error.type` of the chat-completions shape. */
  readonly type: string
  /** `error.type` of the messages shape. */
  readonly messagesType: string
  /** `error.status` of the generate-content shape. */
  readonly generateStatus: string
}

const row = (status: number, type: string, messagesType: string, generateStatus: string): FailureRow => ({
  status,
  type,
  messagesType,
  generateStatus,
})

const INVALID = 'invalid_request_error'

export const FAILURES = {
  model_not_found: row(400, INVALID, 'not_found_error', 'NOT_FOUND'),
  model_not_allowed: row(400, INVALID, INVALID, 'INVALID_ARGUMENT'),
  invalid_request: row(400, INVALID, INVALID, 'INVALID_ARGUMENT'),
  tool_not_supported: row(400, INVALID, INVALID, 'INVALID_ARGUMENT'),
  model_no_vision: row(400, INVALID, INVALID, 'INVALID_ARGUMENT'),
  invalid_idempotency_key: row(400, INVALID, INVALID, 'INVALID_ARGUMENT'),
  idempotency_key_reuse: row(409, INVALID, INVALID, 'ALREADY_EXISTS'),
  idempotency_in_flight: row(409, INVALID, INVALID, 'ALREADY_EXISTS'),
  idempotency_response_not_cached: row(409, INVALID, INVALID, 'ALREADY_EXISTS'),
  conflict: row(409, INVALID, INVALID, 'FAILED_PRECONDITION'),
  task_not_cancellable: row(409, INVALID, INVALID, 'FAILED_PRECONDITION'),
  invalid_api_key: row(401, 'authentication_error', 'authentication_error', 'UNAUTHENTICATED'),
  not_signed_in: row(401, 'authentication_error', 'authentication_error', 'UNAUTHENTICATED'),
  sign_in_failed: row(401, 'authentication_error', 'authentication_error', 'UNAUTHENTICATED'),
  quota_exceeded: row(402, 'insufficient_quota', 'billing_error', 'RESOURCE_EXHAUSTED'),
  permission_denied: row(403, 'permission_error', 'permission_error', 'PERMISSION_DENIED'),
  reauthentication_required: row(403, 'permission_error', 'permission_error', 'PERMISSION_DENIED'),
  not_found: row(404, INVALID, 'not_found_error', 'NOT_FOUND'),
  log_not_found: row(404, INVALID, 'not_found_error', 'NOT_FOUND'),
  method_not_allowed: row(405, INVALID, INVALID, 'INVALID_ARGUMENT'),
  request_too_large: row(413, INVALID, 'request_too_large', 'INVALID_ARGUMENT'),
  unsupported_content_encoding: row(415, INVALID, INVALID, 'INVALID_ARGUMENT'),
  rate_limit_exceeded: row(429, 'rate_limit_error', 'rate_limit_error', 'RESOURCE_EXHAUSTED'),
  logs_rate_limited: row(429, 'rate_limit_error', 'rate_limit_error', 'RESOURCE_EXHAUSTED'),
  internal_error: row(500, 'server_error', 'api_error', 'INTERNAL'),
  upstream_error: row(502, 'api_error', 'api_error', 'UNAVAILABLE'),
  upstream_unreachable: row(502, 'api_error', 'api_error', 'UNAVAILABLE'),
  no_channel_available: row(503, 'server_error', 'overloaded_error', 'UNAVAILABLE'),
  service_unavailable: row(503, 'server_error', 'overloaded_error', 'UNAVAILABLE'),
  upstream_timeout: row(504, 'api_error', 'api_error', 'DEADLINE_EXCEEDED'),
} as const satisfies Record<string, FailureRow>

export type FailureCode = keyof typeof FAILURES

/**
 * A refusal on its way to the client. `message` is public. `internal` is only for the log: upstream names, addresses,
 * causes.
 */
export class Failure extends Error {
  readonly code: FailureCode
  /** The catalog's, except where an endpoint has another status for the same failure. */
  readonly status: number
  readonly internal: string | undefined
  /** Extra response headers, such as `retry-after` or `allow`. */
  readonly headers: ReadonlyArray<readonly [string, string]>
  /** Facts that SDKs of the messages protocol react to; only that shape has them. */
  readonly details: Readonly<Record<string, unknown>> | undefined

  constructor(
    code: FailureCode,
    message: string,
    more: {
      status?: number
      internal?: string
      headers?: ReadonlyArray<readonly [string, string]>
      details?: Readonly<Record<string, unknown>>
    } = {},
  ) {
    super(message)
    this.name = 'Failure'
    this.code = code
    this.status = more.status ?? FAILURES[code].status
    this.internal = more.internal
    this.headers = more.headers ?? []
    this.details = more.details
  }
}

/** Authentication messages (all 401 `invalid_api_key`). See docs/errors.md, "Messages of 401". */
export const AUTH_MESSAGES = {
  missing: 'API key is missing or malformed.',
  invalid: 'API key is invalid.',
  revoked: 'API key has been revoked.',
  expired: 'API key has expired.',
  replaced: 'API key was rotated: this secret of it has ended. Use the new secret.',
  inactive: 'Account is not active.',
} as const

/** Returns the name of an upstream's own status in the chat-completions shape. */
export function nameUpstreamStatus(status: number): { code: string; type: string } {
  switch (status) {
    case 400:
    case 422:
      return { code: 'invalid_request', type: INVALID }
    case 401:
      return { code: 'invalid_api_key', type: 'authentication_error' }
    case 403:
      return { code: 'permission_denied', type: 'permission_error' }
    case 404:
      return { code: 'not_found', type: INVALID }
    case 429:
      return { code: 'rate_limit_exceeded', type: 'rate_limit_error' }
    default:
      return { code: 'upstream_error', type: 'api_error' }
  }
}
