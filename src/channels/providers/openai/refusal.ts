/** Refusals of OpenAI's media. */
import type { MediaAnswer, Refused } from '../../media/adapter.ts'
import { markUsedUp, readFields, readPlainRefusal, toFields } from '../../media/answer.ts'

/** An account that has reached its limit is refused with 400, one without credit with 429. */
const USED_UP: readonly unknown[] = ['billing_hard_limit_reached', 'insufficient_quota']

export const openaiRefusal = (answer: MediaAnswer): Refused =>
  markUsedUp(USED_UP.includes(toFields(readFields(answer)?.error)?.code), readPlainRefusal(answer, 502))
