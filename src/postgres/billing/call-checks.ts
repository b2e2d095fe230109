/**
 * The check of an audit that compares calls with their charges. Both tables have a row for each call, too many to join: of
 * everything it compares sums first, by account, and joins the rows of the accounts whose sums differ.
 */
import { ulid } from '../../core/keys/ids.ts'
import type { Queryable } from '../connection.ts'
import { readKeptSince } from '../partitions/make.ts'
import {
  type AuditScope,
  type Check,
  type FoundRow,
  firstId,
  keptSince,
  keptSinceMs,
  MAX_DIFFERENCES_PER_KIND,
  MAX_TRANSACTION_MS,
  writtenSince,
} from './audit-checks.ts'

/** Calls and tasks at a month's beginning, whose id may be of the month before. */
const MONTH_MARGIN_MS = 60_000
const DAY_MS = 86_400_000
/** The characters of a ULID that are its time. */
const TIME_CHARS = 10

/** Calls and charges to compare one by one. */
interface Suspects {
  /** Those of these accounts; null: of all accounts. */
  readonly accounts: readonly string[] | null
  /** And those whose id is lower: near the months that were taken away, a call may lack its charge and a charge its call. */
  readonly below: string | null
}

/** Whether a reference is of an instant, given as a part of a ULID, or later. Those without a ULID are on either side. */
const isFrom = (sql: Queryable, ref: ReturnType<Queryable>, time: string) =>
  sql`right(${ref}, 26) COLLATE "C" >= ${time}`
const refOfCall = (sql: Queryable): ReturnType<Queryable> => sql`coalesce(task_id, request_id)`

const isSuspect = (sql: Queryable, { accounts, below }: Suspects, ref: ReturnType<Queryable>) =>
  accounts === null
    ? sql`true`
    : sql`(account_id = ANY (${accounts}::text[]) ${below === null ? sql`` : sql`OR NOT ${isFrom(sql, ref, below)}`})`

const toEarlierScope = ({ since }: AuditScope): AuditScope => ({
  since: since === null ? null : new Date(since.getTime() - MAX_TRANSACTION_MS),
})

/** Returns ids of calls that have several rows. A unique index forbids it; an index can be broken, or dropped. */
async function readRepeated(sql: Queryable, scope: AuditScope): Promise<string[]> {
  const rows = await sql<{ id: string }[]>`
    SELECT request_id AS id FROM usage_rows ${scope.since === null ? sql`` : sql`WHERE id >= ${firstId(scope)}`}
    GROUP BY request_id HAVING count(*) > 1 LIMIT ${MAX_DIFFERENCES_PER_KIND}`
  return rows.map(({ id }) => id)
}

const findRepeated = (sql: Queryable, scope: AuditScope, repeated: readonly string[]) => sql<FoundRow[]>`
  SELECT 'request_id' AS kind, min(account_id) AS account_id, request_id AS ref, '1' AS expected, count(*)::text AS found
  FROM usage_rows WHERE id >= ${firstId(scope)} AND request_id = ANY (${repeated}::text[]) GROUP BY request_id
  ORDER BY 2, 3`

/**
 * Returns what to compare one by one. Where each call has one row, an account's calls and charges agree if there are as
 * many, and the sums of the hashes of their references and amounts are the same.
 */
async function readSuspects(sql: Queryable, repeated: readonly string[]): Promise<Suspects> {
  const [calls, charges] = [
    await readKeptSince(sql, 'usage_rows'),
    await readKeptSince(sql, 'ledger_entries'),
  ]
  const keptMs = Math.max(calls?.getTime() ?? 0, charges?.getTime() ?? 0)
  const below = keptMs === 0 ? null : ulid(keptMs + MONTH_MARGIN_MS).slice(0, TIME_CHARS)
  const isComparable = (ref: ReturnType<Queryable>) =>
    below === null ? sql`` : sql`AND ${isFrom(sql, ref, below)}`
  const rows = await sql<{ id: string }[]>`
    SELECT account_id AS id
    FROM (
      SELECT account_id, count(*) AS calls, sum(hashtextextended(${refOfCall(sql)}, cost)) AS digest
      FROM usage_rows WHERE cost > 0 ${isComparable(refOfCall(sql))} GROUP BY account_id
    ) AS u
    FULL JOIN (
      SELECT account_id, count(*) AS calls, sum(hashtextextended(ref, -amount)) AS digest
      FROM ledger_entries WHERE kind = 'charge' ${isComparable(sql`ref`)}
        ${calls === null ? sql`` : sql`AND created_at >= ${new Date(calls.getTime() - DAY_MS)}`}
      GROUP BY account_id
    ) AS l USING (account_id)
    WHERE u.calls IS DISTINCT FROM l.calls OR u.digest IS DISTINCT FROM l.digest
    UNION
    SELECT account_id FROM usage_rows WHERE task_id IS NOT NULL GROUP BY account_id, task_id HAVING count(*) > 1
    UNION
    SELECT account_id FROM usage_rows WHERE request_id = ANY (${repeated}::text[])`
  return { accounts: rows.map(({ id }) => id), below }
}

const findCharges = (sql: Queryable, scope: AuditScope, suspects: Suspects) => sql<FoundRow[]>`
  WITH calls AS MATERIALIZED (
    SELECT account_id, request_id, ${refOfCall(sql)} AS ref, cost FROM usage_rows
    WHERE id >= ${firstId(scope)} AND booked_at >= ${keptSinceMs(sql, 'ledger_entries', MAX_TRANSACTION_MS)}
      AND ${isSuspect(sql, suspects, refOfCall(sql))}
  )
  SELECT 'charge' AS kind, u.account_id, u.request_id AS ref, u.cost::text AS expected, (-coalesce(l.total, 0))::text AS found
  FROM calls AS u
  LEFT JOIN (
    SELECT account_id, ref, sum(amount) AS total, count(*) AS charges
    FROM ledger_entries
    WHERE kind = 'charge' AND created_at >= ${writtenSince(sql, toEarlierScope(scope), 'ledger_entries')}
      AND ref IN (SELECT ref FROM calls)
    GROUP BY account_id, ref
  ) AS l ON l.ref = u.ref AND l.account_id = u.account_id
  WHERE u.cost <> -coalesce(l.total, 0) OR l.charges > 1
  ORDER BY 2, 3 LIMIT ${MAX_DIFFERENCES_PER_KIND}`

// The row of a charge is gone when retention removed the month of its call's admission.
const findMissingCalls = (sql: Queryable, scope: AuditScope, suspects: Suspects) => sql<FoundRow[]>`
  WITH charges AS MATERIALIZED (
    SELECT account_id, ref, amount FROM ledger_entries
    WHERE kind = 'charge' AND created_at >= ${writtenSince(sql, scope, 'ledger_entries')}
      AND created_at >= ${keptSince(sql, 'usage_rows')} AND ${isSuspect(sql, suspects, sql`ref`)}
  ), missing AS MATERIALIZED (
    SELECT l.account_id, l.ref, l.amount
    FROM charges AS l
    LEFT JOIN usage_rows AS u ON coalesce(u.task_id, u.request_id) = l.ref AND u.account_id = l.account_id
      AND u.id >= ${firstId(toEarlierScope(scope))}
    WHERE u.request_id IS NULL
  )
  SELECT 'call_missing' AS kind, account_id, ref, '0' AS expected, (-amount)::text AS found FROM missing
  WHERE coalesce(id_ms(ref) >= ${keptSinceMs(sql, 'usage_rows', MONTH_MARGIN_MS)}, true)
  ORDER BY 2, 3 LIMIT ${MAX_DIFFERENCES_PER_KIND}`

export const callCheck: Check = {
  kind: 'charge',
  counts: 'credits',
  rowKinds: new Set(['request_id']),
  async find(sql, scope) {
    const repeated = await readRepeated(sql, scope)
    const suspects =
      scope.since === null ? await readSuspects(sql, repeated) : { accounts: null, below: null }
    return [
      ...(isNone(suspects)
        ? []
        : [...(await findCharges(sql, scope, suspects)), ...(await findMissingCalls(sql, scope, suspects))]),
      ...(repeated.length === 0 ? [] : await findRepeated(sql, scope, repeated)),
    ]
  },
}

const isNone = ({ accounts, below }: Suspects): boolean => accounts?.length === 0 && below === null
