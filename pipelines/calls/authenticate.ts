/**
 * Authenticates the caller: the key, its account, its wallet, its address. See docs/api-rules.md, "Finding the key" and
 * "Keys"; docs/errors.md, "Messages of 401".
 */
import { from, map } from 'rxjs'
import type { RotatedSecret } from '../../schemas/accounts/key.ts'
import type { Settlement } from '../../schemas/call-log/columns.ts'
import { AUTH_MESSAGES, Failure } from '../../schemas/failure.ts'
import type { AddressList } from '../../src/core/keys/address-list.ts'
import { normalizeAddress } from '../../src/core/keys/address-prefix.ts'
import { findRequestKey, isWellFormedKey } from '../../src/core/keys/presented.ts'
import type { Decision, SubjectLimits } from '../../src/core/limits/limiter-state.ts'
import type { Catalog } from '../../src/core/routing/catalog.ts'
import type { KnownKey } from '../../src/credentials/credentials.ts'
import type { GatewayRequest, RequestHead } from '../../src/http/handler.ts'
import type { Permit } from '../../src/limits/limited-request.ts'
import { type Call, RefusedCall, type Stage } from './pipeline.ts'

export interface AuthenticatedCall extends Call {
  readonly known: KnownKey
}

/** The caller and its request. */
export interface Caller {
  readonly request: GatewayRequest
  readonly known: KnownKey
}

export const isAuthenticated = (call: Call): call is AuthenticatedCall => 'known' in call

const refuse = (message: string): Failure => new Failure('invalid_api_key', message)

/** Throws unless the key opens anything at the instant `now`. */
export function assertUsable(known: KnownKey, now: number): void {
  const { key, account, secret } = known
  if (key.revokedAt !== null || !key.enabled) throw refuse(AUTH_MESSAGES.revoked)
  if (key.expiresAt !== null && key.expiresAt.getTime() <= now) throw refuse(AUTH_MESSAGES.expired)
  if (secret !== null && secret.endsAt !== null && secret.endsAt.getTime() <= now)
    throw refuse(AUTH_MESSAGES.replaced)
  if (!account.enabled) throw refuse(AUTH_MESSAGES.inactive)
}

/** Returns the key of a request, or null. */
export type FindKey = (head: RequestHead) => string | null
const findKeyAnywhere: FindKey = ({ header, query }) => findRequestKey(header, query)

/** Throws unless the key may be used from the address that the call comes from. */
function assertAddress(authenticated: AuthenticatedCall, allowed: AddressList): void {
  const address = authenticated.request.address?.() ?? ''
  if (allowed.has(address)) return
  throw new RefusedCall(
    authenticated,
    new Failure(
      'permission_denied',
      `This API key may not be used from the address ${normalizeAddress(address)}: it is limited to other addresses.`,
    ),
  )
}

/** The keys that this process knows, and those that it has to look up. */
interface KnownKeys {
  /** Returns the key where it is in memory. */
  peek(rawKey: string): KnownKey | undefined
  load(rawKey: string): Promise<KnownKey | null>
}

export interface KeyAccess {
  readonly credentials: KnownKeys
  /** Called with the secret of each call whose key is being rotated. Must not throw. */
  readonly onSecretUsed: (secret: RotatedSecret) => void
}

/** What the stages that every call passes take: who calls, how often it may, and where its refusal is recorded. */
export interface CallAccess extends KeyAccess {
  readonly limiter: CallLimiter
  readonly catalog: () => Catalog
  /** Writes the row of a refused call, and counts it. Must not throw. */
  readonly onRefused: (settlement: Settlement) => void
}

interface CallLimiter {
  /** Counts a request against limits, and calls `onDecisions` with what each says. The permit gives its slots back. */
  take(limits: readonly SubjectLimits[], onDecisions: (decisions: readonly Decision[]) => void): Permit
}

/** Differences of an endpoint from the defaults. */
interface AuthenticateOptions {
  readonly findKey?: FindKey
  /** Default: agent keys are refused. A new endpoint is closed to them. */
  readonly isOpenToAgents?: boolean
}

/**
 * Adds the key, its account and its wallet to the call. `admit` checks the key before the body of the request is kept.
 * @throws Failure `invalid_api_key`, `permission_denied`
 */
export function authenticate(
  { credentials, onSecretUsed }: KeyAccess,
  { findKey = findKeyAnywhere, isOpenToAgents = false }: AuthenticateOptions = {},
): Stage<Call, AuthenticatedCall> {
  const checkKey = (known: KnownKey | null, now: number): KnownKey => {
    if (known === null) throw refuse(AUTH_MESSAGES.invalid)
    assertUsable(known, now)
    return known
  }
  const admitKey = (call: Call, found: KnownKey | null): AuthenticatedCall => {
    const authenticated = { ...call, known: checkKey(found, call.request.submittedAt) }
    const { addresses, secret } = authenticated.known
    if (addresses !== null) assertAddress(authenticated, addresses)
    if (secret !== null) onSecretUsed(secret)
    if (authenticated.known.key.kind !== 'agent' || isOpenToAgents) return authenticated
    throw new RefusedCall(
      authenticated,
      new Failure('permission_denied', 'An agent key may call POST /v1/chat/completions and nothing else.'),
    )
  }
  // A known key stays synchronous: a promise here would cost more than all other stages together.
  const find = (head: RequestHead, mayLookUp = true): KnownKey | Promise<KnownKey | null> => {
    const rawKey = findKey(head)
    const known = rawKey === null ? undefined : credentials.peek(rawKey)
    if (known !== undefined) return known
    if (rawKey === null || !isWellFormedKey(rawKey)) throw refuse(AUTH_MESSAGES.missing)
    if (!mayLookUp) throw refuse(AUTH_MESSAGES.invalid)
    return credentials.load(rawKey)
  }
  const admit = (head: RequestHead, now: number, mayLookUp = true): Promise<void> | null => {
    const found = find(head, mayLookUp)
    if (found instanceof Promise) return found.then((loaded) => void checkKey(loaded, now))
    checkKey(found, now)
    return null
  }
  const addKey = (call: Call) => {
    const found = find(call.request)
    if (!(found instanceof Promise)) return admitKey(call, found)
    return from(found).pipe(map((loaded) => admitKey(call, loaded)))
  }
  return Object.assign(addKey, { admit })
}
