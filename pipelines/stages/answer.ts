/** The last stage of an endpoint whose answer needs only the caller and the request. */
import type { Observable } from 'rxjs'
import type { Reply } from '../../src/http/handler.ts'
import type { AuthenticatedCall, Caller } from './authenticate.ts'
import { AnsweredCall, type Stage, stage } from './stage.ts'

export const answer = (replies: (caller: Caller) => Observable<Reply>): Stage<AuthenticatedCall, never> =>
  stage((call) => new AnsweredCall(call, replies(call)))
