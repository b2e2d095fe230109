/** Operations that answer with a stream of events, which ends when the session or token of its reader does. */
import { concatMap, exhaustMap, filter, from, interval, map, merge, Observable } from 'rxjs'
import type { z } from 'zod'
import { COLLECTION_LIMITS, type CollectionLimit } from '../../../schemas/collection-limits.ts'
import { Failure } from '../../../schemas/failure.ts'
import type { Operation } from '../../../schemas/management/operation.ts'
import { INSTALLATION } from '../../../schemas/notifications/event.ts'
import type { SubjectLimits } from '../../../src/core/limits/limiter-state.ts'
import { admits } from '../../../src/limits/limited-request.ts'
import type { Limiter } from '../../../src/limits/limits.ts'
import type { Database } from '../../../src/postgres/database.ts'
import { Answered, type Stage } from '../../calls/pipeline.ts'
import type { Caller } from '../caller.ts'
import type { CallerCall } from '../identify.ts'
import { accountOfInput, admit, type Implementation, toFailure } from '../operation.ts'
import { eventStream, type LiveEvent } from './events.ts'

/** An end of the session is noticed within this time. */
const CHECK_INTERVAL_MS = 30_000

interface Watched {
  readonly caller: Caller
  readonly database: Database
  /** Epoch milliseconds. */
  readonly now: number
}

export interface StreamImplementation<Deps = object, O extends Operation = Operation> {
  readonly operation: O
  readonly accountOf: Implementation<never, O>['accountOf']
  /** @param isContinued the reader had the stream before, and its connection was cut */
  readonly open: (
    context: Watched & Deps,
    input: z.output<O['input']>,
    isContinued: boolean,
  ) => Promise<Observable<LiveEvent>>
}

/** Binds a function to an operation that streams. Its account is `account_id` of the input. */
export const implementStream = <Deps, O extends Operation>(
  operation: O,
  open: StreamImplementation<Deps, O>['open'],
): StreamImplementation<Deps, O> => ({ operation, accountOf: accountOfInput, open })

export interface StreamDeps {
  readonly database: Database
  readonly limiter: Pick<Limiter, 'take'>
  /** Emits when the process drains: streams end, so that their readers connect to another. */
  readonly draining: Observable<unknown>
}

const RETRY_SECONDS = 10

const limitStreams = (subject: string, limit: CollectionLimit): SubjectLimits => ({
  subject: `streams ${subject}`,
  limits: { requestsPerMinute: null, concurrency: COLLECTION_LIMITS[limit] },
})

/**
 * Counts a stream against the limits of its reader and of its account, over all processes. Emits once when it may be
 * opened; the end of the call gives its slots back.
 * @throws Failure `rate_limit_exceeded`
 */
const takeSlot = (limiter: StreamDeps['limiter'], { caller, ends }: CallerCall, accountId: string | null) =>
  new Observable<null>((subscriber) => {
    // A token has no session: its streams count by the token.
    const reader = caller.signedIn?.session.id ?? caller.actor
    const limits = ['live_streams_per_session', 'live_streams_per_account'] as const
    const [ofReader, ofAccount] = limits
    const subjects = [limitStreams(reader, ofReader), limitStreams(accountId ?? INSTALLATION, ofAccount)]
    const permit = limiter.take(subjects, (decisions) => {
      if (admits(decisions)) {
        subscriber.next(null)
        return subscriber.complete()
      }
      const limit = limits[decisions.findIndex(({ refusedBy }) => refusedBy !== null)]!
      subscriber.error(
        new Failure(
          'rate_limit_exceeded',
          `The limit ${limit} is ${COLLECTION_LIMITS[limit]}, and there are as many: close one first.`,
          { headers: [['retry-after', String(RETRY_SECONDS)]] },
        ),
      )
    })
    ends.add(() => permit.close())
  })

/**
 * Opens the stream and answers with it.
 * @param callerAgain returns the caller of the request as of now
 */
export const answerWithStream =
  <Deps>(
    deps: StreamDeps & Deps,
    implementation: StreamImplementation<Deps>,
    callerAgain: (call: CallerCall) => Promise<Caller>,
  ): Stage<CallerCall, never> =>
  (call) => {
    const { request, caller } = call
    const { database, draining, limiter } = deps
    const given = Object.fromEntries(new URLSearchParams(request.query))
    const isContinued = request.header('last-event-id') !== ''
    const mayRead = async () => {
      try {
        await admit(implementation, given, { database, caller: await callerAgain(call), now: Date.now() })
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
        const input = await admit(implementation, given, { database, caller, now: request.submittedAt })
        const open = () =>
          implementation.open({ ...deps, caller, now: request.submittedAt }, input as never, isContinued)
        return { open, accountId: await implementation.accountOf(database, input as never) }
      } catch (error) {
        throw toFailure(error)
      }
    }
    return from(opening()).pipe(
      concatMap(({ open, accountId }) => takeSlot(limiter, call, accountId).pipe(concatMap(open))),
      map((events) => new Answered(call, eventStream(events, ended))),
    )
  }
