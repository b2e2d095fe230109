/** A free request about what was made or is kept: the stages of its pipeline, in the order in which they happen. */
import type { Handler, Reply } from '../../src/http/handler.ts'
import { answerOnce } from '../calls/answer.ts'
import {
  type AuthenticateDeps,
  type AuthenticatedCall,
  authenticate,
  type Caller,
} from '../calls/authenticate.ts'
import { type Found, find } from '../calls/find.ts'
import { jsonReply } from '../calls/json.ts'
import { pipeline } from '../calls/pipeline.ts'
import { type RateDeps, rateLimit } from '../calls/rate-limit.ts'
import type { Call } from '../calls/stage.ts'

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
