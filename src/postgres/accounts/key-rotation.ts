/** Rotation: a key gets a new secret, and its former one works on for a time. */
import type { ApiKey } from '../../../schemas/accounts/key.ts'
import { generateApiKey, type KeyMaterial, shownPrefix } from '../../core/keys/material.ts'
import { Refusal } from '../billing/refusal.ts'
import type { Sql } from '../connection.ts'
import { inTransaction } from '../transaction.ts'
import { recordOperation } from './audit-record.ts'
import { type CreatedKey, keyNotFound, keyRevoked, showKey } from './keys.ts'
import { assertCurrent, keepsHashesOnly } from './master-key.ts'

interface CurrentRow {
  key_hash: Buffer
  prefix: string
  revoked_at: Date | null
}

interface WorkingRow {
  key_hash: Buffer
  prefix: string
  ends_at: Date
  is_awaited: boolean
}

/**
 * Gives a key a new secret. The former one works until `graceSeconds` after the first use of the new one, at most 30
 * days. Rotating again replaces a secret that was not used yet, which ends at once; the one before it works on.
 * @throws Refusal `key_not_found`, `key_revoked`, `rotation_open` where a former secret still works and its successor
 *   is in use, `wrong_master_key` where the master key was replaced meanwhile
 */
export const rotateKey = (
  sql: Sql,
  material: KeyMaterial,
  keyId: string,
  graceSeconds: number,
): Promise<CreatedKey> =>
  inTransaction(sql, async (transaction) => {
    const isHashOnly = await keepsHashesOnly(transaction)
    if (!isHashOnly) await assertCurrent(transaction, material)
    const [current] = await transaction<CurrentRow[]>`
      SELECT key_hash, prefix, revoked_at FROM api_keys WHERE id = ${keyId} FOR UPDATE`
    if (current === undefined) throw keyNotFound(keyId)
    if (current.revoked_at !== null) throw keyRevoked(keyId)
    const [working] = await transaction<WorkingRow[]>`
      SELECT key_hash, prefix, ends_at, successor_used_at IS NULL AS is_awaited
      FROM former_secrets WHERE key_id = ${keyId} AND ends_at > now() FOR UPDATE`
    if (working !== undefined && !working.is_awaited) throw rotationOpen(keyId, working)
    if (working !== undefined)
      await transaction`
        UPDATE former_secrets SET grace_seconds = ${graceSeconds} WHERE key_hash = ${working.key_hash}`
    await transaction`
      INSERT INTO former_secrets (key_hash, key_id, prefix, grace_seconds, ends_at)
      VALUES (${current.key_hash}, ${keyId}, ${current.prefix}, ${graceSeconds},
        now() + CASE WHEN ${working === undefined} THEN interval '30 days' ELSE interval '0' END)`
    const raw = generateApiKey()
    await transaction`
      UPDATE api_keys
      SET key_hash = ${material.lookupHash(raw)}, prefix = ${shownPrefix(raw)},
          sealed_key = ${isHashOnly ? null : material.seal(raw, keyId)}
      WHERE id = ${keyId}`
    return { key: await showKey(transaction, keyId), raw }
  })

const rotationOpen = (keyId: string, { prefix, ends_at }: WorkingRow): Refusal =>
  new Refusal(
    'rotation_open',
    `The former secret of key ${keyId} (${prefix}…) works until ${ends_at.toISOString()}, and the present one is in use. End the former one first, or wait until it has ended`,
  )

/**
 * Ends the former secret of a key at once; a second call changes nothing.
 * @throws Refusal `key_not_found`
 */
export const endFormerSecret = (sql: Sql, keyId: string): Promise<ApiKey> =>
  inTransaction(sql, async (transaction) => {
    const key = await showKey(transaction, keyId)
    const [ended] = await transaction<[{ prefix: string; was: Date; ends_at: Date }?]>`
      UPDATE former_secrets AS s SET ends_at = now()
      FROM (SELECT key_hash, ends_at AS was FROM former_secrets WHERE key_id = ${keyId} AND ends_at > now() FOR UPDATE) AS f
      WHERE s.key_hash = f.key_hash
      RETURNING s.prefix, f.was, s.ends_at`
    if (ended === undefined) return key
    await recordOperation(transaction, {
      action: 'key.end_former_secret',
      accountId: key.accountId,
      subjectId: keyId,
      before: { prefix: ended.prefix, ends_at: ended.was.toISOString() },
      after: { prefix: ended.prefix, ends_at: ended.ends_at.toISOString() },
    })
    return showKey(transaction, keyId)
  })
