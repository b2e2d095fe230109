/** A free request about what was made or is kept: the stages of its pipeline, in the order in which they happen. */
import type { Handler, Reply } from '../../src/http/handler.ts'
import { jsonReply } from '../replies/json.ts'
import { answerOnce } from '../stages/answer.ts'
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

/** Answers with what `work` returns, whatever the wallet holds. */
export const freeReply = (deps: FreeCallDeps, work: (caller: Caller) => Promise<Reply>): Handler =>
  pipeline(
    authenticate(deps),
    rateLimit(deps),
    find<AuthenticatedCall, Reply>(work),
    answerOnce(({ found }: Call & Found<Reply>) => found),
  )

/** Answers with what `work` returns, as JSON, whatever the wallet holds. */
export const freeCall = (deps: FreeCallDeps, work: (caller: Caller) => Promise<object>): Handler =>
  freeReply(deps, async (caller) => jsonReply(await work(caller)))
