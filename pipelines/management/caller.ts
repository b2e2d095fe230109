/** The caller of the management API, and the checks of their permissions. */
import type { Access, ManagementToken, SignedIn } from '../../schemas/accounts/people.ts'
import { Failure } from '../../schemas/failure.ts'
import type { AccountRole, Operation, Scope } from '../../schemas/management/operation.ts'

/** Time after a proof of identity in which sensitive operations need no other. */
const CONFIRMED_MS = 10 * 60 * 1000

export interface Caller {
  /** The name in the audit record. */
  readonly actor: string
  /** The session of a user; null for a token, a command, and a visitor. */
  readonly signedIn: SignedIn | null
  /** The personal account of the user, or the one in whose name a command is given; null without one. */
  readonly accountId: string | null
  readonly installation: 'operator' | 'auditor' | null
  /** Roles by account. */
  readonly roles: ReadonlyMap<string, AccountRole>
  /** Null: all. */
  readonly scopes: ReadonlySet<Scope> | null
}

/** Someone who has not signed in. */
export const VISITOR: Caller = {
  actor: 'visitor',
  signedIn: null,
  accountId: null,
  installation: null,
  roles: new Map(),
  scopes: new Set(),
}

const toRoles = (access: readonly Access[]) => new Map(access.map(({ accountId, role }) => [accountId, role]))

export const userCaller = (signedIn: SignedIn): Caller => ({
  actor: `user:${signedIn.user.id}`,
  signedIn,
  accountId: signedIn.user.accountId,
  installation: signedIn.user.installationRole,
  roles: toRoles(signedIn.access),
  scopes: null,
})

/** A token of an account acts as its owner, one of the installation as an operator, each within its scopes. */
export const tokenCaller = ({ id, accountId, scopes }: ManagementToken): Caller => ({
  actor: `token:${id}`,
  signedIn: null,
  accountId: null,
  installation: accountId === null ? 'operator' : null,
  roles: new Map(accountId === null ? [] : [[accountId, 'owner' as const]]),
  scopes: new Set(scopes),
})

/** The command line: it runs on the machine of the service. */
export const commandCaller = (actor: string, accountId: string | null): Caller => ({
  actor,
  signedIn: null,
  accountId,
  installation: 'operator',
  roles: new Map(),
  scopes: null,
})

/**
 * Returns the member to whose keys the caller is limited in an organization; null: no limit. Operators and auditors see
 * all, whatever role they have in it.
 */
export const findMember = ({ installation, roles, signedIn }: Caller, accountId: string): string | null =>
  // An id that no account has lists nothing.
  installation === null && roles.get(accountId) === 'member' ? (signedIn?.user.accountId ?? '') : null

const toDenied = (message: string): Failure => new Failure('permission_denied', message)

/**
 * Checks what does not depend on the input.
 * @throws Failure `not_signed_in`, `permission_denied`, `reauthentication_required`
 */
export function assertMayCall(caller: Caller, operation: Operation, now: number): void {
  const { allows, scope, isSensitive, isSecret, method } = operation
  if (allows === 'everyone') return
  if (caller === VISITOR) throw new Failure('not_signed_in', 'Sign in first, or send a management token.')
  if (caller.scopes !== null && !caller.scopes.has(scope))
    throw toDenied(`The management token lacks the scope ${scope}.`)
  if (allows === 'operators' && caller.installation !== 'operator') {
    if (caller.installation !== 'auditor' || method !== 'GET' || isSecret)
      throw toDenied('Only operators of the installation may do this.')
  }
  if (isSensitive && caller.signedIn !== null) {
    if (caller.signedIn.session.confirmedAt.getTime() < now - CONFIRMED_MS)
      throw new Failure('reauthentication_required', 'Confirm that it is you, and send the request again.')
  }
}

/**
 * Checks the role of the caller in the account that an operation is about. An account in which the caller has no role
 * counts as missing.
 * @param notFound the message for those; the default names no account, for callers who did not name it
 * @throws Failure `not_found`, `permission_denied`
 */
export function assertMayActIn(
  caller: Caller,
  operation: Operation,
  accountId: string,
  notFound = 'There is no such object in an account of yours.',
): void {
  const { allows, method, isSecret } = operation
  if (!Array.isArray(allows) || caller.installation === 'operator') return
  if (caller.installation === 'auditor' && method === 'GET' && !isSecret) return
  const role = caller.roles.get(accountId)
  if (role === undefined) throw new Failure('not_found', notFound)
  if (!allows.includes(role))
    throw toDenied(`The role ${role} may not do this in ${accountId}: it takes ${allows.join(' or ')}.`)
}
