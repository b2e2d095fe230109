/**
 * Source files of pages in the object store. Each is known by its content, so several pages, and one import after
 * another, may name the same one. An object that no page names has an end in `stored_objects`, and the sweep deletes it.
 */
import { SOURCE_LINK_TTL_SECS } from '../../../schemas/knowledge/wiki.ts'
import type { Sql } from '../connection.ts'
import { inTransaction, type Transaction } from '../transaction.ts'

const MS_PER_SECOND = 1000
/** As long as an import may take from its first source file to its end. */
const IMPORT_MAX_MS = 24 * 60 * 60 * MS_PER_SECOND
/** Links that were handed out still open. */
const DROPPED_RETENTION_MS = 2 * SOURCE_LINK_TTL_SECS * MS_PER_SECOND

/**
 * Records source files before they are put into the object store. The sweep deletes those without a page, however the
 * import ended. A file that a page already names does not expire.
 */
export async function announceSources(sql: Sql, keys: readonly string[]): Promise<void> {
  if (keys.length === 0) return
  await inTransaction(sql, (transaction) => expire(transaction, keys, Date.now() + IMPORT_MAX_MS))
}

/** Removes the expiry of those keys that pages name, and sets it for the others. */
export async function settleSources(
  transaction: Transaction,
  named: readonly string[],
  dropped: readonly string[],
): Promise<void> {
  await transaction`DELETE FROM stored_objects WHERE key = ANY (${named as string[]}::text[])`
  await expire(transaction, dropped, Date.now() + DROPPED_RETENTION_MS)
}

/** Sets the expiry of a base's sources. Called before the base is deleted. */
export async function expireSources(transaction: Transaction, baseId: string): Promise<void> {
  await transaction`
    INSERT INTO stored_objects (key, expires_at)
    SELECT DISTINCT source ->> 'r2_key', ${Date.now() + DROPPED_RETENTION_MS}::bigint
    FROM wiki_pages WHERE base_id = ${baseId} AND source IS NOT NULL
    ON CONFLICT (key) DO UPDATE SET expires_at = greatest(stored_objects.expires_at, excluded.expires_at)`
}

async function expire(transaction: Transaction, keys: readonly string[], expiresAt: number): Promise<void> {
  await transaction`
    INSERT INTO stored_objects (key, expires_at)
    SELECT DISTINCT key, ${expiresAt}::bigint FROM unnest(${keys as string[]}::text[]) AS key
    WHERE NOT EXISTS (
      SELECT FROM wiki_pages WHERE source IS NOT NULL AND source ->> 'r2_key' = key)
    ON CONFLICT (key) DO UPDATE SET expires_at = greatest(stored_objects.expires_at, excluded.expires_at)`
}
