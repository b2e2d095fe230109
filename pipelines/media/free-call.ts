/** A free request about what was made: the stages of its pipeline, in the order in which they happen. */
import type { Handler } from '../../src/http/handler.ts'
import { answerJson } from '../stages/answer.ts'
import {
  type AuthenticateDeps,
  type AuthenticatedCall,
  authenticate,
  type Caller,
} from '../stages/authenticate.ts'
import { type Found, find } from '../stages/find.ts'
import { pipeline } from '../stages/pipeline.ts'
import { type RateDeps, rateLimit } from '../stages/rate-limit.ts'
import type { Call } from '../stages/stage.ts'

export interface FreeCallDeps extends AuthenticateDeps, RateDeps {}

/** Answers with what `work` returns, as JSON, whatever the wallet holds. */
export const freeCall = (deps: FreeCallDeps, work: (caller: Caller) => Promise<object>): Handler =>
  pipeline(
    authenticate(deps),
    rateLimit(deps),
    find<AuthenticatedCall, object>(work),
    answerJson(({ found }: Call & Found<object>) => found),
  )
