/** One-time codes by time, and recovery codes, as PostgreSQL keeps them. */
import { type KeyMaterial, totpSealId } from '../../core/keys/material.ts'
import { recordOperation } from '../accounts/audit-record.ts'
import { assertCurrent } from '../accounts/master-key.ts'
import { Refusal } from '../billing/refusal.ts'
import type { Queryable } from '../connection.ts'

/**
 * Stores a secret that a code has to confirm, in place of one that none has.
 * @throws Refusal `totp_confirmed` where a confirmed one is in force
 */
export async function enrolTotp(
  sql: Queryable,
  material: KeyMaterial,
  userId: string,
  secret: string,
): Promise<void> {
  await assertCurrent(sql, material)
  const sealed = material.seal(secret, totpSealId(userId))
  const rows = await sql`
    INSERT INTO totps (user_id, sealed_secret) VALUES (${userId}, ${sealed})
    ON CONFLICT (user_id) DO UPDATE SET sealed_secret = EXCLUDED.sealed_secret, last_period = 0, created_at = now()
    WHERE totps.confirmed_at IS NULL RETURNING user_id`
  if (rows.length === 0)
    throw new Refusal('totp_confirmed', 'One-time codes are in use: remove them before you set them up again')
}

/** Returns the secret; null without one. @param isConfirmed whether it is in force */
export async function findTotpSecret(
  sql: Queryable,
  material: KeyMaterial,
  userId: string,
  { isConfirmed }: { readonly isConfirmed: boolean },
): Promise<string | null> {
  const [row] = await sql<{ sealed_secret: Buffer }[]>`
    SELECT sealed_secret FROM totps WHERE user_id = ${userId} AND (confirmed_at IS NOT NULL) = ${isConfirmed}`
  return row === undefined ? null : material.open(row.sealed_secret, totpSealId(userId))
}

/** Accepts the code of a period. Returns false for a period that is not after the last one. */
export async function acceptTotpPeriod(sql: Queryable, userId: string, period: number): Promise<boolean> {
  const rows = await sql`
    UPDATE totps SET last_period = ${BigInt(period)}
    WHERE user_id = ${userId} AND last_period < ${BigInt(period)} RETURNING user_id`
  return rows.length > 0
}

/** Puts the secret in force. Returns false where there is none to confirm. */
export async function confirmTotp(sql: Queryable, userId: string): Promise<boolean> {
  const rows = await sql`
    UPDATE totps SET confirmed_at = now() WHERE user_id = ${userId} AND confirmed_at IS NULL RETURNING user_id`
  return rows.length > 0
}

export async function removeTotp(sql: Queryable, userId: string): Promise<void> {
  await sql`DELETE FROM recovery_codes WHERE user_id = ${userId}`
  await sql`DELETE FROM totps WHERE user_id = ${userId}`
}

/** Replaces all recovery codes, and records that. */
export async function setRecoveryCodes(
  sql: Queryable,
  userId: string,
  hashes: readonly Buffer[],
): Promise<void> {
  await sql`DELETE FROM recovery_codes WHERE user_id = ${userId}`
  for (const hash of hashes)
    await sql`INSERT INTO recovery_codes (user_id, code_hash) VALUES (${userId}, ${hash})`
  await recordOperation(sql, { action: 'recovery_codes.set', accountId: null, subjectId: userId })
}

/** Uses up a recovery code. Returns false where there is none with this hash. */
export async function spendRecoveryCode(sql: Queryable, userId: string, hash: Buffer): Promise<boolean> {
  const rows = await sql`
    DELETE FROM recovery_codes WHERE user_id = ${userId} AND code_hash = ${hash} RETURNING user_id`
  return rows.length > 0
}
