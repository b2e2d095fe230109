/** Looking at what was made: free, answered with JSON. */
import { from, map, type Observable } from 'rxjs'
import type { Reply } from '../../src/http/handler.ts'
import { jsonReply } from '../replies/json.ts'
import type { Caller } from '../stages/authenticate.ts'

export type Answer = (caller: Caller) => Observable<Reply>

export const readHandler =
  (body: (caller: Caller) => Promise<object>): Answer =>
  (caller) =>
    from(body(caller)).pipe(map(jsonReply))
