/** Management tokens as PostgreSQL keeps them. */
import type { ManagementToken } from '../../../schemas/accounts/people.ts'
import type { Scope } from '../../../schemas/management/operation.ts'
import { INSTALLATION } from '../../../schemas/notifications/event.ts'
import type { SnakeCase } from '../../core/json/snake-case.ts'
import { newId } from '../../core/keys/ids.ts'
import { Refusal } from '../billing/refusal.ts'
import { addWithin } from '../collections.ts'
import type { Queryable, Sql } from '../connection.ts'
import type { Listing } from '../listing.ts'

/** `last_used_at` is written this rarely. */
const USED_EVERY_SECONDS = 60

type TokenRow = SnakeCase<ManagementToken>

const toManagementToken = (row: TokenRow): ManagementToken => ({
  id: row.id,
  prefix: row.prefix,
  name: row.name,
  accountId: row.account_id,
  scopes: row.scopes,
  createdBy: row.created_by,
  createdAt: row.created_at,
  expiresAt: row.expires_at,
  lastUsedAt: row.last_used_at,
  revokedAt: row.revoked_at,
})

export interface NewManagementToken {
  readonly tokenHash: Buffer
  readonly prefix: string
  readonly name: string
  readonly accountId: string | null
  readonly scopes: readonly Scope[]
  readonly expiresAt: Date | null
}

/** @throws Refusal `limit_reached` */
export const createManagementToken = (sql: Queryable, token: NewManagementToken): Promise<ManagementToken> =>
  addWithin(
    sql,
    {
      limit: 'tokens_per_account',
      ownerId: token.accountId ?? INSTALLATION,
      entries: (present) => present`
        SELECT FROM management_tokens
        WHERE account_id IS NOT DISTINCT FROM ${token.accountId} AND revoked_at IS NULL
          AND (expires_at IS NULL OR expires_at > now())`,
    },
    (transaction) => insertManagementToken(transaction, token),
  )

async function insertManagementToken(sql: Queryable, token: NewManagementToken): Promise<ManagementToken> {
  const [row] = await sql<[TokenRow]>`
    INSERT INTO management_tokens (id, token_hash, prefix, name, account_id, scopes, created_by, expires_at)
    VALUES (
      ${newId('mtk')}, ${token.tokenHash}, ${token.prefix}, ${token.name}, ${token.accountId},
      ${token.scopes as Scope[]}::text[], audit_actor(), ${token.expiresAt})
    RETURNING *`
  return toManagementToken(row)
}

/** Finds a token that is in force, and marks it as used. Null without one. */
export async function findManagementToken(sql: Sql, tokenHash: Buffer): Promise<ManagementToken | null> {
  const [row] = await sql<TokenRow[]>`
    SELECT * FROM management_tokens
    WHERE token_hash = ${tokenHash} AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now())`
  if (row === undefined) return null
  await sql`
    UPDATE management_tokens SET last_used_at = now()
    WHERE id = ${row.id}
      AND (last_used_at IS NULL OR last_used_at < now() - make_interval(secs => ${USED_EVERY_SECONDS}))`
  return toManagementToken(row)
}

/** Lists the tokens of an account, or those of the installation, the newest first; revoked ones too. */
export async function listManagementTokens(
  sql: Queryable,
  accountId: string | null,
  { after = null, limit = null }: Listing = {},
): Promise<ManagementToken[]> {
  const rows = await sql<TokenRow[]>`
    SELECT * FROM management_tokens
    WHERE account_id ${accountId === null ? sql`IS NULL` : sql`= ${accountId}`}
      ${after === null ? sql`` : sql`AND id < ${after}`}
    ORDER BY id DESC LIMIT ${limit}`
  return rows.map(toManagementToken)
}

/** @throws Refusal `token_not_found` */
export async function showManagementToken(sql: Queryable, id: string): Promise<ManagementToken> {
  const [row] = await sql<TokenRow[]>`SELECT * FROM management_tokens WHERE id = ${id}`
  if (row === undefined) throw new Refusal('token_not_found', `There is no management token ${id}`)
  return toManagementToken(row)
}

/** Revokes a token for good; a second call changes nothing. @throws Refusal `token_not_found` */
export async function revokeManagementToken(sql: Queryable, id: string): Promise<ManagementToken> {
  const [row] = await sql<TokenRow[]>`
    UPDATE management_tokens SET revoked_at = coalesce(revoked_at, now()) WHERE id = ${id} RETURNING *`
  if (row === undefined) throw new Refusal('token_not_found', `There is no management token ${id}`)
  return toManagementToken(row)
}
