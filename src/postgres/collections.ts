/** Collections that have a most number of entries. */
import type postgres from 'postgres'
import { COLLECTION_LIMITS, type CollectionLimit, collectionFull } from '../../schemas/collection-limits.ts'
import { Refusal } from './billing/refusal.ts'
import type { Queryable } from './connection.ts'
import { inTransaction, type Transaction } from './transaction.ts'

interface Addition {
  readonly limit: CollectionLimit
  /** The account, user or other owner of the collection. */
  readonly ownerId: string
  /** Selects the entries that are there, the one that is added or replaced left out. */
  readonly entries: (sql: Transaction) => postgres.PendingQuery<postgres.Row[]>
}

/** Waits until no other transaction adds to the collection, and keeps others from it until the end of this one. */
export const lockCollection = (sql: Queryable, limit: CollectionLimit, ownerId: string) =>
  sql`SELECT pg_advisory_xact_lock(hashtextextended(${`${limit} ${ownerId}`}, 0))`

/**
 * Adds to a collection that has room for one more, as part of the transaction of `sql` where that is one. Take no other
 * lock before, which those who wait for this one could hold.
 * @throws Refusal `limit_reached`
 */
export const addWithin = <T>(
  sql: Queryable,
  { limit, ownerId, entries }: Addition,
  add: (transaction: Transaction) => Promise<T>,
): Promise<T> =>
  inTransaction(sql, async (transaction) => {
    await lockCollection(transaction, limit, ownerId)
    const most = COLLECTION_LIMITS[limit]
    const [{ count }] = await transaction<[{ count: bigint }]>`
      SELECT count(*) FROM (${entries(transaction)} LIMIT ${most}) AS entries`
    if (count >= most) throw new Refusal('limit_reached', collectionFull(limit))
    return add(transaction)
  })
