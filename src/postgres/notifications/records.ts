/** Deliveries as their account reads and repeats them. */
import type { DeliveryRecord, DeliveryState } from '../../../schemas/notifications/delivery.ts'
import {
  EVENTS_CHANNEL,
  INSTALLATION,
  type NotifiedEvent,
  TEST_EVENT,
} from '../../../schemas/notifications/event.ts'
import type { SnakeCase } from '../../core/json/snake-case.ts'
import { recordOperation } from '../accounts/audit-record.ts'
import { Refusal } from '../billing/refusal.ts'
import type { Queryable } from '../connection.ts'
import { inRange, type TimeRange } from '../time-range.ts'

type RecordRow = SnakeCase<Omit<DeliveryRecord, 'event'>> & {
  event_id: string
  type: NotifiedEvent['type']
  data: Record<string, unknown>
  event_at: Date
}

const toDeliveryRecord = (row: RecordRow): DeliveryRecord => ({
  id: row.id,
  position: row.position,
  accountId: row.account_id,
  endpointId: row.endpoint_id,
  target: row.target,
  state: row.state,
  attempts: row.attempts,
  dueAt: row.due_at,
  createdAt: row.created_at,
  endedAt: row.ended_at,
  event: {
    id: row.event_id,
    type: row.type,
    accountId: row.account_id,
    createdAt: row.event_at,
    data: row.data,
  },
})

const records = (sql: Queryable) => sql`
  SELECT d.id, d.position, d.account_id, d.endpoint_id, coalesce(d.url, w.url, d.address) AS target, d.state,
    d.attempts, d.due_at, d.created_at, d.ended_at, e.id AS event_id, e.type, e.data, e.created_at AS event_at
  FROM deliveries AS d JOIN events AS e ON e.id = d.event_id
  LEFT JOIN webhook_endpoints AS w ON w.id = d.endpoint_id`

export interface DeliveryFilter extends TimeRange {
  readonly accountId: string
  /** Null: all, here and below. */
  readonly endpointId: string | null
  readonly state: DeliveryState | null
  readonly type: string | null
  readonly before: bigint | null
  readonly limit: number
}

/** Lists webhooks of an account, the newest first. Emails to its users are theirs. */
export async function listDeliveries(sql: Queryable, filter: DeliveryFilter): Promise<DeliveryRecord[]> {
  const { accountId, endpointId, state, type, before, limit } = filter
  const rows = await sql<RecordRow[]>`
    ${records(sql)}
    WHERE d.account_id = ${accountId} AND d.endpoint_id IS NOT NULL
      ${endpointId === null ? sql`` : sql`AND d.endpoint_id = ${endpointId}`}
      ${state === null ? sql`` : sql`AND d.state = ${state}`}
      ${type === null ? sql`` : sql`AND e.type = ${type}`}
      ${inRange(sql, 'd.created_at', filter)}
      ${before === null ? sql`` : sql`AND d.position < ${before}`}
    ORDER BY d.position DESC LIMIT ${limit}`
  return rows.map(toDeliveryRecord)
}

/** @throws Refusal `delivery_not_found` */
export async function showDelivery(sql: Queryable, id: string): Promise<DeliveryRecord> {
  const [row] = await sql<RecordRow[]>`${records(sql)} WHERE d.id = ${id} AND d.endpoint_id IS NOT NULL`
  if (row === undefined) throw new Refusal('delivery_not_found', `There is no delivery ${id}`)
  return toDeliveryRecord(row)
}

const setWaiting = (sql: Queryable) => sql`
  SET state = 'waiting', tries = 0, due_at = now(), named_at = NULL, ended_at = NULL`

/** Delivers once more what has ended; what still waits is tried now. @throws Refusal `delivery_not_found` */
export async function replayDelivery(sql: Queryable, id: string): Promise<DeliveryRecord> {
  await sql`UPDATE deliveries ${setWaiting(sql)} WHERE id = ${id} AND endpoint_id IS NOT NULL AND named_at IS NULL`
  await sql`SELECT pg_notify(${EVENTS_CHANNEL}, '')`
  const delivery = await showDelivery(sql, id)
  const { accountId, event } = delivery
  await recordOperation(sql, {
    action: 'webhook.replay',
    accountId,
    subjectId: id,
    after: { event_id: event.id, type: event.type },
  })
  return delivery
}

/** Delivers once more what failed at an endpoint since then. Returns the number of deliveries. */
export async function replayFailed(sql: Queryable, endpointId: string, since: Date): Promise<number> {
  const rows = await sql<{ account_id: string }[]>`
    UPDATE deliveries ${setWaiting(sql)}
    WHERE endpoint_id = ${endpointId} AND state = 'failed' AND created_at >= ${since} RETURNING account_id`
  await sql`SELECT pg_notify(${EVENTS_CHANNEL}, '')`
  const [first] = rows
  if (first !== undefined)
    await recordOperation(sql, {
      action: 'webhook.replay_failed',
      accountId: first.account_id,
      subjectId: endpointId,
      after: { since: since.toISOString(), deliveries: rows.length },
    })
  return rows.length
}

/** Sends an event to one endpoint, whatever events it wants. */
export async function testEndpoint(
  sql: Queryable,
  { id, accountId }: { readonly id: string; readonly accountId: string },
): Promise<DeliveryRecord> {
  const [row] = await sql<[{ id: string }]>`
    WITH event AS (
      INSERT INTO events (type, account_id, subject_id, data, dispatched_at)
      VALUES (${TEST_EVENT}, ${accountId === INSTALLATION ? null : accountId}, ${id},
        jsonb_build_object('endpoint_id', ${id}::text), now())
      RETURNING id
    )
    INSERT INTO deliveries (account_id, event_id, lane, endpoint_id)
    SELECT ${accountId}, id, ${id}, ${id} FROM event RETURNING id`
  await recordOperation(sql, { action: 'webhook.test', accountId, subjectId: id })
  await sql`SELECT pg_notify(${EVENTS_CHANNEL}, '')`
  return showDelivery(sql, row.id)
}
