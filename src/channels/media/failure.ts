/**
 * Codes of a task's failure, and the statuses for a client that waits for the end. See docs/upstream-task.md,
 * "Errors".
 */

/** Code to HTTP status. */
export const MEDIA_FAILURES = {
  invalid_input: 400,
  invalid_link: 400,
  unsupported_video: 400,
  no_speech: 400,
  asr_expired: 400,
  template_withdrawn: 400,
  content_policy: 400,
  reference_reuse: 400,
  source_unreachable: 400,
  not_cancellable: 409,
  rate_limited: 429,
  generation_failed: 502,
  connection_failed: 502,
  unauthorized: 401,
  quota_exhausted: 503,
  timeout: 504,
} as const
export type MediaFailureCode = keyof typeof MEDIA_FAILURES

const isKnown = (code: string): code is MediaFailureCode => Object.hasOwn(MEDIA_FAILURES, code)

/** Returns one of our codes for an upstream's own code. */
export const toMediaFailureCode = (code: string | null): MediaFailureCode =>
  code !== null && isKnown(code) ? code : 'generation_failed'

/** Returns the status for a request that waited for the end of a task which failed with `code`. */
export const findMediaFailureStatus = (code: string): number => MEDIA_FAILURES[toMediaFailureCode(code)]
