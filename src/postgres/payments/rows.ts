/** Payments as PostgreSQL gives them. */
import type { Payment } from '../../../schemas/payments/payment.ts'
import type { SnakeCase } from '../../core/json/snake-case.ts'
import type { Queryable } from '../connection.ts'

export type PaymentRow = SnakeCase<Payment>

export const toPayment = (row: PaymentRow): Payment => ({
  id: row.id,
  accountId: row.account_id,
  kind: row.kind,
  state: row.state,
  credits: row.credits,
  amount: row.amount,
  currency: row.currency,
  sessionId: row.session_id,
  intentId: row.intent_id,
  url: row.url,
  failureCode: row.failure_code,
  failureMessage: row.failure_message,
  refunded: row.refunded,
  disputed: row.disputed,
  creditsTaken: row.credits_taken,
  createdBy: row.created_by,
  createdAt: row.created_at,
  paidAt: row.paid_at,
})

/** Returns payments with what was taken back of each, as a part of a statement. */
export const selectPayments = (sql: Queryable) => sql`
  SELECT p.*, r.refunded, r.disputed, r.credits_taken
  FROM payments AS p, LATERAL (
    SELECT coalesce(sum(amount) FILTER (WHERE kind = 'refund'), 0)::bigint AS refunded,
      coalesce(sum(amount) FILTER (WHERE kind = 'chargeback'), 0)::bigint AS disputed,
      coalesce(sum(credits), 0)::bigint AS credits_taken
    FROM payment_reversals WHERE payment_id = p.id AND state = 'taken'
  ) AS r`
