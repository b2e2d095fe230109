/**
 * Limits the requests of an account, or of a key that reads the call log; sets the headers with the remaining number.
 * See docs/api-rules.md, "Rate limits".
 */
import { type MonoTypeOperatorFunction, Observable } from 'rxjs'
import type { Account } from '../../schemas/accounts/account.ts'
import { Failure } from '../../schemas/failure.ts'
import type { Decision, Limits } from '../../src/core/limits/limiter-state.ts'
import type { Catalog } from '../../src/core/routing/catalog.ts'
import type { HeaderList, Reply } from '../../src/http/handler.ts'
import { UpstreamRefusal } from '../chat/forward/upstream-error.ts'
import type { Limiter } from '../limits/limits.ts'
import { ErrorWithHeaders } from '../replies/error.ts'
import type { AuthenticatedCall } from './authenticate.ts'
import { type Stage, stage } from './stage.ts'

/** Requests of one key to the call log. */
export const LOG_REQUESTS_PER_MINUTE = 60
/** The end of a running request is unknown: a short fixed wait. */
const CONCURRENCY_RETRY_SECONDS = 1
const MS_PER_SECOND = 1000
const TOO_MANY_REQUESTS = 429

export interface RateDeps {
  readonly limiter: Pick<Limiter, 'take'>
  readonly catalog: () => Catalog
}

/** Limit of one kind of request. */
interface Rule {
  readonly subject: string
  readonly limits: Limits
  readonly headers: (limits: Limits, decision: Decision) => HeaderList
  /** Returns the failure. `headers` are those of every response, and the time of the next try. */
  readonly refusal: (limits: Limits, decision: Decision, headers: HeaderList) => Failure
}

/** Returns the limits of the account, or null without any. */
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

/** Adds headers to each reply, and to each error but the refusal of an upstream's own limit: clients can distinguish the two. */
export const addReplyHeaders =
  (headers: HeaderList): MonoTypeOperatorFunction<Reply> =>
  (replies) =>
    new Observable((subscriber) =>
      replies.subscribe({
        next: (reply) =>
          subscriber.next(
            reply.type === 'data' ? reply : { ...reply, headers: [...reply.headers, ...headers] },
          ),
        error: (error) => {
          const isUpstreamLimit = error instanceof UpstreamRefusal && error.status === TOO_MANY_REQUESTS
          subscriber.error(isUpstreamLimit ? error : new ErrorWithHeaders(error, headers))
        },
        complete: () => subscriber.complete(),
      }),
    )

/** Emits the call once it is admitted. Its slot is given back when the call is over. */
const limited = <C extends AuthenticatedCall>({ limiter }: RateDeps, call: C, rule: Rule): Observable<C> =>
  new Observable((subscriber) => {
    const decided = (decision: Decision) => {
      const replyHeaders = rule.headers(rule.limits, decision)
      if (decision.refusedBy !== null)
        return subscriber.error(rule.refusal(rule.limits, decision, replyHeaders))
      subscriber.next({ ...call, replyHeaders })
      subscriber.complete()
    }
    const permit = limiter.take(rule.subject, rule.limits, decided)
    call.ends.add(() => permit.close())
  })

/**
 * Counts the call against the limits of its account. An account without any costs nothing here.
 * @throws Failure `rate_limit_exceeded`
 */
export const rateLimit = <C extends AuthenticatedCall>(deps: RateDeps): Stage<C, C> =>
  stage((call: C) => {
    const { account } = call.known
    const limits = limitsOf(account, deps.catalog())
    if (limits === null) return call
    const rule = { subject: account.id, limits, headers: accountHeaders, refusal: accountRefusal }
    return limited(deps, call, rule)
  })

const LOG_LIMITS: Limits = { requestsPerMinute: LOG_REQUESTS_PER_MINUTE, concurrency: null }

/**
 * Counts the call against the call log's limit for each key; the account's limits do not count here.
 * @throws Failure `logs_rate_limited`
 */
export const limitLogReads = <C extends AuthenticatedCall>(deps: RateDeps): Stage<C, C> =>
  stage((call: C) => {
    const rule = {
      subject: call.known.key.id,
      limits: LOG_LIMITS,
      headers: (limits: Limits, decision: Decision) => requestHeaders(limits, decision),
      refusal: logRefusal,
    }
    return limited(deps, call, rule)
  })
