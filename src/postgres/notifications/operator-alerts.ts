/** Alerts of the installation: its events, which an operator acknowledges. */
import type { OperatorAlert } from '../../../schemas/notifications/event.ts'
import { TEST_EVENT } from '../../../schemas/notifications/event.ts'
import { fromRow, type SnakeCase } from '../../core/json/snake-case.ts'
import { recordOperation } from '../accounts/audit-record.ts'
import { Refusal } from '../billing/refusal.ts'
import type { Queryable } from '../connection.ts'

type AlertRow = SnakeCase<OperatorAlert>

const columns = (sql: Queryable) =>
  sql`id, type, subject_id, data, created_at, acknowledged_at, acknowledged_by, acknowledgement`

/** Lists the alerts of the installation, the newest first. */
export async function listOperatorAlerts(
  sql: Queryable,
  {
    isOpen,
    before,
    limit,
  }: { readonly isOpen: boolean; readonly before: string | null; readonly limit: number },
): Promise<OperatorAlert[]> {
  const rows = await sql<AlertRow[]>`
    SELECT ${columns(sql)} FROM events
    WHERE account_id IS NULL AND type <> ${TEST_EVENT}
      ${isOpen ? sql`AND acknowledged_at IS NULL` : sql``}
      ${before === null ? sql`` : sql`AND (created_at, id) < (SELECT created_at, id FROM events WHERE id = ${before})`}
    ORDER BY created_at DESC, id DESC LIMIT ${limit}`
  return rows.map(fromRow<OperatorAlert>)
}

/** Acknowledges an alert; one that is acknowledged stays as it is. @throws Refusal `alert_not_found` */
export async function acknowledgeAlert(sql: Queryable, id: string, note: string): Promise<OperatorAlert> {
  const changed = await sql`
    UPDATE events SET acknowledged_at = now(), acknowledged_by = audit_actor(), acknowledgement = ${note}
    WHERE id = ${id} AND account_id IS NULL AND acknowledged_at IS NULL RETURNING id`
  const [row] = await sql<
    AlertRow[]
  >`SELECT ${columns(sql)} FROM events WHERE id = ${id} AND account_id IS NULL`
  if (row === undefined) throw new Refusal('alert_not_found', `There is no alert ${id}`)
  if (changed.length > 0)
    await recordOperation(sql, {
      action: 'alert.acknowledge',
      accountId: null,
      subjectId: id,
      after: { type: row.type, subject_id: row.subject_id, note },
    })
  return fromRow<OperatorAlert>(row)
}
