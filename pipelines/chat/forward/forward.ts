/**
 * From an admitted call to its reply: written to the journal, sent to one channel after another until one answers,
 * relayed, and settled exactly once, whatever happens.
 * See docs/architecture.md, "A call"; docs/api-rules.md, "Attempts".
 */
import { Observable } from 'rxjs'
import type { Reply } from '../../../src/http/handler.ts'
import { Answered, type Stage } from '../../calls/pipeline.ts'
import type { AdmittedCall } from '../precharge.ts'
import type { ForwardDeps } from './deps.ts'
import { ForwardedCall } from './forwarded-call.ts'

/** Sends the call on subscription, which must be one; unsubscribing aborts it. */
export const repliesTo = (deps: ForwardDeps, admitted: AdmittedCall): Observable<Reply> =>
  new Observable((subscriber) => {
    new ForwardedCall(deps, admitted, subscriber).start()
  })

/** Answers the call: forwards it, meters the answer as it passes, and settles once. */
export const forward =
  (deps: ForwardDeps): Stage<AdmittedCall, never> =>
  (call) => {
    call.inConversation?.handOver()
    return new Answered(call, repliesTo(deps, call))
  }
