/** MiniMax answers nearly everything with 200: `base_resp` has a code and its text. */
import { z } from 'zod'
import type { MediaAnswer, SubmitOutcome } from '../../media/adapter.ts'
import {
  clipMessage,
  looseNumber,
  looseText,
  makeRefused,
  makeUnknown,
  PAYMENT_REQUIRED,
  readFields,
} from '../../media/answer.ts'
import type { MediaFailureCode } from '../../media/failure.ts'

const status = z.looseObject({ status_code: looseNumber, status_msg: looseText })

interface Failed {
  readonly code: number
  readonly message: string
}

/** Returns the failure in an answer; null for code 0, and for an answer without one. */
export function minimaxFailure(answer: MediaAnswer): Failed | null {
  const { status_code, status_msg } = status.safeParse(readFields(answer)?.base_resp).data ?? {}
  if (status_code == null || status_code === 0) return null
  return {
    code: status_code,
    message: clipMessage(status_msg ?? `The upstream answered with code ${status_code}.`),
  }
}

/** The wait for an answer was over: the task may have been taken on. */
const TIMEOUT = 1001
/** 1008 and 2056 are about the operator's account, not the customer's; 2042 and 20132 about a voice. */
const STATUSES: Readonly<Record<number, number>> = {
  1002: 429,
  1004: 401,
  1008: PAYMENT_REQUIRED,
  1026: 400,
  1027: 400,
  1039: 429,
  1041: 429,
  1042: 400,
  2013: 400,
  2037: 400,
  2042: 400,
  2045: 429,
  2049: 401,
  2056: PAYMENT_REQUIRED,
  20132: 400,
}

/** Returns a failed submit. */
export const minimaxRefusal = ({ code, message }: Failed): SubmitOutcome =>
  code === TIMEOUT ? makeUnknown(message) : makeRefused(STATUSES[code] ?? 500, message)

const CODES: Readonly<Record<number, MediaFailureCode>> = {
  1001: 'timeout',
  1002: 'quota_exhausted',
  1004: 'unauthorized',
  1008: 'quota_exhausted',
  1026: 'content_policy',
  1027: 'content_policy',
  2013: 'invalid_input',
  2037: 'invalid_input',
  2049: 'unauthorized',
}

export const minimaxFailureCode = (code: number | null): MediaFailureCode =>
  (code === null ? undefined : CODES[code]) ?? 'generation_failed'
