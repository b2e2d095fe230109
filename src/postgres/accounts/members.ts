/** Personal accounts that belong to an organization. */
import type { Member, MemberRole } from '../../../schemas/accounts/organization.ts'
import type { Credits } from '../../../schemas/money.ts'
import type { SnakeCase } from '../../core/json/snake-case.ts'
import { Refusal } from '../billing/refusal.ts'
import { addWithin } from '../collections.ts'
import type { Queryable, Sql } from '../connection.ts'
import type { Listing } from '../listing.ts'
import { inTransaction } from '../transaction.ts'
import { type AccountWithWallet, createAccount, showAccount } from './accounts.ts'

type MemberRow = SnakeCase<Member>

const toMember = (row: MemberRow): Member => ({
  organizationId: row.organization_id,
  accountId: row.account_id,
  name: row.name,
  role: row.role,
  createdAt: row.created_at,
})

/** @throws Refusal `account_not_found`, `not_an_organization` */
export async function assertOrganization(sql: Queryable, id: string): Promise<void> {
  const { account } = await showAccount(sql, id)
  if (account.kind !== 'organization')
    throw new Refusal('not_an_organization', `Account ${id} is a personal one, not an organization`)
}

/** Returns the role; null where the account is no member. */
export async function readMemberRole(sql: Queryable, organizationId: string, accountId: string) {
  const [row] = await sql<{ role: MemberRole }[]>`
    SELECT role FROM members WHERE organization_id = ${organizationId} AND account_id = ${accountId}`
  return row?.role ?? null
}

/** Returns the role in which the account may act: a disabled account has none. */
export async function readActingRole(sql: Queryable, organizationId: string, accountId: string) {
  const [row] = await sql<{ role: MemberRole }[]>`
    SELECT role FROM members JOIN accounts ON accounts.id = account_id AND enabled
    WHERE organization_id = ${organizationId} AND account_id = ${accountId}`
  return row?.role ?? null
}

export const memberNotFound = (organizationId: string, accountId: string): Refusal =>
  new Refusal('member_not_found', `Account ${accountId} is not a member of ${organizationId}`)

/** Returns whether a role decides on members and keys. */
export const mayDecide = (role: MemberRole | null): boolean => role === 'owner' || role === 'admin'

/**
 * Refuses to take a role away from the last owner, and from the last admin of an organization without an owner, while
 * there are other members. An owner counts who may act.
 */
async function assertNotLast(
  sql: Queryable,
  organizationId: string,
  accountId: string,
  role: MemberRole,
): Promise<void> {
  if (!mayDecide(role)) return
  const [others] = await sql<[{ owners: bigint; deciders: bigint; members: bigint }]>`
    SELECT count(*) FILTER (WHERE role = 'owner' AND a.enabled AND u.enabled IS NOT false) AS owners,
      count(*) FILTER (WHERE role IN ('owner', 'admin')) AS deciders, count(*) AS members
    FROM members AS m JOIN accounts AS a ON a.id = m.account_id LEFT JOIN users AS u ON u.account_id = a.id
    WHERE m.organization_id = ${organizationId} AND m.account_id <> ${accountId}`
  if (role === 'owner' && others.owners === 0n)
    throw new Refusal(
      'last_owner',
      `Account ${accountId} is the last owner of ${organizationId}: make another member an owner first`,
    )
  if (role === 'admin' && others.deciders === 0n && others.members > 0n)
    throw new Refusal(
      'last_admin',
      `Account ${accountId} is the last admin of ${organizationId}: make another member an admin first`,
    )
}

/**
 * Serializes changes of one organization's members and of their requests: no member who has left is issued a key. Must
 * be the transaction's first lock.
 */
export const lockMembers = (sql: Queryable, organizationId: string) =>
  sql`SELECT FROM accounts WHERE id = ${organizationId} FOR NO KEY UPDATE`

/** @throws Refusal `not_an_organization`, `account_not_found`, `not_a_personal_account`, `last_owner`, `last_admin`, `limit_reached` */
export const putMember = (sql: Queryable, organizationId: string, accountId: string, role: MemberRole) =>
  inTransaction(sql, async (transaction): Promise<Member> => {
    await assertOrganization(transaction, organizationId)
    const { account } = await showAccount(transaction, accountId)
    if (account.kind !== 'personal')
      throw new Refusal(
        'not_a_personal_account',
        `Account ${accountId} is an organization: members are personal accounts`,
      )
    await lockMembers(transaction, organizationId)
    const former = await readMemberRole(transaction, organizationId, accountId)
    if (former !== null && former !== role && !(former === 'admin' && role === 'owner'))
      await assertNotLast(transaction, organizationId, accountId, former)
    return addWithin(
      transaction,
      {
        limit: 'members_per_organization',
        ownerId: organizationId,
        entries: (present) =>
          present`SELECT FROM members WHERE organization_id = ${organizationId} AND account_id <> ${accountId}`,
      },
      async () => {
        const [row] = await transaction<[MemberRow]>`
          INSERT INTO members (organization_id, account_id, role) VALUES (${organizationId}, ${accountId}, ${role})
          ON CONFLICT (organization_id, account_id) DO UPDATE SET role = ${role}
          RETURNING *, ${account.name} AS name`
        return toMember(row)
      },
    )
  })

/** Creates an organization without credit, of which the account is the owner. @throws Refusal `limit_reached` */
export const createOrganization = (sql: Sql, ownerId: string, name: string): Promise<AccountWithWallet> =>
  addWithin(
    sql,
    {
      limit: 'organizations_per_user',
      ownerId,
      entries: (present) => present`SELECT FROM members WHERE account_id = ${ownerId} AND role = 'owner'`,
    },
    async (transaction) => {
      const organization = await createAccount(transaction, { name, kind: 'organization', credit: 0n })
      await putMember(transaction, organization.account.id, ownerId, 'owner')
      return organization
    },
  )

/**
 * Revokes the member's keys and withdraws open requests.
 * @throws Refusal `member_not_found`, `last_owner`, `last_admin`
 */
export const removeMember = (sql: Sql, organizationId: string, accountId: string) =>
  inTransaction(sql, async (transaction): Promise<Member> => {
    await assertOrganization(transaction, organizationId)
    await lockMembers(transaction, organizationId)
    const role = await readMemberRole(transaction, organizationId, accountId)
    if (role === null) throw memberNotFound(organizationId, accountId)
    await assertNotLast(transaction, organizationId, accountId, role)
    const [row] = await transaction<[MemberRow]>`
      DELETE FROM members AS m USING accounts AS a
      WHERE m.organization_id = ${organizationId} AND m.account_id = ${accountId} AND a.id = m.account_id
      RETURNING m.*, a.name`
    await transaction`
      UPDATE api_keys SET revoked_at = now()
      WHERE revoked_at IS NULL AND id IN (
        SELECT key_id FROM grants WHERE account_id = ${organizationId} AND member_id = ${accountId})`
    await transaction`
      UPDATE key_requests SET state = 'withdrawn', decided_at = now()
      WHERE organization_id = ${organizationId} AND member_id = ${accountId} AND state = 'pending'`
    return toMember(row)
  })

export interface MemberSpend {
  /** Of the user who owns the member's account; null without one. */
  readonly email: string | null
  /** By all keys of the member. */
  readonly spent: Credits
}

interface SpendRow {
  email: string | null
  spent: string
}

const toSpend = ({ email, spent }: SpendRow): MemberSpend => ({ email, spent: BigInt(spent) })

const spendColumns = (sql: Queryable, organizationId: string) => sql`
  (SELECT email FROM users WHERE account_id = a.id) AS email,
  (SELECT coalesce(sum(spent), 0)::text FROM grants
    WHERE account_id = ${organizationId} AND member_id = a.id) AS spent`

/** Returns who a member is, or was, and what their keys spent. */
export async function readMemberSpend(
  sql: Queryable,
  organizationId: string,
  accountId: string,
): Promise<MemberSpend> {
  const [row] = await sql<[SpendRow]>`
    SELECT ${spendColumns(sql, organizationId)} FROM accounts AS a WHERE a.id = ${accountId}`
  return toSpend(row)
}

/** Returns members in the order of their accounts; a page begins after one of these. */
export async function listMembers(
  sql: Sql,
  organizationId: string,
  { after = null, limit = null }: Listing = {},
): Promise<(Member & MemberSpend)[]> {
  await assertOrganization(sql, organizationId)
  const rows = await sql<(MemberRow & SpendRow)[]>`
    SELECT m.*, a.name, ${spendColumns(sql, organizationId)}
    FROM members AS m JOIN accounts AS a ON a.id = m.account_id
    WHERE m.organization_id = ${organizationId} ${after === null ? sql`` : sql`AND m.account_id > ${after}`}
    ORDER BY m.account_id LIMIT ${limit}`
  return rows.map((row) => ({ ...toMember(row), ...toSpend(row) }))
}
