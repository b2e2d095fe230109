/** The checks of an audit that are about payments: rows, ledger and receipts say the same. */
import { type Check, MAX_DIFFERENCES_PER_KIND } from '../billing/audit-checks.ts'

const PAYMENT_REFERENCES = 'pay\\_%'

export const PAYMENT_CHECKS: readonly Check[] = [
  {
    kind: 'payment',
    counts: 'credits',
    find: (sql, { since }) => sql`
      SELECT coalesce(p.account_id, l.account_id) AS account_id, coalesce(p.id, l.reference) AS ref,
        CASE p.state WHEN 'paid' THEN p.credits ELSE 0 END::text AS expected, coalesce(l.total, 0)::text AS found
      FROM payments AS p
      FULL JOIN (
        SELECT account_id, reference, sum(amount) AS total FROM ledger_entries
        WHERE kind = 'topup' AND reference LIKE ${PAYMENT_REFERENCES}
          ${since === null ? sql`` : sql`AND created_at >= ${since}`}
        GROUP BY account_id, reference
      ) AS l ON l.reference = p.id AND l.account_id = p.account_id
      WHERE ${since === null ? sql`true` : sql`(l.reference IS NOT NULL OR p.paid_at >= ${since})`}
        AND coalesce(l.total, 0) <> CASE p.state WHEN 'paid' THEN p.credits ELSE 0 END
      ORDER BY 1, 2 LIMIT ${MAX_DIFFERENCES_PER_KIND}`,
  },
  {
    kind: 'payment_reversal',
    counts: 'credits',
    find: (sql, { since }) => sql`
      SELECT coalesce(p.account_id, l.account_id) AS account_id, coalesce(r.id, l.reversal_id) AS ref,
        CASE r.state WHEN 'taken' THEN -r.credits ELSE 0 END::text AS expected, coalesce(l.total, 0)::text AS found
      FROM (payment_reversals AS r JOIN payments AS p ON p.id = r.payment_id)
      FULL JOIN (
        SELECT account_id, split_part(reference, ':', 1) AS reversal_id, sum(amount) AS total FROM ledger_entries
        WHERE kind = 'reversal' AND reference IS NOT NULL GROUP BY 1, 2
        ${since === null ? sql`` : sql`HAVING max(created_at) >= ${since}`}
      ) AS l ON l.reversal_id = r.id AND l.account_id = p.account_id
      WHERE ${since === null ? sql`true` : sql`(l.reversal_id IS NOT NULL OR greatest(r.created_at, r.returned_at) >= ${since})`}
        AND coalesce(l.total, 0) <> CASE r.state WHEN 'taken' THEN -r.credits ELSE 0 END
      ORDER BY 1, 2 LIMIT ${MAX_DIFFERENCES_PER_KIND}`,
  },
  {
    kind: 'payment_event',
    counts: 'rows',
    find: (sql) => sql`
      SELECT coalesce(p.account_id, '') AS account_id, e.id AS ref, '0' AS expected, '1' AS found
      FROM payment_events AS e LEFT JOIN payments AS p ON p.id = e.payment_id
      WHERE e.refusal IS NOT NULL AND e.closed_at IS NULL ORDER BY e.received_at LIMIT ${MAX_DIFFERENCES_PER_KIND}`,
  },
  {
    kind: 'receipt',
    counts: 'rows',
    find: (sql) => sql`
      SELECT p.account_id, p.id AS ref, CASE p.state WHEN 'paid' THEN 1 ELSE 0 END::text AS expected,
        count(r.number)::text AS found
      FROM payments AS p LEFT JOIN receipts AS r ON r.payment_id = p.id AND r.reversal_id IS NULL
      GROUP BY p.id HAVING count(r.number) <> CASE p.state WHEN 'paid' THEN 1 ELSE 0 END
      UNION ALL
      SELECT '', NULL, n.last::text, count(r.number)::text
      FROM receipt_numbers AS n LEFT JOIN receipts AS r ON r.number BETWEEN 1 AND n.last
      GROUP BY n.last HAVING count(r.number) <> n.last
      ORDER BY 1, 2 LIMIT ${MAX_DIFFERENCES_PER_KIND}`,
  },
]
