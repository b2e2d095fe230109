/**
 * Usage rows on their way to the call log. A range of row ids is claimed and the claim committed before
 * anything is inserted elsewhere, so that after a crash the very same range comes again, and the receiver
 * knows it by its ends.
 */
import type { Settlement } from '../../schemas/event.ts'
import type { Sql } from './connection.ts'
import { LOCKS } from './locks.ts'

/** Both ends count. */
export interface CopyRange {
  readonly from: bigint
  readonly to: bigint
}

/** A booked call with what the log shows of its key. Amounts are strings that count 1e-8 credit. */
export interface UsageRow extends Settlement {
  /** Rises in the order of booking. */
  readonly id: bigint
  /** Empty when no such key is known. */
  readonly key_name: string
  readonly key_prefix: string
  /** Epoch milliseconds. */
  readonly booked_at: number
}

export const MAX_RANGE_ROWS = 10_000

/**
 * Contract: `Database.claimCopyRange`. `sql` is one connection that nothing else ends: its session holds
 * the lock that makes it the only copier, and a crash of the process lets go of it. The lock spares double
 * work; what keeps the log right is that a range comes again as it was.
 */
export async function claimCopyRange(sql: Sql): Promise<CopyRange | null> {
  // A session that holds the lock gets it again.
  const [lock] = await sql<[{ is_ours: boolean }]>`SELECT pg_try_advisory_lock(${LOCKS.copying}) AS is_ours`
  if (!lock.is_ours) return null
  const [range] = await sql<CopyRange[]>`
    UPDATE usage_copy
    SET claimed_upto = coalesce(claimed_upto, (
      SELECT max(id) FROM (
        SELECT id FROM usage_rows WHERE id > copied_upto ORDER BY id LIMIT ${MAX_RANGE_ROWS}
      ) AS next))
    WHERE claimed_upto IS NOT NULL OR EXISTS (SELECT FROM usage_rows WHERE id > copied_upto)
    RETURNING copied_upto + 1 AS "from", claimed_upto AS "to"`
  return range ?? null
}

/** A row as PostgreSQL gives it: numbers as bigint. */
type StoredRow = {
  [Field in keyof UsageRow]: UsageRow[Field] extends number
    ? bigint
    : UsageRow[Field] extends number | null
      ? bigint | number | null
      : UsageRow[Field]
}

const numberOf = (value: bigint | number | null): number | null => (value === null ? null : Number(value))

const usageOfRow = (row: StoredRow): UsageRow => ({
  ...row,
  input_tokens: Number(row.input_tokens),
  output_tokens: Number(row.output_tokens),
  cached_tokens: Number(row.cached_tokens),
  cache_write_tokens: Number(row.cache_write_tokens),
  reasoning_tokens: Number(row.reasoning_tokens),
  server_tool_calls: Number(row.server_tool_calls),
  cost: String(row.cost),
  estimate: String(row.estimate),
  submitted_at: Number(row.submitted_at),
  created_at: Number(row.created_at),
  booked_at: Number(row.booked_at),
  latency_ms: Number(row.latency_ms),
  ttfb_ms: numberOf(row.ttfb_ms),
  attempts_count: numberOf(row.attempts_count),
  attempts: row.attempts ?? [],
})

/** Contract: `Database.readUsageRows`. */
export async function readUsageRows(sql: Sql, { from, to }: CopyRange): Promise<UsageRow[]> {
  const rows = await sql<StoredRow[]>`
    SELECT u.*, coalesce(k.name, '') AS key_name, coalesce(k.prefix, '') AS key_prefix
    FROM usage_rows AS u LEFT JOIN api_keys AS k ON k.id = u.key_id
    WHERE u.id BETWEEN ${from} AND ${to} ORDER BY u.id`
  return rows.map(usageOfRow)
}

/** Contract: `Database.finishCopyRange`. A second time changes nothing. */
export async function finishCopyRange(sql: Sql, { from, to }: CopyRange): Promise<void> {
  await sql`
    UPDATE usage_copy SET copied_upto = ${to}, claimed_upto = NULL
    WHERE copied_upto = ${from} - 1 AND claimed_upto = ${to}`
}
