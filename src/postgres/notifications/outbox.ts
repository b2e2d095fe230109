/** The outbox of events. */
import type { NewEvent } from '../../../schemas/notifications/event.ts'
import type { Queryable } from '../connection.ts'
import { printJson } from '../json.ts'

/** Records an event as part of the transaction of what happened; once for each `crossing`. */
export async function recordEvent(
  sql: Queryable,
  { type, accountId, subjectId, crossing, data }: NewEvent,
): Promise<void> {
  await sql`SELECT record_event(${type}, ${accountId}, ${subjectId}, ${crossing}, ${printJson(data)}::text::jsonb)`
}
