/** Secrets that keys had before they were rotated, as rows of keys show them. */
import type { FormerSecret, RotatedSecret } from '../../../schemas/accounts/key.ts'
import type { Queryable } from '../connection.ts'

export interface FormerSecretJson {
  prefix: string
  replaced_at: string
  grace_seconds: number
  successor_used_at: string | null
  last_used_at: string | null
  ends_at: string
}

/** Returns the column with the former secret of the key `k` of a statement that works longest; null without any. */
export const formerSecret = (sql: Queryable) => sql`(
  SELECT to_json(fields) FROM (
    SELECT prefix, replaced_at, grace_seconds, successor_used_at, last_used_at, ends_at
    FROM former_secrets WHERE key_id = k.id ORDER BY ends_at DESC LIMIT 1
  ) AS fields) AS former`

const parseDateOrNull = (text: string | null): Date | null => (text === null ? null : new Date(text))

export const toFormerSecret = (found: FormerSecretJson | null | undefined): FormerSecret | null =>
  found
    ? {
        prefix: found.prefix,
        replacedAt: new Date(found.replaced_at),
        graceSeconds: found.grace_seconds,
        successorUsedAt: parseDateOrNull(found.successor_used_at),
        lastUsedAt: parseDateOrNull(found.last_used_at),
        endsAt: new Date(found.ends_at),
      }
    : null

/**
 * Returns the secret by which a key was found, where its use is to be noted.
 * @param endsAt of a former secret
 */
export function toRotatedSecret(
  hash: Uint8Array,
  former: FormerSecret | null,
  endsAt: Date | null,
): RotatedSecret | null {
  if (endsAt !== null) return { hash, endsAt }
  const isAwaited = former !== null && former.successorUsedAt === null && former.endsAt.getTime() > Date.now()
  return isAwaited ? { hash, endsAt: null } : null
}

/**
 * Notes in its row that a secret was used. The first use of a key's newest secret sets the end of the former one: of
 * any number of processes that see it, one does. Of a former secret the last use is noted to the minute.
 */
export async function noteSecretUse(sql: Queryable, { hash, endsAt }: RotatedSecret): Promise<void> {
  if (endsAt !== null) {
    await sql`
      UPDATE former_secrets SET last_used_at = now()
      WHERE key_hash = ${hash} AND (last_used_at IS NULL OR last_used_at < now() - interval '1 minute')`
    return
  }
  // A key that is being rotated again is locked: its newest secret is another one then.
  await sql`
    WITH used AS (SELECT id FROM api_keys WHERE key_hash = ${hash} FOR NO KEY UPDATE)
    UPDATE former_secrets AS s
    SET successor_used_at = now(), ends_at = least(ends_at, now() + make_interval(secs => grace_seconds))
    FROM used WHERE s.key_id = used.id AND s.successor_used_at IS NULL AND s.ends_at > now()`
}
