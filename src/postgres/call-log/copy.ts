/**
 * Usage rows on their way to the call log. A range of row ids is claimed and the claim committed before
 * anything is inserted elsewhere, so that after a crash the very same range comes again, and the receiver
 * knows it by its ends.
 */
import { finished } from 'node:stream/promises'
import {
  COPIED_COLUMNS,
  type ColumnKind,
  type ColumnName,
  findColumn,
} from '../../../schemas/call-log/columns.ts'
import {
  FIRST_LOG_INSTANT_MS,
  LAST_LOG_INSTANT_MS,
  MAX_RANGE_ROWS,
} from '../../../schemas/call-log/usage-row.ts'
import type { Sql } from '../connection.ts'
import { LOCKS } from '../locks.ts'

/** Both ends count. */
export interface CopyRange {
  readonly from: bigint
  readonly to: bigint
}

export interface ClaimedRange extends CopyRange {
  /** Epoch milliseconds; null where the rows no longer exist. */
  readonly oldestBookedAt: number | null
}

/**
 * Returns the rows to copy next; null: there are none, or another process copies. A claim that was not finished comes
 * again as it was. `sql` is one connection that nothing else ends: its session holds the lock that makes it the only
 * copier, and a crash of the process releases it. The lock spares double work; what keeps the log right is that a
 * range comes again as it was.
 */
export async function claimCopyRange(sql: Sql): Promise<ClaimedRange | null> {
  // A session that holds the lock gets it again.
  const [lock] = await sql<[{ is_ours: boolean }]>`SELECT pg_try_advisory_lock(${LOCKS.copying}) AS is_ours`
  if (!lock.is_ours) return null
  const [range] = await sql<(CopyRange & { booked_at: bigint | null })[]>`
    UPDATE usage_copy
    SET claimed_upto = coalesce(claimed_upto, (
      SELECT max(id) FROM (
        SELECT id FROM usage_rows WHERE id > copied_upto ORDER BY id LIMIT ${MAX_RANGE_ROWS}
      ) AS next))
    WHERE claimed_upto IS NOT NULL OR EXISTS (SELECT FROM usage_rows WHERE id > copied_upto)
    RETURNING copied_upto + 1 AS "from", claimed_upto AS "to",
      (SELECT booked_at FROM usage_rows WHERE id > copied_upto ORDER BY id LIMIT 1)`
  if (range === undefined) return null
  const { from, to, booked_at } = range
  return { from, to, oldestBookedAt: booked_at === null ? null : Number(booked_at) }
}

/** Returns the expression that prints a column, by its kind. Arithmetic and what is printed as stored leave null as it is. */
const PRINT: Readonly<Record<ColumnKind, (column: string) => string>> = {
  text: (column) => `coalesce(${column}, '')`,
  count: (column) => column,
  flag: (column) => column,
  instant: (
    column,
  ) => `CASE WHEN ${column} IS NOT NULL THEN timestamp '1970-01-01' + interval '1 millisecond' *
    least(greatest(${column}, ${FIRST_LOG_INSTANT_MS}), ${LAST_LOG_INSTANT_MS}) END`,
  credits: (column) => `${column} * 0.00000001`,
  attempts: (column) => `coalesce(${column}::text, '')`,
  // A URL contains neither quote nor backslash: escaped as in URLs, they need no escape in a list.
  links: (column) =>
    `'[' || coalesce('''' || replace(replace(replace(array_to_string(${column}, E'\\n'),
      '\\', '%5C'), '''', '%27'), E'\\n', ''',''') || '''', '') || ']'`,
}

/** Columns of the key, as its name is now. */
const OF_KEY: { readonly [Name in ColumnName]?: string } = { key_name: 'k.name', key_prefix: 'k.prefix' }

const SELECTED = COPIED_COLUMNS.map((name) => PRINT[findColumn(name).kind](OF_KEY[name] ?? `u.${name}`)).join(
  ', ',
)

/**
 * Returns text with `COPIED_COLUMNS`, in any order; each row with its newline. Uses COPY, because rows as
 * values would cost this process ten times as much.
 */
export async function readUsageRows(sql: Sql, { from, to }: CopyRange): Promise<Buffer> {
  // COPY takes no parameters; both ends are numbers.
  const stream = await sql
    .unsafe(
      `COPY (
        SELECT ${SELECTED} FROM usage_rows AS u LEFT JOIN api_keys AS k ON k.id = u.key_id
        WHERE u.id BETWEEN ${from} AND ${to}
      ) TO STDOUT`,
    )
    .readable()
  const chunks: Buffer[] = []
  stream.on('data', (chunk: Buffer) => chunks.push(chunk))
  await finished(stream)
  return Buffer.concat(chunks)
}

/** Marks the range as permanently copied. A second call changes nothing. */
export async function finishCopyRange(sql: Sql, { from, to }: CopyRange): Promise<void> {
  await sql`
    UPDATE usage_copy SET copied_upto = ${to}, claimed_upto = NULL
    WHERE copied_upto = ${from} - 1 AND claimed_upto = ${to}`
}

/** Returns the id up to which rows are permanently in the call log. */
export async function readCopiedUpto(sql: Sql): Promise<bigint> {
  const [mark] = await sql<[{ copied_upto: bigint }]>`SELECT copied_upto FROM usage_copy`
  return mark.copied_upto
}
