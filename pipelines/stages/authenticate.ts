/** Who calls: the key, its account, its wallet. Source: specification, "Authentication"; decisions, "Authentication messages". */
import { concatMap, defer, from, map, type Observable } from 'rxjs'
import { AUTH_MESSAGES, Failure } from '../../schemas/failure.ts'
import { isWellFormedKey, presentedKey } from '../../src/core/keys/presented.ts'
import type { GatewayRequest, Handler, Reply, RequestHead } from '../../src/http/handler.ts'
import type { Credentials, KnownKey } from '../accounts/credentials.ts'

export interface Caller {
  readonly request: GatewayRequest
  readonly known: KnownKey
}

const refuse = (message: string): Failure => new Failure('invalid_api_key', message)

/** Throws unless the key opens anything at the instant `now`. */
export function assertUsable(known: KnownKey, now: number): void {
  const { key, account } = known
  if (key.revokedAt !== null || !key.enabled) throw refuse(AUTH_MESSAGES.revoked)
  if (key.expiresAt !== null && key.expiresAt.getTime() <= now) throw refuse(AUTH_MESSAGES.expired)
  if (!account.enabled) throw refuse(AUTH_MESSAGES.inactive)
}

/** Where an endpoint looks for the key. */
export type FindKey = (head: RequestHead) => string | null
const anywhere: FindKey = ({ header, query }) => presentedKey(header, query)

/** How an endpoint differs from the usual one. */
export interface AuthOptions {
  readonly findKey?: FindKey
  /** Agent keys are refused wherever this does not stand: an endpoint that is new is closed to them. */
  readonly isOpenToAgents?: boolean
  /** Told of a key that is good, and not for this endpoint. Must not throw. */
  readonly onDenied?: (caller: Caller, failure: Failure) => void
}

const agentsDenied = (): Failure =>
  new Failure('permission_denied', 'An agent key may call POST /v1/chat/completions and nothing else.')

/**
 * Carries `answer` out for whoever calls. The key is read and checked when the reply is subscribed to; `admit` checks it
 * before the body of the request is kept.
 */
export function authenticated(
  credentials: Pick<Credentials, 'peek' | 'load'>,
  answer: (caller: Caller) => Observable<Reply>,
  { findKey = anywhere, isOpenToAgents = false, onDenied }: AuthOptions = {},
): Handler {
  const checked = (known: KnownKey | null, now: number): KnownKey => {
    if (known === null) throw refuse(AUTH_MESSAGES.invalid)
    assertUsable(known, now)
    return known
  }
  const usable = (request: GatewayRequest, found: KnownKey | null): Caller => {
    const known = checked(found, request.submittedAt)
    const caller = { request, known }
    if (known.key.kind !== 'agent' || isOpenToAgents) return caller
    const failure = agentsDenied()
    onDenied?.(caller, failure)
    throw failure
  }
  // A known key stays synchronous: a promise here would cost more than all other stages together.
  const find = (head: RequestHead): KnownKey | Promise<KnownKey | null> => {
    const rawKey = findKey(head)
    const known = rawKey === null ? undefined : credentials.peek(rawKey)
    if (known !== undefined) return known
    if (rawKey === null || !isWellFormedKey(rawKey)) throw refuse(AUTH_MESSAGES.missing)
    return credentials.load(rawKey)
  }
  const handler = (request: GatewayRequest) =>
    defer(() => {
      const found = find(request)
      if (!(found instanceof Promise)) return answer(usable(request, found))
      return from(found).pipe(
        map((loaded) => usable(request, loaded)),
        concatMap(answer),
      )
    })
  const admit = (head: RequestHead, now: number): Promise<void> | null => {
    const found = find(head)
    if (found instanceof Promise) return found.then((loaded) => void checked(loaded, now))
    checked(found, now)
    return null
  }
  return Object.assign(handler, { admit })
}
