/** Seals again, with another master key, what the database keeps sealed. */
import { type KeyMaterial, mailSealId, totpSealId, webhookSealId } from '../../core/keys/material.ts'
import type { Queryable } from '../connection.ts'
import { resealAnswers } from '../requests/idempotency.ts'

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

type Reseal = (sealed: Buffer, sealId: string) => Buffer

/** Seals everything again, as part of the transaction that replaces the master key. Returns the number of API keys. */
export async function resealAll(sql: Queryable, material: KeyMaterial, next: KeyMaterial): Promise<number> {
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
