/** Runs a transaction whose connection may be lost halfway. */
import type postgres from 'postgres'
import type { Queryable, Sql } from './connection.ts'
import { isSessionLost } from './errors.ts'
import { retryOnStaleEnd } from './tasks/stale-end.ts'

export type Transaction = postgres.TransactionSql<{ bigint: bigint }>

/** Options of a transaction whose statements all read the same instant. */
export const ONE_INSTANT = 'isolation level repeatable read read only'

/**
 * Runs `work` in a transaction. Replaces `sql.begin`, in which the client (3.4.9) has a fault: when the session is
 * lost during `work`, it sends ROLLBACK over the closed socket, which is an uncaught exception, and the connection is
 * of no use from then on. `begin` rejects by itself as soon as it sees the connection close; until then `work` must
 * not seem to fail. For the same reason `work` waits for nothing but its own statements: a statement after the end
 * would fail likewise.
 *
 * Where `sql` is a transaction already, `work` becomes a part of it.
 */
export function inTransaction<T>(
  sql: Queryable,
  work: (transaction: Transaction) => Promise<T>,
  options = '',
): Promise<T> {
  if (!('begin' in sql)) return work(sql as Transaction)
  const pool = sql as Sql
  const guard = async (transaction: Transaction): Promise<T> => {
    try {
      return await work(transaction)
    } catch (error) {
      if (isSessionLost(error)) return new Promise<never>(() => {})
      throw error
    }
  }
  // A session that ends after BEGIN is reported as a closed connection.
  return retryOnStaleEnd(pool, () => pool.begin(options, guard) as Promise<T>)
}
