/**
 * The checks of an audit, each one statement over all accounts. Each yields `account_id`, `ref`, `expected`
 * and `found`; the last two count 1e-8 credit, or rows. Sums are NUMERIC: they cannot overflow.
 */

import type { Queryable } from '../connection.ts'
import type { PartitionedTable } from '../partitions/make.ts'
import type { DifferenceKind } from './audit-report.ts'

export const MAX_DIFFERENCES_PER_KIND = 1000

export interface FoundRow {
  /** Of a check that finds several kinds. */
  kind?: DifferenceKind
  account_id: string
  ref: string | null
  expected: string
  found: string
}

/** Rows that an audit reads: all, or those written since an instant; the earlier sums are known then. */
export interface AuditScope {
  /** Null: everything. */
  readonly since: Date | null
}

export interface Check {
  readonly kind: DifferenceKind
  readonly counts: 'credits' | 'rows'
  /** Of the kinds that it finds, those that count rows all the same. */
  readonly rowKinds?: ReadonlySet<DifferenceKind>
  find(sql: Queryable, scope: AuditScope): PromiseLike<FoundRow[]>
}

/** Entries of calls have the request id as their ref; those of media have the task's. */
const CALL_REFS = 'req\\_%'
/** Ids of usage rows follow the clock in microseconds. */
const IDS_PER_MS = 1000n
/** Later than any period; its id is a bigint. */
const LAST_MS = 9_000_000_000_000
/** The longest time between the beginning of a transaction, which its entries have, and its last row. */
export const MAX_TRANSACTION_MS = 600_000

/** The first instant that a check reads of a table; a subquery, so that it is computed once and selects partitions. */
export const keptSince = (sql: Queryable, table: PartitionedTable) =>
  sql`(SELECT coalesce(kept_since(${table}), '-infinity'))`
export const keptSinceMs = (sql: Queryable, table: PartitionedTable, marginMs = 0) =>
  sql`(SELECT coalesce(ms_of(kept_since(${table})) + ${marginMs}::bigint, ${Number.MIN_SAFE_INTEGER}::bigint))`
export const writtenSince = (sql: Queryable, { since }: AuditScope, table: PartitionedTable) =>
  since === null ? keptSince(sql, table) : sql`${since}::timestamptz`
export const firstId = ({ since }: AuditScope): bigint =>
  since === null ? 0n : BigInt(since.getTime()) * IDS_PER_MS

/**
 * Sums of the entries of each account: the known earlier ones, and those that the scope reads, up to an instant.
 * `entries` counts those that were read.
 */
export const ledgerSums = (sql: Queryable, scope: AuditScope, before: Date | null = null) => sql`
  SELECT account_id, sum(balance) AS balance, sum(held) AS held, sum(used) AS used, sum(entries) AS entries FROM (
    SELECT account_id, sum(amount) AS balance,
      coalesce(-sum(amount) FILTER (WHERE kind IN ('hold', 'release', 'refund')), 0) AS held,
      coalesce(-sum(amount) FILTER (WHERE kind = 'charge'), 0) AS used, count(*) AS entries
    FROM ledger_entries WHERE created_at >= ${writtenSince(sql, scope, 'ledger_entries')}
      ${before === null ? sql`` : sql`AND created_at < ${before}`}
    GROUP BY account_id
    UNION ALL
    SELECT account_id, balance, held, used, 0 FROM ${scope.since === null ? sql`last_closings` : sql`verified_wallets`}
  ) AS sums GROUP BY account_id`

const walletTotals: Check = {
  kind: 'balance',
  counts: 'credits',
  rowKinds: new Set(['entries_without_wallet']),
  find: (sql, scope) => sql<FoundRow[]>`
    WITH entries AS MATERIALIZED (${ledgerSums(sql, scope)}), open_holds AS MATERIALIZED (
      SELECT account_id, sum(amount) AS total FROM holds WHERE state = 'open' GROUP BY account_id
    )
    (SELECT 'balance' AS kind, w.account_id, NULL AS ref, coalesce(l.balance, 0)::text AS expected, w.balance::text AS found
      FROM wallets AS w LEFT JOIN entries AS l ON l.account_id = w.account_id
      WHERE w.balance <> coalesce(l.balance, 0) ORDER BY 2 LIMIT ${MAX_DIFFERENCES_PER_KIND})
    UNION ALL
    (SELECT 'held', w.account_id, NULL, coalesce(h.total, 0)::text, w.held::text
      FROM wallets AS w LEFT JOIN open_holds AS h ON h.account_id = w.account_id
      WHERE w.held <> coalesce(h.total, 0) ORDER BY 2 LIMIT ${MAX_DIFFERENCES_PER_KIND})
    UNION ALL
    (SELECT 'held_entries', account_id, NULL, coalesce(h.total, 0)::text, coalesce(l.held, 0)::text
      FROM open_holds AS h FULL JOIN entries AS l USING (account_id)
      WHERE coalesce(h.total, 0) <> coalesce(l.held, 0) ORDER BY 2 LIMIT ${MAX_DIFFERENCES_PER_KIND})
    UNION ALL
    (SELECT 'used', w.account_id, NULL, coalesce(l.used, 0)::text, w.used::text
      FROM wallets AS w LEFT JOIN entries AS l ON l.account_id = w.account_id
      WHERE w.used <> coalesce(l.used, 0) ORDER BY 2 LIMIT ${MAX_DIFFERENCES_PER_KIND})
    UNION ALL
    (SELECT 'entries_without_wallet', l.account_id, NULL, '0', l.entries::text
      FROM entries AS l LEFT JOIN wallets AS w ON w.account_id = l.account_id
      WHERE w.account_id IS NULL AND l.entries > 0 ORDER BY 2 LIMIT ${MAX_DIFFERENCES_PER_KIND})`,
}

const walletMissing: Check = {
  kind: 'wallet_missing',
  counts: 'rows',
  find: (sql) => sql`
    SELECT a.id AS account_id, NULL AS ref, '1' AS expected, '0' AS found
    FROM accounts AS a LEFT JOIN wallets AS w ON w.account_id = a.id
    WHERE w.account_id IS NULL
    ORDER BY 1 LIMIT ${MAX_DIFFERENCES_PER_KIND}`,
}

const isInChangedHolds = (sql: Queryable, { since }: AuditScope, ref: ReturnType<Queryable>) =>
  since === null
    ? sql``
    : sql`AND ${ref} IN (
        SELECT ref FROM holds WHERE created_at >= ${since} OR closed_at >= ${since}
        UNION
        SELECT ref FROM ledger_entries
        WHERE created_at >= ${since} AND kind IN ('hold', 'release', 'refund'))`

/** For each hold: debited once; returned once when closed; charged once with the recorded charge. */
const holdEntries: Check = {
  kind: 'hold_entries',
  counts: 'credits',
  find: (sql, scope) => sql`
    SELECT coalesce(h.account_id, l.account_id) AS account_id, ref,
      CASE h.state WHEN 'open' THEN -h.amount ELSE -coalesce(h.charged, 0) END::text AS expected,
      coalesce(l.total, 0)::text AS found
    FROM holds AS h
    FULL JOIN (
      SELECT account_id, ref, sum(amount) AS total, bool_or(kind <> 'charge') AS is_of_hold,
        coalesce(sum(amount) FILTER (WHERE kind = 'hold'), 0) AS held,
        coalesce(sum(amount) FILTER (WHERE kind IN ('release', 'refund')), 0) AS given_back,
        coalesce(sum(amount) FILTER (WHERE kind = 'charge'), 0) AS charged,
        count(*) FILTER (WHERE kind = 'hold') AS holds,
        count(*) FILTER (WHERE kind IN ('release', 'refund')) AS returns
      FROM ledger_entries WHERE ref IS NOT NULL AND kind <> 'adjustment' AND ref NOT LIKE ${CALL_REFS}
        ${isInChangedHolds(sql, scope, sql`ref`)}
      GROUP BY account_id, ref
    ) AS l USING (account_id, ref)
    WHERE (h.ref IS NULL AND l.is_of_hold
      OR h.ref IS NOT NULL AND h.created_at >= ${keptSince(sql, 'ledger_entries')} AND (
        l.ref IS NULL OR l.holds <> 1 OR l.held <> -h.amount OR l.charged <> -h.charged
        OR l.returns <> CASE h.state WHEN 'open' THEN 0 ELSE 1 END
        OR l.given_back <> CASE h.state WHEN 'open' THEN 0 ELSE h.amount END))
      ${isInChangedHolds(sql, scope, sql`ref`)}
    ORDER BY 1, 2 LIMIT ${MAX_DIFFERENCES_PER_KIND}`,
}

const taskHolds: Check = {
  kind: 'task_hold',
  counts: 'credits',
  find: (sql, { since }) => sql`
    SELECT t.account_id, t.id AS ref,
      CASE WHEN t.ended_at IS NULL THEN t.hold ELSE coalesce(t.cost, 0) END::text AS expected,
      CASE h.state WHEN 'open' THEN h.amount ELSE coalesce(h.charged, 0) END::text AS found
    FROM tasks AS t LEFT JOIN holds AS h ON h.ref = t.id AND h.account_id = t.account_id
    WHERE (h.ref IS NULL OR h.amount <> t.hold
      OR h.state <> CASE WHEN t.ended_at IS NULL THEN 'open' WHEN t.state = 'succeeded'
        OR t.kind = 'response' AND t.cost > 0 THEN 'settled' ELSE 'returned' END
      OR h.charged <> CASE WHEN t.ended_at IS NULL THEN 0 ELSE coalesce(t.cost, 0) END)
      ${since === null ? sql`` : sql`AND t.touched_at >= ${since.getTime()}`}
    ORDER BY 1, 2 LIMIT ${MAX_DIFFERENCES_PER_KIND}`,
}

/** Refused by the settler. A malformed one, or one of an unknown account, may name no account. */
const unbooked: Check = {
  kind: 'settlement_unbooked',
  counts: 'rows',
  find: (sql) => sql`
    SELECT coalesce(substring(settlement FROM 'account_id[\\\\]?" ?: ?[\\\\]?"([^"\\\\]*)'), '') AS account_id, request_id AS ref,
      '0' AS expected, '1' AS found
    FROM settlements_refused ORDER BY refused_at, 2 LIMIT ${MAX_DIFFERENCES_PER_KIND}`,
}

const credits: Check[] = [
  {
    kind: 'refund',
    counts: 'credits',
    find: (sql, { since }) => sql`
      SELECT r.account_id, r.ref, coalesce(c.total, 0)::text AS expected, r.total::text AS found
      FROM (
        SELECT account_id, ref, sum(amount) AS total, min(amount) AS least
        FROM ledger_entries WHERE kind = 'adjustment' AND ref IS NOT NULL
          ${
            since === null
              ? sql``
              : sql`AND ref IN (
                  SELECT ref FROM ledger_entries
                  WHERE kind = 'adjustment' AND ref IS NOT NULL AND created_at >= ${since})`
          }
        GROUP BY account_id, ref
      ) AS r
      CROSS JOIN LATERAL (
        SELECT -sum(amount) AS total FROM ledger_entries
        WHERE ref = r.ref AND kind = 'charge' AND account_id = r.account_id
      ) AS c
      WHERE r.least < 0 OR r.total > coalesce(c.total, 0)
        AND (c.total IS NOT NULL OR coalesce(id_ms(r.ref) >= ${keptSinceMs(sql, 'ledger_entries')}, true))
      ORDER BY 1, 2 LIMIT ${MAX_DIFFERENCES_PER_KIND}`,
  },
  {
    // A unique index forbids it; an index can be broken, or dropped.
    kind: 'reference',
    counts: 'rows',
    find: (sql, { since }) => sql`
      SELECT account_id, reference AS ref, '1' AS expected, count(*)::text AS found
      FROM ledger_entries WHERE reference IS NOT NULL GROUP BY account_id, reference
      HAVING count(*) > 1 ${since === null ? sql`` : sql`AND max(created_at) >= ${since}`}
      ORDER BY 1, 2 LIMIT ${MAX_DIFFERENCES_PER_KIND}`,
  },
  {
    kind: 'credit_act',
    counts: 'rows',
    find: (sql, scope) => sql`
      SELECT l.account_id, l.id::text AS ref, '1' AS expected, count(a.id)::text AS found
      FROM ledger_entries AS l
      LEFT JOIN audit_entries AS a ON a.account_id = l.account_id AND a.action = 'wallet.' || l.kind
        AND a.actor = l.actor AND a.after ->> 'entry' = l.id::text AND a.after ->> 'amount' = print_credits(l.amount)
      WHERE l.actor IS NOT NULL AND l.created_at >= ${writtenSince(sql, scope, 'audit_entries')}
        AND l.created_at >= ${keptSince(sql, 'audit_entries')}
      GROUP BY l.account_id, l.id HAVING count(a.id) <> 1
      ORDER BY 1, l.id LIMIT ${MAX_DIFFERENCES_PER_KIND}`,
  },
]

/**
 * Sums of the cost of the calls of each key that has a grant: the known earlier ones, and those that the scope reads,
 * below an id.
 */
export const grantSums = (sql: Queryable, scope: AuditScope, beforeId: bigint | null = null) => sql`
  SELECT key_id, sum(cost) AS total FROM (
    SELECT key_id, cost FROM usage_rows
    WHERE id >= ${firstId(scope)} ${beforeId === null ? sql`` : sql`AND id < ${beforeId}`} AND key_id IN (SELECT key_id FROM grants)
    UNION ALL
    ${scope.since === null ? sql`SELECT key_id, cost FROM closing_usage WHERE key_id IN (SELECT key_id FROM grants)` : sql`SELECT key_id, spent FROM verified_grants`}
  ) AS calls GROUP BY key_id`

const grants: Check[] = [
  {
    kind: 'grant_spent',
    counts: 'credits',
    find: (sql, scope) => sql`
      SELECT g.account_id, g.key_id AS ref, coalesce(u.total, 0)::text AS expected, g.spent::text AS found
      FROM grants AS g LEFT JOIN (${grantSums(sql, scope)}) AS u ON u.key_id = g.key_id
      WHERE g.spent <> coalesce(u.total, 0)
      ORDER BY 1, 2 LIMIT ${MAX_DIFFERENCES_PER_KIND}`,
  },
  {
    kind: 'grant_missing',
    counts: 'rows',
    find: (sql) => sql`
      SELECT k.account_id, k.id AS ref, '1' AS expected, '0' AS found
      FROM api_keys AS k LEFT JOIN grants AS g ON g.key_id = k.id AND g.account_id = k.account_id
      WHERE k.kind IN ('employee', 'agent') AND g.key_id IS NULL
      ORDER BY 1, 2 LIMIT ${MAX_DIFFERENCES_PER_KIND}`,
  },
]

const budgetSpent: Check = {
  kind: 'budget_spent',
  counts: 'credits',
  // Of what was written since, periods in which calls were booked; of all periods those whose calls are kept.
  find: (sql, scope) => sql`
    WITH changed AS MATERIALIZED (
      SELECT DISTINCT b.id, period_start(b.period, b.timezone, u.submitted_at) AS starts_at
      FROM budgets AS b JOIN usage_rows AS u ON u.account_id = b.account_id AND u.id >= ${firstId(scope)}
      WHERE ${scope.since !== null}
    ), oldest AS MATERIALIZED (
      SELECT CASE WHEN ${scope.since === null} THEN 0 ELSE coalesce(min(starts_at), ${LAST_MS}::bigint) END AS ms
      FROM changed
    ), expected AS (
      SELECT b.id, period_start(b.period, b.timezone, u.submitted_at) AS starts_at, sum(u.cost) AS total
      FROM budgets AS b
      JOIN usage_rows AS u ON u.account_id = b.account_id AND u.submitted_at >= b.counts_from AND u.cost > 0
      LEFT JOIN grants AS g ON g.key_id = u.key_id
      WHERE b.subject_id IN (u.account_id, g.member_id, u.key_id)
        AND u.id >= (SELECT least(ms, ${LAST_MS}::bigint) * ${IDS_PER_MS} FROM oldest)
      GROUP BY 1, 2
    )
    SELECT b.account_id, b.id || ' ' || print_instant(coalesce(e.starts_at, p.starts_at)) AS ref,
      coalesce(e.total, 0)::text AS expected, coalesce(p.spent, 0)::text AS found
    FROM expected AS e
    FULL JOIN budget_periods AS p ON p.budget_id = e.id AND p.starts_at = e.starts_at
    JOIN budgets AS b ON b.id = coalesce(e.id, p.budget_id)
    WHERE coalesce(e.total, 0) <> coalesce(p.spent, 0)
      AND coalesce(e.starts_at, p.starts_at) >= ${keptSinceMs(sql, 'usage_rows')}
      AND (${scope.since === null} OR (b.id, coalesce(e.starts_at, p.starts_at)) IN (SELECT id, starts_at FROM changed))
    ORDER BY 1, 2 LIMIT ${MAX_DIFFERENCES_PER_KIND}`,
}

export const CHECKS: readonly Check[] = [
  walletMissing,
  walletTotals,
  holdEntries,
  taskHolds,
  unbooked,
  ...credits,
  ...grants,
  budgetSpent,
]
