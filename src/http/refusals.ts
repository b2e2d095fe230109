/** Refusals of the server itself, before a handler gets the request. */
import { Failure } from '../../schemas/failure.ts'

const BYTES_PER_MIB = 1024 * 1024

export const tooLarge = (limitBytes: number): Failure =>
  new Failure('request_too_large', `The request body is larger than ${limitBytes / BYTES_PER_MIB} MiB.`)

export const tooMuchText = (limitBytes: number): Failure =>
  new Failure(
    'request_too_large',
    `The request body is larger than ${limitBytes / BYTES_PER_MIB} MiB without the files that it carries inline.`,
  )

export const shuttingDown = (): Failure =>
  new Failure('service_unavailable', 'The service is shutting down. Try again in a moment.', {
    headers: [
      ['retry-after', '1'],
      ['connection', 'close'],
    ],
  })

/**
 * Returns the same refusal as `shuttingDown` for a client that is still sending: a connection closed at once would
 * lose it the answer.
 */
export const uploadCutShort = (): Failure =>
  new Failure(
    'service_unavailable',
    'The service is shutting down and does not wait for the rest of the request. Send it again in a moment.',
    { headers: [['retry-after', '1']] },
  )

/**
 * Refuses an ambiguous length: the next bytes on the connection could be the rest of this body or the next request.
 */
export const ambiguousLength = (): Failure =>
  new Failure(
    'invalid_request',
    'The request does not say where its body ends: send one Content-Length, or, with a method that has a body, "Transfer-Encoding: chunked" alone.',
    {
      headers: [['connection', 'close']],
    },
  )

/** Refuses an ambiguous host: a proxy in front may have chosen this service by another one. */
export const ambiguousHost = (): Failure =>
  new Failure(
    'invalid_request',
    'The request must have one Host header, a host name with or without a port.',
    {
      headers: [['connection', 'close']],
    },
  )

export const refuseRepeatedHeader = (name: string): Failure =>
  new Failure('invalid_request', `The request has the header ${name} twice, with different values. Send one.`)
