/** The endings of a call: they decide what is owed and what its row says. */
import type { CallStatus } from '../../../schemas/call-log/row.ts'
import type { Failure } from '../../../schemas/failure.ts'
import type { AttemptFailure } from '../../calls/upstream-error.ts'

export type Ending =
  /** The client went away, or the gateway is draining. */
  | { readonly kind: 'aborted' }
  | { readonly kind: 'success' }
  /** It could not be written for any upstream, so none was called; or the upstream refused what it asks for. */
  | { readonly kind: 'refused'; readonly code: string; readonly message: string }
  /** The upstream failed, before or after the first byte. */
  | { readonly kind: 'failed'; readonly code: string; readonly message: string }
  /** The gateway's own clock ran out. */
  | { readonly kind: 'timeout'; readonly message: string }

export const STATUS_OF: Readonly<Record<Ending['kind'], CallStatus>> = {
  aborted: 'interrupted',
  success: 'success',
  refused: 'rejected',
  failed: 'error',
  timeout: 'interrupted',
}

/** Returns the ending of a call that ends with this failure. */
export function endingOf({ code, message, isTimeout, isRejected = false }: AttemptFailure): Ending {
  if (isTimeout) return { kind: 'timeout', message }
  return { kind: isRejected ? 'refused' : 'failed', code, message }
}

const failedBy = (code: string, message: string): Ending => ({ kind: 'failed', code, message })
export const refusedBy = ({ code, message }: Failure): Ending => ({ kind: 'refused', code, message })

export const FAULT = failedBy('internal_error', 'The gateway failed to handle the call.')
export const UNJOURNALED = failedBy('service_unavailable', 'The journal cannot be written.')
