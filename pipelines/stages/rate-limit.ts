/**
 * Whether an account, or a key that reads the call log, may make one more request at this time; and the headers that
 * say how many more. Source: specification, "Rate and concurrency"; decisions, "Rate limits".
 */
import { defer, type MonoTypeOperatorFunction, Observable, throwError } from 'rxjs'
import type { Account } from '../../schemas/accounts/account.ts'
import { Failure } from '../../schemas/failure.ts'
import type { Decision, Limits } from '../../src/core/limits/limiter-state.ts'
import type { Catalog } from '../../src/core/routing/catalog.ts'
import type { HeaderList, Reply } from '../../src/http/handler.ts'
import { UpstreamRefusal } from '../chat/forward/upstream-error.ts'
import type { Limiter } from '../limits/limits.ts'
import { ErrorWithHeaders } from '../replies/error.ts'
import type { Caller } from './authenticate.ts'

/** Specification, "Rate and concurrency": the call-log API, for each key. */
export const LOG_REQUESTS_PER_MINUTE = 60
/** Nobody knows when a request that is under way will end. */
const CONCURRENCY_RETRY_SECONDS = 1
const MS_PER_SECOND = 1000
const TOO_MANY_REQUESTS = 429

export interface RateDeps {
  readonly limiter: Pick<Limiter, 'take'>
  readonly catalog: () => Catalog
}

/** How one kind of request is limited. */
interface Rule {
  readonly subject: string
  readonly limits: Limits
  readonly headers: (limits: Limits, decision: Decision) => HeaderList
  /** `headers` are those of every response, and when to come again. */
  readonly refusal: (limits: Limits, decision: Decision, headers: HeaderList) => Failure
}

type Answer<T> = (value: T) => Observable<Reply>

/** Null where nothing limits the account. */
function limitsOf({ requestsPerMinute, concurrency }: Account, catalog: Catalog): Limits | null {
  const { limits } = catalog.config
  const own = requestsPerMinute ?? limits.requests_per_minute
  const ownConcurrency = concurrency ?? limits.concurrency
  return own === null && ownConcurrency === null
    ? null
    : { requestsPerMinute: own, concurrency: ownConcurrency }
}

const secondsOf = (ms: number): number => Math.ceil(ms / MS_PER_SECOND)

function requestHeaders({ requestsPerMinute }: Limits, decision: Decision, suffix = ''): HeaderList {
  return [
    [`x-ratelimit-limit${suffix}`, String(requestsPerMinute)],
    [`x-ratelimit-remaining${suffix}`, String(decision.remainingRequests)],
    [`x-ratelimit-reset${suffix}`, String(secondsOf(decision.resetMs))],
  ]
}

function accountHeaders(limits: Limits, decision: Decision): HeaderList {
  const { requestsPerMinute, concurrency } = limits
  const requests =
    requestsPerMinute === null
      ? []
      : [...requestHeaders(limits, decision), ...requestHeaders(limits, decision, '-requests')]
  if (concurrency === null) return requests
  return [
    ...requests,
    ['x-ratelimit-limit-concurrency', String(concurrency)],
    ['x-ratelimit-remaining-concurrency', String(decision.remainingConcurrency)],
  ]
}

const retryAfter = (seconds: number) => ['retry-after', String(Math.max(1, seconds))] as const

function accountRefusal(limits: Limits, { refusedBy, resetMs }: Decision, headers: HeaderList): Failure {
  if (refusedBy === 'concurrency')
    return new Failure(
      'rate_limit_exceeded',
      `Rate limit exceeded: concurrency. At most ${limits.concurrency} requests of this account may be in flight at once.`,
      { headers: [...headers, retryAfter(CONCURRENCY_RETRY_SECONDS)] },
    )
  const seconds = secondsOf(resetMs)
  return new Failure(
    'rate_limit_exceeded',
    `Rate limit exceeded: requests per minute. This account may make ${limits.requestsPerMinute}; try again in ${seconds} s.`,
    { headers: [...headers, retryAfter(seconds)] },
  )
}

function logRefusal({ requestsPerMinute }: Limits, { resetMs }: Decision, headers: HeaderList): Failure {
  const seconds = secondsOf(resetMs)
  return new Failure(
    'logs_rate_limited',
    `The call log answers ${requestsPerMinute} requests per minute to a key; try again in ${seconds} s.`,
    { headers: [...headers, retryAfter(seconds)] },
  )
}

/** Every response says what is left, but for the refusal of an upstream's own limit: so the two are told apart. */
function withHeaders(error: unknown, headers: HeaderList): unknown {
  const isUpstreamLimit = error instanceof UpstreamRefusal && error.status === TOO_MANY_REQUESTS
  return isUpstreamLimit ? error : new ErrorWithHeaders(error, headers)
}

/** Subscribes to `work` once it is admitted, and gives back what it took when that is over, however it ends. */
function limited(
  { limiter }: RateDeps,
  rule: Rule,
  refused: MonoTypeOperatorFunction<Reply>,
  work: () => Observable<Reply>,
): Observable<Reply> {
  return new Observable((subscriber) => {
    const told = (decision: Decision) => {
      const headers = rule.headers(rule.limits, decision)
      if (decision.refusedBy !== null) {
        const refusal = rule.refusal(rule.limits, decision, headers)
        subscriber.add(
          throwError(() => refusal)
            .pipe(refused)
            .subscribe(subscriber),
        )
        return
      }
      const answered = defer(work).subscribe({
        next: (reply) =>
          subscriber.next(
            reply.type === 'data' ? reply : { ...reply, headers: [...reply.headers, ...headers] },
          ),
        error: (error) => subscriber.error(withHeaders(error, headers)),
        complete: () => subscriber.complete(),
      })
      subscriber.add(answered)
    }
    const permit = limiter.take(rule.subject, rule.limits, told)
    return () => permit.close()
  })
}

export interface LimitedWork<T> {
  /** Records what is refused here. */
  readonly refusalsOf: (value: T) => MonoTypeOperatorFunction<Reply>
  readonly work: Answer<T>
}

/** The limits of the account. One without any costs nothing here, and its responses say nothing. */
export function withinAccountLimits<T extends Caller>(deps: RateDeps, options: LimitedWork<T>): Answer<T> {
  return (value) => {
    const { account } = value.known
    const limits = limitsOf(account, deps.catalog())
    if (limits === null) return options.work(value)
    const rule = { subject: account.id, limits, headers: accountHeaders, refusal: accountRefusal }
    return limited(deps, rule, options.refusalsOf(value), () => options.work(value))
  }
}

const LOG_LIMITS: Limits = { requestsPerMinute: LOG_REQUESTS_PER_MINUTE, concurrency: null }

/** The call log's own limit, for each key; the account's limits do not count here. */
export function withinLogLimit<T extends Caller>(deps: RateDeps, work: Answer<T>): Answer<T> {
  return (value) => {
    const rule = {
      subject: value.known.key.id,
      limits: LOG_LIMITS,
      headers: (limits: Limits, decision: Decision) => requestHeaders(limits, decision),
      refusal: logRefusal,
    }
    return limited(deps, rule, unrecorded, () => work(value))
  }
}

/** Refusals of calls leave rows; others do not. */
export const unrecorded: MonoTypeOperatorFunction<Reply> = (replies) => replies
