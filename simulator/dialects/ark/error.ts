/** The error shape that Ark's interfaces for images and videos share. */

import { type FailureReason, failuresAs, type SimulatedFailure } from '../../dialect.ts'

export const NO_KEY = 'The API key in the request is missing or invalid.'

const CODES: Readonly<Record<FailureReason, string>> = {
  invalid_request: 'InvalidParameter',
  invalid_api_key: 'AuthenticationError',
  model_not_found: 'InvalidEndpointOrModel.NotFound',
  not_found: 'ResourceNotFound',
  method_not_allowed: 'MethodNotAllowed',
  request_too_large: 'RequestEntityTooLarge',
  rate_limited: 'RateLimitExceeded.EndpointRPMExceeded',
  simulated: 'InternalServiceError',
}

const TYPES: Readonly<Record<number, string>> = {
  400: 'BadRequest',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'NotFound',
  429: 'TooManyRequests',
}

function errorBody({ status, reason, code, message, param }: SimulatedFailure): object {
  const type = TYPES[status] ?? (status >= 500 ? 'InternalServerError' : 'BadRequest')
  return { error: { code: code ?? CODES[reason], message, param: param ?? '', type } }
}

export const errorAnswer = failuresAs(errorBody)
