/** Events of the payment provider that contradict our payments: an operator deals with each, and closes it. */
import { recordOperation } from '../accounts/audit-record.ts'
import { Refusal } from '../billing/refusal.ts'
import type { Queryable, Sql } from '../connection.ts'
import { inTransaction } from '../transaction.ts'

export interface RefusedEvent {
  /** The provider's id. */
  readonly id: string
  readonly type: string
  readonly paymentId: string | null
  readonly accountId: string | null
  /** The contradiction, in words. */
  readonly refusal: string
  readonly createdAt: Date
  readonly receivedAt: Date
  readonly closedAt: Date | null
  readonly closedBy: string | null
  readonly closeReason: string | null
}

const selectRefused = (sql: Queryable) => sql`
  SELECT e.id, e.type, e.payment_id AS "paymentId", p.account_id AS "accountId", e.refusal, e.created_at AS "createdAt",
    e.received_at AS "receivedAt", e.closed_at AS "closedAt", e.closed_by AS "closedBy", e.close_reason AS "closeReason"
  FROM payment_events AS e LEFT JOIN payments AS p ON p.id = e.payment_id
  WHERE e.refusal IS NOT NULL`

export interface RefusedEventsQuery {
  /** Those that are not closed. */
  readonly isOpen: boolean
  /** The id before which the list begins; null: at the newest. */
  readonly before: string | null
  readonly limit: number
}

/** Lists refused events, the newest first. */
export const listRefusedEvents = (
  sql: Queryable,
  { isOpen, before, limit }: RefusedEventsQuery,
): Promise<RefusedEvent[]> => sql<RefusedEvent[]>`
  ${selectRefused(sql)}
    ${isOpen ? sql`AND e.closed_at IS NULL` : sql``}
    ${
      before === null
        ? sql``
        : sql`AND (e.received_at, e.id) < (SELECT received_at, id FROM payment_events WHERE id = ${before})`
    }
  ORDER BY e.received_at DESC, e.id DESC LIMIT ${limit}`

/**
 * Closes a refused event, once, with an entry in the audit record.
 * @throws Refusal `payment_event_not_found`, `payment_event_closed`
 */
export const closeRefusedEvent = (
  sql: Sql,
  { id, reason }: { readonly id: string; readonly reason: string },
): Promise<RefusedEvent> =>
  inTransaction(sql, async (transaction) => {
    const { count } = await transaction`
      UPDATE payment_events SET closed_at = now(), closed_by = audit_actor(), close_reason = ${reason}
      WHERE id = ${id} AND refusal IS NOT NULL AND closed_at IS NULL`
    const [event] = await transaction<RefusedEvent[]>`${selectRefused(transaction)} AND e.id = ${id}`
    if (event === undefined)
      throw new Refusal('payment_event_not_found', `There is no refused payment event ${id}`)
    if (count === 0)
      throw new Refusal(
        'payment_event_closed',
        `${event.closedBy} has closed ${id} already: ${event.closeReason}`,
      )
    const { type, paymentId, accountId, refusal } = event
    await recordOperation(transaction, {
      action: 'payment_event.close',
      accountId,
      subjectId: id,
      before: { type, payment_id: paymentId, refusal },
      after: { reason },
    })
    return event
  })
