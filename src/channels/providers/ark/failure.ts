/** Ark's error codes as failures of a task. */
import type { MediaAnswer, Refused, SubmitOutcome } from '../../media/adapter.ts'
import { markUsedUp, readFields, toFields } from '../../media/answer.ts'
import type { MediaFailureCode } from '../../media/failure.ts'

/** `InputTextSensitiveContentDetected`, `OutputVideoSensitiveContentDetected.PolicyViolation`, … */
const POLICY = /Sensitive|RiskDetection|PolicyViolation|Moderation|Copyright/i
const INVALID = /^(InvalidParameter|MissingParameter|InvalidImage|InvalidVideo|InvalidArgument)/i
const LIMITED = /RateLimit|TooManyRequests|ServerOverloaded|QuotaExceeded|SetLimitExceeded/i

export function chooseArkCode(code: string): MediaFailureCode {
  if (POLICY.test(code)) return 'content_policy'
  if (INVALID.test(code)) return 'invalid_input'
  if (LIMITED.test(code)) return 'quota_exhausted'
  return /timeout/i.test(code) ? 'timeout' : 'generation_failed'
}

/** An overdue account is refused with 403. */
const OVERDUE = 'AccountOverdueError'

/** Returns a failed submit; `outcome` is what its status says. */
export const arkRefusal = <Outcome extends SubmitOutcome>(
  answer: MediaAnswer,
  outcome: Outcome,
): Outcome | Refused => markUsedUp(toFields(readFields(answer)?.error)?.code === OVERDUE, outcome)
