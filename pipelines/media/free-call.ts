/** The stages of a free request, in order. */
import type { Handler, Reply } from '../../src/http/handler.ts'
import { type AuthenticatedCall, authenticate, type CallAccess, type Caller } from '../calls/authenticate.ts'
import type { Call } from '../calls/pipeline.ts'
import { answerOnce, calls, type Found, find } from '../calls/pipeline.ts'
import { rateLimit } from '../calls/rate-limit.ts'
import { jsonReply } from '../calls/replies.ts'

/** Answers with the reply of `work`, whatever the balance. */
export const replyForFree = (access: CallAccess, work: (caller: Caller) => Promise<Reply>): Handler =>
  calls(authenticate(access))
    .then(rateLimit(access))
    .then(find<AuthenticatedCall, Reply>(work))
    .then(answerOnce(({ found }: Call & Found<Reply>) => found))
    .toHandler()

/** Answers with what `work` returns, as JSON, whatever the balance. */
export const answerForFree = (access: CallAccess, work: (caller: Caller) => Promise<object>): Handler =>
  replyForFree(access, async (caller) => jsonReply(await work(caller)))
