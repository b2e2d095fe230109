/** The caller of a request of the management API: the console's session, or a management token. */
import { from, map } from 'rxjs'
import { Failure } from '../../schemas/failure.ts'
import { hashToken, isManagementToken } from '../../src/core/keys/bearer-token.ts'
import { findBearerToken } from '../../src/core/keys/presented.ts'
import type { GatewayRequest } from '../../src/http/handler.ts'
import type { Database } from '../../src/postgres/database.ts'
import type { Call, Stage } from '../calls/pipeline.ts'
import { type Caller, tokenCaller, userCaller, VISITOR } from './caller.ts'
import { assertFromConsole, type ClientTransport, readSessionToken } from './session.ts'

/** What opens the management API. */
export interface ManagementAccess extends ClientTransport {
  readonly database: Database
}

interface Identified {
  readonly caller: Caller
  /** The token of the session; null for a management token and a visitor. */
  readonly token: string | null
}

export interface CallerCall extends Call, Identified {}

/**
 * Returns who sends the request: a management token where one is sent, else the session.
 * @throws Failure `not_signed_in`
 */
export async function identifyCaller(access: ManagementAccess, request: GatewayRequest): Promise<Identified> {
  const text = findBearerToken(request.header)
  if (text !== null) {
    const found = isManagementToken(text)
      ? await access.database.managementTokens.find(hashToken(text))
      : null
    if (found === null)
      throw new Failure(
        'not_signed_in',
        'The management token is invalid, expired or revoked. An API key does not open the management API.',
      )
    return { caller: tokenCaller(found), token: null }
  }
  const token = readSessionToken(access, request.header)
  const signedIn = token === null ? null : await access.database.sessions.find(hashToken(token))
  return signedIn === null ? { caller: VISITOR, token: null } : { caller: userCaller(signedIn), token }
}

/**
 * Adds the caller.
 * @throws Failure `not_signed_in`, and `permission_denied` for a request that no page of the console sends
 */
export const identify =
  (access: ManagementAccess): Stage<Call, CallerCall> =>
  (call) =>
    from(identifyCaller(access, call.request)).pipe(
      map(({ caller, token }) => {
        if (findBearerToken(call.request.header) === null) assertFromConsole(call.request, token)
        return { ...call, caller, token }
      }),
    )
