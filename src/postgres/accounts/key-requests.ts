/**
 * Requests for keys: a member requests one; an admin issues it with a spend cap, or denies it. See docs/api-rules.md,
 * "Agents".
 */

import type { ApiKey } from '../../../schemas/accounts/key.ts'
import type { KeyRequest, KeyRequestState } from '../../../schemas/accounts/organization.ts'
import type { Credits } from '../../../schemas/money.ts'
import { fromRow, type SnakeCase } from '../../core/json/snake-case.ts'
import { newId } from '../../core/keys/ids.ts'
import type { KeyMaterial } from '../../core/keys/material.ts'
import { Refusal } from '../billing/refusal.ts'
import { addWithin } from '../collections.ts'
import type { Queryable, Sql } from '../connection.ts'
import type { Listing } from '../listing.ts'
import { inTransaction } from '../transaction.ts'
import { setActorToAccount } from './audit-record.ts'
import { checkBindable, createKeyIn, type NewKey } from './keys.ts'
import { assertOrganization, lockMembers, mayDecide, memberNotFound, readActingRole } from './members.ts'

export interface NewKeyRequest {
  readonly organizationId: string
  readonly memberId: string
  readonly name: string
  readonly agentId?: string | null
  readonly note?: string | null
}

/** The one who decides on a request. */
export interface Decider {
  /** A personal account, or the name of a management token. */
  readonly by: string
  /** Decides without a role in the organization: an operator, or a token. Default: false. */
  readonly isAboveRoles?: boolean
}

export interface KeyApproval
  extends Decider,
    Pick<NewKey, 'allowedModels' | 'expiresAt' | 'requestsPerMinute' | 'concurrency' | 'allowedAddresses'> {
  readonly requestId: string
  readonly spendCap: Credits
}

type RequestRow = SnakeCase<KeyRequest>

const columns = (sql: Queryable) => sql`
  key_requests.*, (SELECT email FROM users WHERE account_id = member_id) AS member_email`

/** @throws Refusal `member_not_found`, `agent_not_found`, `agent_deleted`, `limit_reached` */
export const requestKey = (sql: Sql, request: NewKeyRequest): Promise<KeyRequest> =>
  inTransaction(sql, async (transaction) => {
    const { organizationId, memberId, name, agentId = null, note = null } = request
    await assertOrganization(transaction, organizationId)
    await lockMembers(transaction, organizationId)
    if ((await readActingRole(transaction, organizationId, memberId)) === null)
      throw memberNotFound(organizationId, memberId)
    if (agentId !== null) await checkBindable(transaction, agentId, organizationId)
    await setActorToAccount(transaction, memberId)
    return addWithin(
      transaction,
      {
        limit: 'key_requests_per_member',
        ownerId: `${organizationId} ${memberId}`,
        entries: (present) => present`
          SELECT FROM key_requests
          WHERE organization_id = ${organizationId} AND member_id = ${memberId} AND state = 'pending'`,
      },
      async () => {
        const [row] = await transaction<[RequestRow]>`
          INSERT INTO key_requests (id, organization_id, member_id, name, agent_id, note)
          VALUES (${newId('kreq')}, ${organizationId}, ${memberId}, ${name}, ${agentId}, ${note})
          RETURNING ${columns(transaction)}`
        return fromRow<KeyRequest>(row)
      },
    )
  })

export interface RequestListing extends Listing {
  /** Only those of this member. */
  readonly memberId?: string | null
  readonly state?: KeyRequestState | null
}

/** Returns requests of an organization, the newest first. */
export async function listKeyRequests(
  sql: Sql,
  organizationId: string,
  { after = null, limit = null, memberId = null, state = null }: RequestListing = {},
): Promise<KeyRequest[]> {
  await assertOrganization(sql, organizationId)
  const rows = await sql<RequestRow[]>`
    SELECT ${columns(sql)} FROM key_requests
    WHERE organization_id = ${organizationId}
      ${after === null ? sql`` : sql`AND id < ${after}`}
      ${memberId === null ? sql`` : sql`AND member_id = ${memberId}`}
      ${state === null ? sql`` : sql`AND state = ${state}`}
    ORDER BY id DESC LIMIT ${limit}`
  return rows.map(fromRow<KeyRequest>)
}

/** @throws Refusal `request_not_found` */
export async function showKeyRequest(sql: Queryable, requestId: string): Promise<KeyRequest> {
  const [row] = await sql<RequestRow[]>`
    SELECT ${columns(sql)} FROM key_requests WHERE id = ${requestId}`
  if (row === undefined) throw new Refusal('request_not_found', `There is no key request ${requestId}`)
  return fromRow<KeyRequest>(row)
}

/** Locks an open request until the end of the transaction, and sets the account that decides as its actor. */
async function openFor(
  sql: Queryable,
  requestId: string,
  { by, isAboveRoles = false }: Decider,
): Promise<KeyRequest> {
  const { organizationId } = await showKeyRequest(sql, requestId)
  await lockMembers(sql, organizationId)
  // Read again: the previous holder of the lock may have changed it.
  const request = await showKeyRequest(sql, requestId)
  if (!isAboveRoles && !mayDecide(await readActingRole(sql, organizationId, by)))
    throw new Refusal('not_an_admin', `Account ${by} is not an admin of ${organizationId}`)
  if (request.state !== 'pending')
    throw new Refusal('request_decided', `Key request ${requestId} has been ${request.state} already`)
  await setActorToAccount(sql, by)
  return request
}

async function decide(
  sql: Queryable,
  { id }: KeyRequest,
  { state, by, keyId }: { state: 'approved' | 'denied'; by: string; keyId: string | null },
): Promise<KeyRequest> {
  const [row] = await sql<[RequestRow]>`
    UPDATE key_requests SET state = ${state}, decided_by = ${by}, decided_at = now(), key_id = ${keyId}
    WHERE id = ${id} RETURNING ${columns(sql)}`
  return fromRow<KeyRequest>(row)
}

export interface IssuedKey {
  readonly request: KeyRequest
  readonly key: ApiKey
  readonly raw: string
}

/** @throws Refusal `request_not_found`, `request_decided`, `not_an_admin` */
export const approveKey = (sql: Sql, material: KeyMaterial, approval: KeyApproval): Promise<IssuedKey> =>
  inTransaction(sql, async (transaction) => {
    const { requestId, by, isAboveRoles, ...terms } = approval
    const asked = await openFor(transaction, requestId, { by, isAboveRoles })
    const { organizationId: accountId, memberId, agentId, name } = asked
    const kind = agentId === null ? 'employee' : 'agent'
    const wanted = { accountId, name, kind, agentId, ...terms } as const
    const { key, raw } = await createKeyIn(transaction, material, wanted, { memberId, approvedBy: by })
    return { request: await decide(transaction, asked, { state: 'approved', by, keyId: key.id }), key, raw }
  })

/** @throws Refusal `request_not_found`, `request_decided`, `not_an_admin` */
export const denyKey = (sql: Sql, requestId: string, decider: Decider): Promise<KeyRequest> =>
  inTransaction(sql, async (transaction) => {
    const asked = await openFor(transaction, requestId, decider)
    return decide(transaction, asked, { state: 'denied', by: decider.by, keyId: null })
  })
