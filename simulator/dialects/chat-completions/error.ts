/** The error shape that the dialects for chat-completions, responses, images and speech share. */

import type { FailureReason, SimulatedFailure } from '../../dialect.ts'

const ERROR_CODES: Readonly<Record<FailureReason, string | null>> = {
  invalid_request: null,
  invalid_api_key: 'invalid_api_key',
  model_not_found: 'model_not_found',
  not_found: null,
  method_not_allowed: 'method_not_supported',
  request_too_large: null,
  rate_limited: 'rate_limit_exceeded',
  simulated: null,
}

export function errorBody({ status, reason, code, message, param }: SimulatedFailure): unknown {
  const type =
    reason === 'rate_limited' ? 'requests' : status >= 500 ? 'server_error' : 'invalid_request_error'
  return { error: { message, type, param, code: code ?? ERROR_CODES[reason] } }
}
