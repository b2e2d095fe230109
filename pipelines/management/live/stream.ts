/** Operations that answer with a stream of events, which ends when the session or token of its reader does. */
import { concatMap, exhaustMap, filter, from, interval, map, merge, Observable } from 'rxjs'
import type { z } from 'zod'
import { COLLECTION_LIMITS, type CollectionLimit } from '../../../schemas/collection-limits.ts'
import { Failure } from '../../../schemas/failure.ts'
import type { Operation } from '../../../schemas/management/operation.ts'
import { INSTALLATION } from '../../../schemas/notifications/event.ts'
import type { SubjectLimits } from '../../../src/core/limits/limiter-state.ts'
import type { Handler } from '../../../src/http/handler.ts'
import { admits } from '../../../src/limits/limited-request.ts'
import type { Limiter } from '../../../src/limits/limits.ts'
import { Answered, calls, type Stage } from '../../calls/pipeline.ts'
import { type CallerCall, identify, identifyCaller, type ManagementAccess } from '../identify.ts'
import { type AboutAccount, admit, type ReadContext, readInputAccount, toFailure } from '../operation.ts'
import { type LiveEvent, streamEvents } from './events.ts'

/** An end of the session is noticed within this time. */
const CHECK_INTERVAL_MS = 30_000

export interface StreamContext extends ReadContext {
  /** The reader had the stream before, and its connection was cut. */
  readonly isContinued: boolean
}

export interface StreamImplementation<Services = object, O extends Operation = Operation>
  extends AboutAccount<O> {
  readonly open: (
    context: StreamContext,
    input: z.output<O['input']>,
    services: Services,
  ) => Promise<Observable<LiveEvent>>
}

/** Binds a function to an operation that streams. Its account is `account_id` of the input. */
export const implementStream = <Services, O extends Operation>(
  operation: O,
  open: StreamImplementation<Services, O>['open'],
): StreamImplementation<Services, O> => ({ operation, findAccount: readInputAccount, open })

/** What bounds streams: how many there are, and how long they last. */
export interface StreamBounds {
  readonly limiter: Limiter
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
const takeSlot = (limiter: Limiter, { caller, ends }: CallerCall, accountId: string | null) =>
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

/** Makes the handler of an operation that streams. */
export const serveStream = <Services>(
  access: ManagementAccess,
  bounds: StreamBounds,
  implementation: StreamImplementation<Services>,
  services: Services,
): Handler =>
  calls(identify(access))
    .then(answerWithStream(access, bounds, implementation, services))
    .toHandler()

/** Opens the stream and answers with it. */
const answerWithStream =
  <Services>(
    access: ManagementAccess,
    { limiter, draining }: StreamBounds,
    implementation: StreamImplementation<Services>,
    services: Services,
  ): Stage<CallerCall, never> =>
  (call) => {
    const { request } = call
    const { database } = access
    const given = Object.fromEntries(new URLSearchParams(request.query))
    const isContinued = request.header('last-event-id') !== ''
    const mayRead = async () => {
      try {
        const { caller } = await identifyCaller(access, request)
        await admit(implementation, given, { database, caller, now: Date.now() })
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
    const openStream = async () => {
      try {
        const context = { database, caller: call.caller, now: request.submittedAt, isContinued }
        const input = await admit(implementation, given, context)
        const open = () => implementation.open(context, input as never, services)
        return { open, accountId: await implementation.findAccount(database, input as never) }
      } catch (error) {
        throw toFailure(error)
      }
    }
    return from(openStream()).pipe(
      concatMap(({ open, accountId }) => takeSlot(limiter, call, accountId).pipe(concatMap(open))),
      map((events) => new Answered(call, streamEvents(events, ended))),
    )
  }
