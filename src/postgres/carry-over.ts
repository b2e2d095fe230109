/**
 * Carries a database over whose tables were made by the eighteen migrations that Tollgate had before there was one for
 * each domain. Both make the same tables, so that what changes is the record of what was applied.
 */
import { createHash } from 'node:crypto'
import { Refusal } from './billing/refusal.ts'
import type { Sql } from './connection.ts'
import { inTransaction } from './transaction.ts'

interface Applied {
  readonly name: string
  readonly checksum: string
}

/** Checksum of the former 0001_accounts. */
const FORMER_FIRST = '762c3aebd7c91ab477678bc960f93f8b62b70a81708011fda527163e21d752f3'
const FORMER_LAST = '0018_wallet_reservations'
/** SHA-256 over name and checksum of the eighteen, a line each. */
const FORMER_ALL = '743bd7cf15981ecacd890828f611b60d7497d3d7a181c8167446bbb18c6c10ee'
/** The first so many migrations make what the eighteen made. */
const MAKE_THE_SAME = 6

export const isBeforeSquash = (applied: readonly Applied[]): boolean => applied[0]?.checksum === FORMER_FIRST

/**
 * Records the present migrations in place of the former ones, in one transaction, as old as the first of those. No row of another table changes.
 * @throws Refusal `schema_mismatch` unless exactly the eighteen were applied
 */
export async function carryOver(
  sql: Sql,
  applied: readonly Applied[],
  migrations: readonly (Applied & { readonly version: number })[],
): Promise<void> {
  const all = createHash('sha256')
  for (const { name, checksum } of applied) all.update(`${name} ${checksum}\n`)
  if (all.digest('hex') !== FORMER_ALL)
    throw new Refusal(
      'schema_mismatch',
      `The database cannot be carried over: it has the former migrations up to ${applied.at(-1)!.name}, and this version needs all of them up to ${FORMER_LAST}, unedited. Start a version of Tollgate that has ${FORMER_LAST} on this database first, then this one`,
    )
  await inTransaction(sql, async (transaction) => {
    // Added without reading the rows that were there. This reads them, and stops no call.
    await transaction`ALTER TABLE ledger_entries VALIDATE CONSTRAINT ledger_kind_and_sign`
    const [{ at }] = await transaction<[{ at: Date }]>`
      WITH former AS (DELETE FROM schema_migrations RETURNING applied_at) SELECT min(applied_at) AS at FROM former`
    for (const { version, name, checksum } of migrations.slice(0, MAKE_THE_SAME))
      await transaction`
        INSERT INTO schema_migrations (version, name, checksum, applied_at)
        VALUES (${version}, ${name}, ${checksum}, ${at})`
  })
}
