/** Replaces the master key: seals again what the database keeps sealed. */
import {
  generateMasterKey,
  type KeyMaterial,
  mailSealId,
  totpSealId,
  webhookSealId,
} from '../../core/keys/material.ts'
import { Refusal } from '../billing/refusal.ts'
import type { Queryable, Sql } from '../connection.ts'
import { LOCKS } from '../locks.ts'
import { resealAnswers } from '../requests/idempotency.ts'
import { inTransaction } from '../transaction.ts'
import { recordOperation } from './audit-record.ts'
import { isSameKey, type MasterKeyRow, masterKeyReplaced } from './master-key.ts'

const BATCH_ROWS = 1000

interface SealedColumn {
  readonly table: string
  readonly column: string
  /** The column of the id that the seal is bound to. */
  readonly id: string
  readonly sealId: (id: string) => string
}

const KEYS: SealedColumn = { table: 'api_keys', column: 'sealed_key', id: 'id', sealId: (id) => id }
const SECRETS: readonly SealedColumn[] = [
  { table: 'totps', column: 'sealed_secret', id: 'user_id', sealId: totpSealId },
  { table: 'webhook_endpoints', column: 'sealed_secret', id: 'id', sealId: webhookSealId },
  { table: 'webhook_endpoints', column: 'sealed_former_secret', id: 'id', sealId: webhookSealId },
  { table: 'deliveries', column: 'sealed_mail', id: 'id', sealId: mailSealId },
]

/**
 * Seals everything again with another master key, in one transaction: a process that is killed in the middle has changed
 * nothing. Returns how many keys were sealed; null where this is the current master key already.
 * @throws Refusal `wrong_master_key` when this process does not have the current one, or `next` is a former one.
 */
export const rotateMasterKey = (
  sql: Sql,
  material: KeyMaterial,
  next: KeyMaterial,
  { endLinks = false }: { readonly endLinks?: boolean } = {},
): Promise<number | null> =>
  inTransaction(sql, async (transaction) => {
    await transaction`SELECT pg_advisory_xact_lock(${LOCKS.masterKey})`
    const rows = await transaction<MasterKeyRow[]>`SELECT * FROM master_keys`
    const known = rows.find(isSameKey(next))
    if (known?.replaced_at === null) return null
    if (known !== undefined)
      throw new Refusal(
        'wrong_master_key',
        'The new master key was used before. Make one: openssl rand -hex 32',
      )
    if (rows.find(isSameKey(material))?.replaced_at !== null) throw masterKeyReplaced()
    const sealedKeys = await resealAll(transaction, material, next)
    const secrets = {
      ...material.secrets,
      ...(endLinks && { fileLinks: generateMasterKey(), logCursors: generateMasterKey() }),
    }
    await transaction`UPDATE master_keys SET replaced_at = now() WHERE replaced_at IS NULL`
    await transaction`
      INSERT INTO master_keys (check_value, sealed_secrets)
      VALUES (${next.checkValue}, ${next.sealSecrets(secrets)})`
    await recordOperation(transaction, {
      action: 'master_key.rotate',
      accountId: null,
      subjectId: 'master_key',
      after: { keys: sealedKeys, end_links: endLinks },
    })
    return sealedKeys
  })

type Reseal = (sealed: Buffer, sealId: string) => Buffer

/** Seals everything again, as part of the transaction that replaces the master key. Returns the number of API keys. */
async function resealAll(sql: Queryable, material: KeyMaterial, next: KeyMaterial): Promise<number> {
  const reseal: Reseal = (sealed, sealId) => next.seal(material.open(sealed, sealId), sealId)
  const keys = await resealColumn(sql, reseal, KEYS)
  for (const column of SECRETS) await resealColumn(sql, reseal, column)
  await resealAnswers(sql, reseal)
  return keys
}

/** Seals a column again in the order of its ids, a thousand rows at a time. Returns their number. */
async function resealColumn(
  sql: Queryable,
  reseal: Reseal,
  { table, column, id, sealId }: SealedColumn,
): Promise<number> {
  let count = 0
  for (let last = ''; ; ) {
    const rows = await sql<{ id: string; sealed: Buffer }[]>`
      SELECT ${sql(id)} AS id, ${sql(column)} AS sealed FROM ${sql(table)}
      WHERE ${sql(column)} IS NOT NULL AND ${sql(id)} > ${last}
      ORDER BY ${sql(id)} LIMIT ${BATCH_ROWS} FOR NO KEY UPDATE`
    if (rows.length === 0) return count
    const ids = rows.map((row) => row.id)
    const seals = rows.map((row) => reseal(row.sealed, sealId(row.id)).toString('base64'))
    await sql`
      UPDATE ${sql(table)} AS t SET ${sql(column)} = decode(v.seal, 'base64')
      FROM unnest(${ids}::text[], ${seals}::text[]) AS v (id, seal) WHERE t.${sql(id)} = v.id`
    count += rows.length
    last = ids.at(-1)!
  }
}
