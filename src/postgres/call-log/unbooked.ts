/** Calls of the log that no usage row has. */
import type { LoggedCall } from '../../../schemas/call-log/unbooked.ts'
import { recordOperation } from '../accounts/audit-record.ts'
import type { Queryable } from '../connection.ts'

/** Returns the request ids of those calls that have no usage row. */
export async function findUnbooked(sql: Queryable, calls: readonly LoggedCall[]): Promise<Set<string>> {
  const rows = await sql<{ request_id: string }[]>`
    SELECT c.request_id
    FROM unnest(
      ${calls.map(({ requestId }) => requestId)}::text[], ${calls.map(({ submittedAt }) => String(submittedAt))}::bigint[]
    ) AS c (request_id, submitted_at)
    WHERE NOT EXISTS (
      SELECT FROM usage_rows AS u WHERE u.request_id = c.request_id AND u.submitted_at = c.submitted_at)`
  return new Set(rows.map(({ request_id }) => request_id))
}

/** Records what became of calls that only the log had. */
export const recordUnbooked = (sql: Queryable, what: 'import' | 'delete', facts: object): Promise<void> =>
  recordOperation(sql, {
    action: `call_log.${what}_unbooked`,
    accountId: null,
    subjectId: 'call_log',
    after: facts,
  })
