/**
 * From an admitted call to its reply: written to the journal, sent to one channel after another until one answers,
 * relayed, and settled exactly once, whatever happens.
 */
import { Observable } from 'rxjs'
import type { Reply } from '../../../src/http/handler.ts'
import { Answered, type Stage } from '../../calls/pipeline.ts'
import type { AdmittedCall } from '../precharge.ts'
import type { Forwarding } from './deps.ts'
import { ForwardedCall } from './forwarded-call.ts'

/** Answers the call: forwards it, meters the answer as it passes, and settles once. Unsubscribing aborts it. */
export const forward =
  (deps: Forwarding): Stage<AdmittedCall, never> =>
  (call) => {
    call.inConversation?.handOver()
    const replies = new Observable<Reply>((subscriber) => {
      new ForwardedCall(deps, call, subscriber).start()
    })
    return new Answered(call, replies)
  }
