/** An operator's request to look after a task now. */
import { recordOperation } from '../accounts/audit-record.ts'
import type { Sql } from '../connection.ts'

/**
 * Starts a new chain of messages about an open task, so that it is looked after now, and records the operation; earlier
 * messages are void. Returns null where the task has ended, or is being submitted.
 */
export async function renewTaskChain(
  sql: Sql,
  id: string,
  now: number,
): Promise<{ id: string; chain: number } | null> {
  const [row] = await sql<{ chain: number; account_id: string; state: string }[]>`
    UPDATE tasks SET chain = chain + 1, touched_at = ${now}
    WHERE id = ${id} AND ended_at IS NULL AND state <> 'submitting'
    RETURNING chain, account_id, state`
  if (row === undefined) return null
  const { chain, account_id: accountId, state } = row
  await recordOperation(sql, { action: 'task.retried', accountId, subjectId: id, after: { state } })
  return { id, chain }
}
