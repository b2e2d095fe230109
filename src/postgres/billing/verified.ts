/** The last audit without a difference, and the sums that it leaves: the next one reads what was written since. */
import type { Queryable, Sql } from '../connection.ts'
import { inTransaction } from '../transaction.ts'
import { type AuditScope, firstId, grantSums, ledgerSums, MAX_TRANSACTION_MS } from './audit-checks.ts'

interface VerifiedState {
  /** The instant before which what was written is in the sums. */
  readonly markedAt: Date
  /** When everything was read last. */
  readonly fullAt: Date
}

/** Returns the last audit without a difference; null: there was none. */
export async function readVerified(sql: Queryable): Promise<VerifiedState | null> {
  const [row] = await sql<{ markedAt: Date; fullAt: Date }[]>`
    SELECT marked_at AS "markedAt", full_at AS "fullAt" FROM verified`
  return row ?? null
}

/**
 * Keeps the sums of what was audited at an instant without a difference. What was written shortly before is left to the
 * next audit: a transaction that began then may still be open. Another audit that has kept its sums meanwhile wins.
 */
export const keepVerified = (sql: Sql, scope: AuditScope, auditedAt: Date): Promise<void> =>
  inTransaction(sql, async (transaction) => {
    const markedAt = new Date(auditedAt.getTime() - MAX_TRANSACTION_MS)
    const kept = await transaction`
      INSERT INTO verified (marked_at, full_at) VALUES (${markedAt}, ${auditedAt})
      ON CONFLICT (only_row) DO UPDATE SET marked_at = excluded.marked_at,
        full_at = CASE WHEN ${scope.since === null} THEN excluded.full_at ELSE verified.full_at END
      WHERE verified.marked_at < excluded.marked_at
        AND (${scope.since === null} OR verified.marked_at = ${scope.since ?? markedAt})
      RETURNING 1`
    if (kept.count === 0) return
    const lastId = firstId({ since: markedAt })
    await transaction`
      INSERT INTO verified_wallets (account_id, balance, held, used)
      SELECT account_id, balance, held, used FROM (${ledgerSums(transaction, scope, markedAt)}) AS sums
      ON CONFLICT (account_id) DO UPDATE
      SET balance = excluded.balance, held = excluded.held, used = excluded.used
      WHERE (verified_wallets.balance, verified_wallets.held, verified_wallets.used)
        IS DISTINCT FROM (excluded.balance, excluded.held, excluded.used)`
    await transaction`
      INSERT INTO verified_grants (key_id, spent)
      SELECT key_id, total FROM (${grantSums(transaction, scope, lastId)}) AS sums
      ON CONFLICT (key_id) DO UPDATE SET spent = excluded.spent WHERE verified_grants.spent <> excluded.spent`
  })
