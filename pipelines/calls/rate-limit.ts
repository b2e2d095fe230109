/**
 * Limits the requests of a key and of its account, and of a key that reads the call log; sets the headers with the
 * remaining number.
 * See docs/api-rules.md, "Rate limits".
 */
import { Observable } from 'rxjs'
import type { Account } from '../../schemas/accounts/account.ts'
import { Failure } from '../../schemas/failure.ts'
import type { Decision, Limits, SubjectLimits } from '../../src/core/limits/limiter-state.ts'
import type { Catalog } from '../../src/core/routing/catalog.ts'
import type { KnownKey } from '../../src/credentials/credentials.ts'
import type { HeaderList } from '../../src/http/handler.ts'
import { admits } from '../../src/limits/limited-request.ts'
import type { AuthenticatedCall, CallAccess } from './authenticate.ts'
import { RefusedCall, type Stage } from './pipeline.ts'

/** Requests of one key to the call log, and of one key to `GET /v1/usage`. */
const READS_PER_MINUTE = 60
/** The end of a running request is unknown: a short fixed wait. */
const CONCURRENCY_RETRY_SECONDS = 1
const MS_PER_SECOND = 1000

/** Limits that a call counts against, and what they are called in a refusal. */
interface Scope extends SubjectLimits {
  readonly name: string
}

/** A scope with its decision on the call. */
interface Decided extends Scope {
  readonly decision: Decision
}

/** Answers of one kind of request. */
interface Wording {
  readonly headers: (decided: readonly Decided[]) => HeaderList
  /** Returns the failure, with the time of the next try. */
  readonly refusal: (decided: readonly Decided[]) => Failure
}

/** Returns the limits of the account, or null without any. */
function readAccountLimits({ requestsPerMinute, concurrency }: Account, catalog: Catalog): Limits | null {
  const { limits } = catalog.config
  const own = requestsPerMinute ?? limits.requests_per_minute
  const ownConcurrency = concurrency ?? limits.concurrency
  return own === null && ownConcurrency === null
    ? null
    : { requestsPerMinute: own, concurrency: ownConcurrency }
}

/** Returns the limits of the key and those of the account, where there are any; null without both. */
function listScopes({ key, account }: KnownKey, catalog: Catalog): Scope[] | null {
  const limits = readAccountLimits(account, catalog)
  if (limits === null && key.limits === null) return null
  const scopes: Scope[] = []
  // Not only the id: that is the subject of the call log's limit.
  if (key.limits !== null) scopes.push({ subject: `calls ${key.id}`, limits: key.limits, name: 'API key' })
  if (limits !== null) scopes.push({ subject: account.id, limits, name: 'account' })
  return scopes
}

const toSeconds = (ms: number): number => Math.ceil(ms / MS_PER_SECOND)

function printRequestHeaders({ limits, decision }: Decided, suffix = ''): HeaderList {
  return [
    [`x-ratelimit-limit${suffix}`, String(limits.requestsPerMinute)],
    [`x-ratelimit-remaining${suffix}`, String(decision.remainingRequests)],
    [`x-ratelimit-reset${suffix}`, String(toSeconds(decision.resetMs))],
  ]
}

const compareRequests = ({ decision: a }: Decided, { decision: b }: Decided): number =>
  a.remainingRequests - b.remainingRequests || b.resetMs - a.resetMs

const compareSlots = ({ decision: a }: Decided, { decision: b }: Decided): number =>
  a.remainingConcurrency - b.remainingConcurrency

/** Returns the headers of the tighter limit in each dimension. */
function printCallHeaders(decided: readonly Decided[]): HeaderList {
  const [byMinute] = decided.filter(({ limits }) => limits.requestsPerMinute !== null).sort(compareRequests)
  const [bySlots] = decided.filter(({ limits }) => limits.concurrency !== null).sort(compareSlots)
  const requests =
    byMinute === undefined
      ? []
      : [...printRequestHeaders(byMinute), ...printRequestHeaders(byMinute, '-requests')]
  if (bySlots === undefined) return requests
  return [
    ...requests,
    ['x-ratelimit-limit-concurrency', String(bySlots.limits.concurrency)],
    ['x-ratelimit-remaining-concurrency', String(bySlots.decision.remainingConcurrency)],
  ]
}

const retryAfter = (seconds: number) => ['retry-after', String(Math.max(1, seconds))] as const

/** Names the limit that is to be waited for longest. */
function refuseCall(decided: readonly Decided[]): Failure {
  const [byMinute] = decided.filter(({ decision }) => decision.refusedBy === 'requests').sort(compareRequests)
  if (byMinute !== undefined) {
    const seconds = toSeconds(byMinute.decision.resetMs)
    return new Failure(
      'rate_limit_exceeded',
      `Rate limit exceeded: requests per minute. This ${byMinute.name} may make ${byMinute.limits.requestsPerMinute}; try again in ${seconds} s.`,
      { headers: [retryAfter(seconds)] },
    )
  }
  const { name, limits } = decided.find(({ decision }) => decision.refusedBy === 'concurrency')!
  return new Failure(
    'rate_limit_exceeded',
    `Rate limit exceeded: concurrency. At most ${limits.concurrency} requests of this ${name} may be in flight at once.`,
    { headers: [retryAfter(CONCURRENCY_RETRY_SECONDS)] },
  )
}

function refuseLogRead([decided]: readonly Decided[]): Failure {
  const seconds = toSeconds(decided!.decision.resetMs)
  return new Failure(
    'logs_rate_limited',
    `The call log answers ${READS_PER_MINUTE} requests per minute to a key; try again in ${seconds} s.`,
    { headers: [retryAfter(seconds)] },
  )
}

const CALLS: Wording = { headers: printCallHeaders, refusal: refuseCall }
const LOG_READS: Wording = { headers: ([decided]) => printRequestHeaders(decided!), refusal: refuseLogRead }

/** Throws where another refusal goes before that of the limits. */
type Assertion<C> = (call: C) => void

/** Returns the refusal of a call that is over a limit. */
function refuseAfter<C extends AuthenticatedCall>(
  call: C,
  refusal: () => Failure,
  assert?: Assertion<C>,
): RefusedCall {
  try {
    assert?.(call)
  } catch (error) {
    return new RefusedCall(call, error)
  }
  return new RefusedCall(call, refusal())
}

/** Emits the call once it is admitted. Its slots are given back when the call is over. */
const takeSlots = <C extends AuthenticatedCall>(
  { limiter }: CallAccess,
  call: C,
  scopes: readonly Scope[],
  { wording, assert }: { readonly wording: Wording; readonly assert?: Assertion<C> | undefined },
): Observable<C> =>
  new Observable((subscriber) => {
    const onDecisions = (decisions: readonly Decision[]) => {
      const decided = scopes.map((scope, index) => ({ ...scope, decision: decisions[index]! }))
      const counted = { ...call, replyHeaders: wording.headers(decided) }
      if (!admits(decisions))
        return subscriber.error(refuseAfter(counted, () => wording.refusal(decided), assert))
      subscriber.next(counted)
      subscriber.complete()
    }
    const permit = limiter.take(scopes, onDecisions)
    call.ends.add(() => permit.close())
  })

/**
 * Counts the call against the limits of its key and of its account. Without any it costs nothing here.
 * @param assert throws what goes before the refusal of a limit: of a paid call, that its wallet is empty
 * @throws Failure `rate_limit_exceeded`, or what `assert` throws
 */
export const rateLimit =
  <C extends AuthenticatedCall>(access: CallAccess, assert?: Assertion<C>): Stage<C, C> =>
  (call: C) => {
    const scopes = listScopes(call.known, access.catalog())
    return scopes === null ? call : takeSlots(access, call, scopes, { wording: CALLS, assert })
  }

const READ_LIMITS: Limits = { requestsPerMinute: READS_PER_MINUTE, concurrency: null }

/**
 * Counts the call against the call log's limit for each key; limits of the key and of the account do not count here.
 * @throws Failure `logs_rate_limited`
 */
export const limitLogReads =
  <C extends AuthenticatedCall>(access: CallAccess): Stage<C, C> =>
  (call: C) =>
    takeSlots(access, call, [{ subject: call.known.key.id, limits: READ_LIMITS, name: 'API key' }], {
      wording: LOG_READS,
    })

/**
 * Counts the call against the limit of `GET /v1/usage` for each key, in place of the limits of the key and of the account:
 * a status line asks all the time.
 * @throws Failure `rate_limit_exceeded`
 */
export const limitUsageReads =
  <C extends AuthenticatedCall>(access: CallAccess): Stage<C, C> =>
  (call: C) =>
    takeSlots(
      access,
      call,
      [{ subject: `usage ${call.known.key.id}`, limits: READ_LIMITS, name: 'API key' }],
      {
        wording: CALLS,
      },
    )
