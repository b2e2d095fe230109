/** Invitations as PostgreSQL keeps them: to the installation, or to an organization in a role. */

import type { MemberRole } from '../../../schemas/accounts/organization.ts'
import type { Invitation } from '../../../schemas/accounts/people.ts'
import type { InstallationRole } from '../../../schemas/management/operation.ts'
import type { SnakeCase } from '../../core/json/snake-case.ts'
import { newId } from '../../core/keys/ids.ts'
import { assertOrganization } from '../accounts/members.ts'
import { Refusal } from '../billing/refusal.ts'
import { addWithin } from '../collections.ts'
import type { Queryable } from '../connection.ts'
import type { Listing } from '../listing.ts'

const INVITATION_DAYS = 7

type InvitationRow = SnakeCase<Invitation>

const toInvitation = (row: InvitationRow): Invitation => ({
  id: row.id,
  email: row.email,
  accountId: row.account_id,
  accountName: row.account_name,
  role: row.role,
  installationRole: row.installation_role,
  createdBy: row.created_by,
  createdAt: row.created_at,
  expiresAt: row.expires_at,
  usedAt: row.used_at,
  revokedAt: row.revoked_at,
})

export interface NewInvitation {
  readonly tokenHash: Buffer
  /** Normalized. */
  readonly email: string
  /** An organization. */
  readonly accountId: string | null
  readonly role: MemberRole | null
  readonly installationRole: InstallationRole | null
}

const withName = (sql: Queryable) =>
  sql`i.*, (SELECT name FROM accounts AS a WHERE a.id = i.account_id) AS account_name`

/** @throws Refusal `account_not_found`, `not_an_organization`, `limit_reached` */
export async function createInvitation(sql: Queryable, invitation: NewInvitation): Promise<Invitation> {
  const { accountId } = invitation
  // Only operators invite to the installation.
  if (accountId === null) return insertInvitation(sql, invitation)
  await assertOrganization(sql, accountId)
  return addWithin(
    sql,
    {
      limit: 'invitations_per_organization',
      ownerId: accountId,
      entries: (present) => present`
        SELECT FROM invitations
        WHERE account_id = ${accountId} AND used_at IS NULL AND revoked_at IS NULL AND expires_at > now()`,
    },
    (transaction) => insertInvitation(transaction, invitation),
  )
}

async function insertInvitation(
  sql: Queryable,
  { tokenHash, email, accountId, role, installationRole }: NewInvitation,
): Promise<Invitation> {
  const [row] = await sql<[InvitationRow]>`
    WITH i AS (
      INSERT INTO invitations (id, token_hash, email, account_id, role, installation_role, created_by, expires_at)
      VALUES (${newId('inv')}, ${tokenHash}, ${email}, ${accountId}, ${role}, ${installationRole}, audit_actor(),
        now() + make_interval(days => ${INVITATION_DAYS}))
      RETURNING *)
    SELECT ${withName(sql)} FROM i`
  return toInvitation(row)
}

/** Lists the invitations to an organization, or those to none, the newest first. */
export async function listInvitations(
  sql: Queryable,
  accountId: string | null,
  { after = null, limit = null }: Listing = {},
): Promise<Invitation[]> {
  const rows = await sql<InvitationRow[]>`
    SELECT ${withName(sql)} FROM invitations AS i
    WHERE i.account_id ${accountId === null ? sql`IS NULL` : sql`= ${accountId}`}
      ${after === null ? sql`` : sql`AND i.id < ${after}`}
    ORDER BY i.id DESC LIMIT ${limit}`
  return rows.map(toInvitation)
}

/** @throws Refusal `invitation_not_found` */
export async function showInvitation(sql: Queryable, id: string): Promise<Invitation> {
  const [row] = await sql<InvitationRow[]>`
    SELECT ${withName(sql)} FROM invitations AS i WHERE i.id = ${id}`
  if (row === undefined) throw new Refusal('invitation_not_found', `There is no invitation ${id}`)
  return toInvitation(row)
}

/** Revokes an invitation that was not used; a second call changes nothing. @throws Refusal `invitation_not_found` */
export async function revokeInvitation(sql: Queryable, id: string): Promise<Invitation> {
  await sql`
    UPDATE invitations SET revoked_at = now() WHERE id = ${id} AND used_at IS NULL AND revoked_at IS NULL`
  return showInvitation(sql, id)
}

const isInForce = (sql: Queryable, tokenHash: Buffer) => sql`
  i.token_hash = ${tokenHash} AND i.used_at IS NULL AND i.revoked_at IS NULL AND i.expires_at > now()`

/** Finds the invitation of a link that is in force. @throws Refusal `invitation_invalid` */
export async function findInvitation(sql: Queryable, tokenHash: Buffer): Promise<Invitation> {
  const [row] = await sql<InvitationRow[]>`
    SELECT ${withName(sql)} FROM invitations AS i WHERE ${isInForce(sql, tokenHash)}`
  if (row === undefined) throw invalid()
  return toInvitation(row)
}

/** Uses up an invitation, as part of the transaction that fulfils it. @throws Refusal `invitation_invalid` */
export async function redeemInvitation(sql: Queryable, tokenHash: Buffer): Promise<Invitation> {
  const [row] = await sql<InvitationRow[]>`
    UPDATE invitations AS i SET used_at = now() WHERE ${isInForce(sql, tokenHash)} RETURNING ${withName(sql)}`
  if (row === undefined) throw invalid()
  return toInvitation(row)
}

const invalid = (): Refusal =>
  new Refusal('invitation_invalid', 'The invitation was used, revoked, or is over: ask for another one')
