/** PostgreSQL's part in a rebuild of the call log. */
import type { LoggedCall } from '../../../schemas/call-log/unbooked.ts'
import { recordOperation } from '../accounts/audit-record.ts'
import type { Queryable, Sql } from '../connection.ts'
import { LOCKS } from '../locks.ts'
import { readKeptSince } from '../partitions/make.ts'
import { inTransaction } from '../transaction.ts'
import type { CopyRange } from './copy.ts'

/** The id up to which usage rows are copied. */
export interface CopyMark {
  readonly copiedUpto: bigint
  /** The end of the range that is claimed and not finished; null: none is. */
  readonly claimedUpto: bigint | null
}

/**
 * Claims the rebuild of the call log for this process and returns true, until it is released, or until its session is
 * lost; returns false when another process has it. `sql` is one connection without other users: its session holds the
 * lock.
 */
export async function claimRebuild(sql: Sql): Promise<boolean> {
  const [lock] = await sql<
    [{ is_ours: boolean }]
  >`SELECT pg_try_advisory_lock(${LOCKS.rebuilding}) AS is_ours`
  return lock.is_ours
}

/** Gives up the claim, however often it was made. Resolves too where the session is lost, and its claim with it. */
export async function releaseRebuild(sql: Sql): Promise<void> {
  await sql`SELECT pg_advisory_unlock_all()`.catch(() => undefined)
}

/** Returns the instant of admission before which retention has taken usage rows away; null: it has taken none. */
export const readCallsKeptSince = (sql: Sql): Promise<Date | null> => readKeptSince(sql, 'usage_rows')

/** Reads an index from end to end. */
export async function countUsageRows(sql: Sql): Promise<number> {
  const [counted] = await sql<[{ rows: bigint }]>`SELECT count(*) AS rows FROM usage_rows`
  return Number(counted.rows)
}

/** Returns the id of the last of this many rows of a range; the end of the range where it has fewer. */
export async function findRangeEnd(sql: Sql, { from, to }: CopyRange, rows: number): Promise<bigint> {
  const [last] = await sql<{ id: bigint }[]>`
    SELECT id FROM usage_rows WHERE id BETWEEN ${from} AND ${to} ORDER BY id OFFSET ${rows - 1} LIMIT 1`
  return last?.id ?? to
}

/**
 * Prevents other processes from claiming or finishing a range before `work` ends. `assertHeld` rejects once that no
 * longer holds. Rejects when the session is lost; `work` may have ended by then. A copier that claims or finishes a
 * range changes the one row that is locked here, and waits; also one that lost the session of its claim, and with it
 * its right, without noticing yet.
 */
export function holdCopying<T>(
  sql: Sql,
  work: (mark: CopyMark, assertHeld: () => Promise<void>) => Promise<T>,
): Promise<T> {
  return inTransaction(sql, async (transaction) => {
    const assertHeld = async () => {
      await transaction`SELECT`
    }
    const [mark] = await transaction<[{ copied_upto: bigint; claimed_upto: bigint | null }]>`
      SELECT copied_upto, claimed_upto FROM usage_copy FOR UPDATE`
    const done = await work({ copiedUpto: mark.copied_upto, claimedUpto: mark.claimed_upto }, assertHeld)
    await assertHeld()
    return done
  })
}

/** Returns the request ids of those calls that have no usage row. */
export async function findUnbooked(sql: Queryable, calls: readonly LoggedCall[]): Promise<Set<string>> {
  const rows = await sql<{ request_id: string }[]>`
    SELECT c.request_id
    FROM unnest(
      ${calls.map(({ requestId }) => requestId)}::text[], ${calls.map(({ submittedAt }) => String(submittedAt))}::bigint[]
    ) AS c (request_id, submitted_at)
    WHERE NOT EXISTS (
      SELECT FROM usage_rows AS u WHERE u.request_id = c.request_id AND u.submitted_at = c.submitted_at)`
  return new Set(rows.map(({ request_id }) => request_id))
}

/** Records what became of calls that only the log had. */
export const recordUnbooked = (sql: Queryable, what: 'import' | 'delete', facts: object): Promise<void> =>
  recordOperation(sql, {
    action: `call_log.${what}_unbooked`,
    accountId: null,
    subjectId: 'call_log',
    after: facts,
  })
