/** Acts that answer with a stream of events, which ends when the session or token of its reader does. */
import { exhaustMap, filter, from, interval, map, merge, type Observable } from 'rxjs'
import type { z } from 'zod'
import type { Operation } from '../../../schemas/management/operation.ts'
import type { Database } from '../../../src/postgres/database.ts'
import { AnsweredCall, type Stage, stage } from '../../stages/stage.ts'
import { type Act, accountOfInput, admit, failureOf } from '../act.ts'
import type { Caller } from '../caller.ts'
import type { CallerCall } from '../identify.ts'
import { eventStream, type LiveEvent } from './events.ts'

/** An end of the session is noticed within this time. */
const CHECK_INTERVAL_MS = 30_000

interface Watched {
  readonly caller: Caller
  readonly database: Database
  /** Epoch milliseconds. */
  readonly now: number
}

export interface StreamAct<Deps = object, O extends Operation = Operation> {
  readonly operation: O
  readonly accountOf: Act<never, O>['accountOf']
  /** @param isContinued the reader had the stream before, and its connection was cut */
  readonly open: (
    context: Watched & Deps,
    input: z.output<O['input']>,
    isContinued: boolean,
  ) => Promise<Observable<LiveEvent>>
}

/** Makes the act of an operation that streams. Its account is `account_id` of the input. */
export const implementStream = <Deps, O extends Operation>(
  operation: O,
  open: StreamAct<Deps, O>['open'],
): StreamAct<Deps, O> => ({ operation, accountOf: accountOfInput, open })

export interface StreamDeps {
  readonly database: Database
  /** Emits when the process drains: streams end, so that their readers connect to another. */
  readonly draining: Observable<unknown>
}

/**
 * Opens the stream and answers with it.
 * @param callerAgain returns the caller of the request as of now
 */
export const answerWithStream = <Deps>(
  deps: StreamDeps & Deps,
  act: StreamAct<Deps>,
  callerAgain: (call: CallerCall) => Promise<Caller>,
): Stage<CallerCall, never> =>
  stage((call) => {
    const { request, caller } = call
    const { database, draining } = deps
    const given = Object.fromEntries(new URLSearchParams(request.query))
    const isContinued = request.header('last-event-id') !== ''
    const mayRead = async () => {
      try {
        await admit(act, given, { database, caller: await callerAgain(call), now: Date.now() })
        return true
      } catch {
        return false
      }
    }
    const ended = merge(
      draining,
      interval(CHECK_INTERVAL_MS).pipe(
        exhaustMap(mayRead),
        filter((may) => !may),
      ),
    )
    const opening = async () => {
      try {
        const input = await admit(act, given, { database, caller, now: request.submittedAt })
        return await act.open({ ...deps, caller, now: request.submittedAt }, input as never, isContinued)
      } catch (error) {
        throw failureOf(error)
      }
    }
    return from(opening()).pipe(map((events) => new AnsweredCall(call, eventStream(events, ended))))
  })
