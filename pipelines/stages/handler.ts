/** The handler of an endpoint: runs its stages for each request, and sends the answer or the refusal. */
import { type MonoTypeOperatorFunction, Observable, of, throwError } from 'rxjs'
import type { Handler, Reply } from '../../src/http/handler.ts'
import { storeAnswer } from './idempotency.ts'
import { addReplyHeaders } from './rate-limit.ts'
import { AnsweredCall, type Call, type Fused, type RefusedCall } from './stage.ts'

/** Returns the replies as the client gets them. Those of a usual call pass no operator. */
function repliesTo({ call, replies }: AnsweredCall): Observable<Reply> {
  const { claim, keepAlive, replyHeaders } = call
  let all = replies
  if (claim !== undefined) all = all.pipe(storeAnswer(claim))
  if (keepAlive !== undefined) all = all.pipe(keepAlive)
  if (replyHeaders !== undefined) all = all.pipe(addReplyHeaders(replyHeaders))
  return all
}

/** Makes a handler. `recordRefusals` is left out where a refusal leaves no row in the call log. */
export function handler(stages: Fused, recordRefusals?: MonoTypeOperatorFunction<AnsweredCall>): Handler {
  const pipeline =
    recordRefusals === undefined ? stages : (calls: Observable<Call>) => recordRefusals(stages(calls))
  const handle: Handler = (request) =>
    new Observable((client) => {
      const reply = (answered: AnsweredCall) => client.add(repliesTo(answered).subscribe(client))
      const answers = of<Call>({ request, ends: client })
        .pipe(pipeline)
        .subscribe({
          next: reply,
          error: (refused: RefusedCall) =>
            reply(
              new AnsweredCall(
                refused.call,
                throwError(() => refused.error),
              ),
            ),
        })
      client.add(answers)
    })
  return stages.admit === undefined ? handle : Object.assign(handle, { admit: stages.admit })
}
