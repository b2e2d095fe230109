/** Users as PostgreSQL keeps them. */
import type { Access, Locale, User } from '../../../schemas/accounts/people.ts'
import type { AccountRole, InstallationRole } from '../../../schemas/management/operation.ts'
import type { Credits } from '../../../schemas/money.ts'
import type { SnakeCase } from '../../core/json/snake-case.ts'
import { newId } from '../../core/keys/ids.ts'
import { createAccount } from '../accounts/accounts.ts'
import { Refusal } from '../billing/refusal.ts'
import type { Queryable, Sql } from '../connection.ts'
import { isUniqueViolation } from '../errors.ts'
import type { Listing } from '../listing.ts'
import { inTransaction } from '../transaction.ts'
import { voidBegun } from './tickets.ts'
import { proveEmail } from './unproven-emails.ts'

export type UserRow = SnakeCase<User>

export const toUser = (row: UserRow): User => ({
  id: row.id,
  email: row.email,
  name: row.name,
  locale: row.locale,
  accountId: row.account_id,
  installationRole: row.installation_role,
  enabled: row.enabled,
  createdAt: row.created_at,
  signedInAt: row.signed_in_at,
})

export interface NewUser {
  readonly email: string
  readonly name: string
  readonly locale?: Locale
  readonly installationRole?: InstallationRole | null
  /** The personal account. Default: a new one with `credit`. */
  readonly accountId?: string
  /** Trial credit of a new account. */
  readonly credit: Credits
}

export const userNotFound = (id: string): Refusal => new Refusal('user_not_found', `There is no user ${id}`)

/** @throws Refusal `email_taken` */
export const createUser = (sql: Sql, user: NewUser): Promise<User> =>
  inTransaction(sql, async (transaction) => {
    const { email, name, locale = 'en', installationRole = null, credit } = user
    const accountId = user.accountId ?? (await createAccount(transaction, { name, credit })).account.id
    try {
      const [row] = await transaction<[UserRow]>`
        INSERT INTO users (id, email, name, locale, account_id, installation_role)
        VALUES (${newId('usr')}, ${email}, ${name}, ${locale}, ${accountId}, ${installationRole})
        RETURNING *`
      return toUser(row)
    } catch (error) {
      if (isUniqueViolation(error))
        throw new Refusal('email_taken', 'There is a user with this email address or account already')
      throw error
    }
  })

/** @throws Refusal `user_not_found` */
export async function showUser(sql: Queryable, id: string): Promise<User> {
  const [row] = await sql<UserRow[]>`SELECT * FROM users WHERE id = ${id}`
  if (row === undefined) throw userNotFound(id)
  return toUser(row)
}

export interface UserListing extends Listing {
  /** A part of the id, the email address or the name, in upper or lower case. */
  readonly search?: string | null
}

/** Returns users in the order of their ids. */
export async function listUsers(
  sql: Queryable,
  { after = null, limit = null, search = null }: UserListing = {},
): Promise<User[]> {
  const rows = await sql<UserRow[]>`
    SELECT * FROM users
    WHERE ${after === null ? sql`true` : sql`id > ${after}`}
      AND ${search === null ? sql`true` : sql`position(lower(${search}) IN lower(id || ' ' || email || ' ' || name)) > 0`}
    ORDER BY id LIMIT ${limit}`
  return rows.map(toUser)
}

/** Finds a user by the normalized email; null without one. */
export async function findUserByEmail(sql: Queryable, email: string): Promise<User | null> {
  const [row] = await sql<UserRow[]>`SELECT * FROM users WHERE lower(email) = ${email}`
  return row === undefined ? null : toUser(row)
}

export interface UserChanges {
  readonly name?: string | undefined
  readonly locale?: Locale | undefined
  readonly enabled?: boolean | undefined
  readonly installationRole?: InstallationRole | null | undefined
}

/**
 * Changes what is named; a user who is disabled has no session from then on.
 * @throws Refusal `user_not_found`, `last_operator`
 */
export const updateUser = (sql: Sql, id: string, changes: UserChanges): Promise<User> =>
  inTransaction(sql, async (transaction) => {
    // One at a time: of two operators who leave at the same time one stays.
    if (changes.enabled === false || changes.installationRole !== undefined)
      await transaction`SELECT pg_advisory_xact_lock(hashtextextended('operators', 0))`
    const [found] = await transaction<UserRow[]>`SELECT * FROM users WHERE id = ${id} FOR NO KEY UPDATE`
    if (found === undefined) throw userNotFound(id)
    const user = toUser(found)
    const { name = user.name, locale = user.locale, enabled = user.enabled } = changes
    const { installationRole = user.installationRole } = changes
    const [row] = await transaction<[UserRow]>`
      UPDATE users SET name = ${name}, locale = ${locale}, enabled = ${enabled},
        installation_role = ${installationRole}
      WHERE id = ${id} RETURNING *`
    if (!enabled) {
      await transaction`DELETE FROM sessions WHERE user_id = ${id}`
      await voidBegun(transaction, id)
    }
    const wasOperator = user.enabled && user.installationRole === 'operator'
    if (wasOperator && !(enabled && installationRole === 'operator')) {
      const [left] = await transaction<[{ operators: bigint }]>`
        SELECT count(*) AS operators FROM users WHERE enabled AND installation_role = 'operator'`
      if (left.operators === 0n)
        throw new Refusal('last_operator', `User ${id} is the last operator: make another user one first`)
    }
    return toUser(row)
  })

/** Changes the email address. What was begun before is void. @throws Refusal `user_not_found`, `email_taken` */
export async function setEmail(sql: Queryable, id: string, email: string): Promise<User> {
  const [row] = await sql<UserRow[]>`UPDATE users SET email = ${email} WHERE id = ${id} RETURNING *`.catch(
    (error: unknown) => {
      if (!isUniqueViolation(error)) throw error
      throw new Refusal('email_taken', 'There is a user with this email address already')
    },
  )
  if (row === undefined) throw userNotFound(id)
  await voidBegun(sql, id)
  await proveEmail(sql, id)
  return toUser(row)
}

/** Returns the accounts in which a user has a role: the personal one first, then organizations by name. */
export async function listAccess(sql: Queryable, accountId: string): Promise<Access[]> {
  const rows = await sql<{ id: string; name: string; kind: Access['kind']; role: AccountRole }[]>`
    SELECT a.id, a.name, a.kind, coalesce(m.role, 'owner') AS role
    FROM accounts AS a LEFT JOIN members AS m ON m.organization_id = a.id AND m.account_id = ${accountId}
    WHERE a.id = ${accountId} OR m.account_id IS NOT NULL
    ORDER BY a.kind = 'organization', a.name, a.id`
  return rows.map(({ id, ...row }) => ({ accountId: id, ...row }))
}

/** Returns the email addresses by id, of those users that exist. */
export async function readUserEmails(
  sql: Queryable,
  ids: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const rows = await sql<{ id: string; email: string }[]>`
    SELECT id, email FROM users WHERE id = ANY (${ids as string[]}::text[])`
  return new Map(rows.map(({ id, email }) => [id, email]))
}
