/**
 * Emails that no user has shown to be theirs. In an open sign-up a stranger can name the email of another person, add a
 * passkey, and wait until that person comes to use the account.
 */
import type { Queryable } from '../connection.ts'
import { voidBegun } from './tickets.ts'

const WAYS = ['passwords', 'passkeys', 'identities', 'totps', 'recovery_codes', 'sessions'] as const

/** Records that the user signed up openly, with an email that may be another person's. */
export async function recordUnprovenEmail(sql: Queryable, userId: string): Promise<void> {
  await sql`INSERT INTO unproven_emails (user_id) VALUES (${userId})`
}

/** Records that the user has shown the email to be theirs. Returns false where that was known. */
export async function proveEmail(sql: Queryable, userId: string): Promise<boolean> {
  const rows = await sql`DELETE FROM unproven_emails WHERE user_id = ${userId} RETURNING user_id`
  return rows.length > 0
}

/** Removes all ways to sign in, ends all sessions, and revokes the management tokens of the user's account. */
export async function removeWays(sql: Queryable, userId: string): Promise<void> {
  for (const table of WAYS) await sql`DELETE FROM ${sql(table)} WHERE user_id = ${userId}`
  await voidBegun(sql, userId)
  await sql`
    UPDATE management_tokens SET revoked_at = now()
    WHERE revoked_at IS NULL AND account_id = (SELECT account_id FROM users WHERE id = ${userId})`
}
