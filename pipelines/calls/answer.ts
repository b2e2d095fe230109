/** The last stage of an endpoint whose answer needs only the call. */
import { type Observable, of } from 'rxjs'
import type { Reply } from '../../src/http/handler.ts'
import { jsonReply } from './json.ts'
import { AnsweredCall, type Call, type Stage, stage } from './stage.ts'

/** Answers with these replies. */
export const answer = <C extends Call>(replies: (call: C) => Observable<Reply>): Stage<C, never> =>
  stage((call: C) => new AnsweredCall(call, replies(call)))

/** Answers with one reply. */
export const answerOnce = <C extends Call>(reply: (call: C) => Reply): Stage<C, never> =>
  answer((call: C) => of(reply(call)))

/** Answers with JSON. */
export const answerJson = <C extends Call>(body: (call: C) => object): Stage<C, never> =>
  answerOnce((call: C) => jsonReply(body(call)))
