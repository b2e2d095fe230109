/** Lists tasks, also those that need attention, and files that expire. */

import type { TaskKind, TaskState } from '../../../schemas/tasks/task.ts'
import type { Sql } from '../connection.ts'
import { jsonValue } from '../json.ts'
import { inRange } from '../time-range.ts'
import { inTransaction } from '../transaction.ts'
import { type TaskRow, toTask } from './rows.ts'
import type { AllTasksQuery, OpenJob, OpenJobQuery, Task, TaskListQuery } from './types.ts'

/** Selects what its account sees: no deleted record, and no submit that was answered as refused. */
const shown = (sql: Sql) => sql`deleted_at IS NULL AND (state <> 'refused' OR is_early)`

/** Returns those that exist, in no particular order. */
export async function readTasks(sql: Sql, ids: readonly string[]): Promise<Task[]> {
  if (ids.length === 0) return []
  const rows = await sql<TaskRow[]>`SELECT * FROM tasks WHERE id = ANY (${ids as string[]}::text[])`
  return rows.map(toTask)
}

/**
 * Returns the task. Null when it does not exist, is another account's or another kind's, its record was deleted, or its
 * client was answered that the submit is refused.
 */
export async function findTask(
  sql: Sql,
  accountId: string,
  kind: TaskKind,
  id: string,
): Promise<Task | null> {
  const [row] = await sql<TaskRow[]>`
    SELECT * FROM tasks
    WHERE id = ${id} AND account_id = ${accountId} AND kind = ${kind} AND ${shown(sql)}`
  return row === undefined ? null : toTask(row)
}

/** Returns a response that is made in the background, by our id or its upstream's; null for one that the account lacks. */
export async function findResponseTask(sql: Sql, accountId: string, id: string): Promise<Task | null> {
  const [row] = await sql<TaskRow[]>`
    SELECT * FROM tasks
    WHERE id = coalesce(
        (SELECT task_id FROM stored_responses WHERE account_id = ${accountId} AND id = ${id}), ${id})
      AND account_id = ${accountId} AND kind = 'response' AND ${shown(sql)}`
  return row === undefined ? null : toTask(row)
}

/** Lists tasks, the newest first. */
export async function listTasks(
  sql: Sql,
  { accountId, kind, states, before = null, limit }: TaskListQuery,
): Promise<{ tasks: Task[]; hasMore: boolean }> {
  const rows = await sql<TaskRow[]>`
    SELECT * FROM tasks
    WHERE account_id = ${accountId} AND kind = ${kind} AND ${shown(sql)}
      ${states === null ? sql`` : sql`AND state = ANY (${states as string[]}::text[])`}
      ${before === null ? sql`` : sql`AND id < ${before}`}
    ORDER BY id DESC LIMIT ${limit + 1}`
  return { tasks: rows.slice(0, limit).map(toTask), hasMore: rows.length > limit }
}

/** Lists tasks, the newest first, deleted records included. Throws when `before` is no task. */
export async function listAllTasks(sql: Sql, query: AllTasksQuery): Promise<Task[]> {
  const { accountId, kind, states, isOpen, isShown = false, before, limit, since, until } = query
  const [page] = before === null ? [] : await readTasks(sql, [before])
  if (before !== null && page === undefined) throw new Error(`There is no task ${before}.`)
  const rows = await sql<TaskRow[]>`
    SELECT * FROM tasks
    WHERE true
      ${accountId === null ? sql`` : sql`AND account_id = ${accountId}`}
      ${kind === null ? sql`` : sql`AND kind = ${kind}`}
      ${states === null ? sql`` : sql`AND state = ANY (${states as string[]}::text[])`}
      ${isOpen ? sql`AND ended_at IS NULL` : sql``}
      ${isShown ? sql`AND ${shown(sql)}` : sql``}
      ${inRange(sql, 'submitted_at', { since: since?.getTime(), until: until?.getTime() })}
      ${page === undefined ? sql`` : sql`AND (submitted_at, id) < (${page.submittedAt}, ${page.id})`}
    ORDER BY submitted_at DESC, id DESC LIMIT ${limit}`
  return rows.map(toTask)
}

/** Lists open jobs, the newest first. */
export async function listOpenJobs(
  sql: Sql,
  { accountId, keyId, models, kinds, ref, sessionId, limit }: OpenJobQuery,
): Promise<OpenJob[]> {
  const rows = await sql<(TaskRow & { key_name: string | null; key_prefix: string | null })[]>`
    SELECT t.*, k.name AS key_name, k.prefix AS key_prefix
    FROM tasks AS t LEFT JOIN api_keys AS k ON k.id = t.key_id
    WHERE t.account_id = ${accountId} AND t.ended_at IS NULL AND NOT t.is_awaited
      ${keyId === null ? sql`` : sql`AND t.key_id = ${keyId}`}
      ${models === null ? sql`` : sql`AND t.model = ANY (${models as string[]}::text[])`}
      ${kinds === null ? sql`` : sql`AND t.kind = ANY (${kinds as string[]}::text[])`}
      ${ref === null ? sql`` : sql`AND (t.id = ${ref} OR t.request_id = ${ref})`}
      ${sessionId === null ? sql`` : sql`AND t.session_id = ${sessionId}`}
    ORDER BY t.submitted_at DESC, t.id DESC LIMIT ${limit}`
  return rows.map((row) => ({
    task: toTask(row),
    keyName: row.key_name ?? '',
    keyPrefix: row.key_prefix ?? '',
  }))
}

/** Hides the record of an ended task. False when it was not there or has not ended. */
export async function deleteTaskRecord(
  sql: Sql,
  accountId: string,
  kind: TaskKind,
  id: string,
  now: number,
): Promise<boolean> {
  const { count } = await sql`
    UPDATE tasks SET deleted_at = ${now}
    WHERE id = ${id} AND account_id = ${accountId} AND kind = ${kind}
      AND ended_at IS NOT NULL AND ${shown(sql)}`
  return count > 0
}

/** Removes the files of an ended task from its result. After the end of a task its result changes in no other way. */
export async function removeFiles(
  sql: Sql,
  { id, result }: Pick<Task, 'id' | 'result'>,
  keys: readonly string[],
): Promise<void> {
  if (result === null) return
  const files = result.files.map((file) => ({ ...file, key: null, upstream_url: null }))
  await inTransaction(sql, async (transaction) => {
    await transaction`
      UPDATE tasks SET result = ${jsonValue(transaction, { ...result, files })}
      WHERE id = ${id} AND ended_at IS NOT NULL`
    await transaction`DELETE FROM stored_objects WHERE key = ANY (${keys as string[]}::text[])`
  })
}

/**
 * Claims open tasks that were not touched since `before`, the oldest first: starts a new chain, so that earlier
 * messages about them are void, and touches them, so that one caller gets each. Tasks that are being submitted are not
 * claimed: only the submitting process knows whether it still works on them.
 * @param newBefore the same for tasks that no process has had; not earlier than `before`
 */
export async function claimStaleTasks(
  sql: Sql,
  before: number,
  now: number,
  limit: number,
  newBefore = before,
): Promise<{ id: string; chain: number }[]> {
  const rows = await sql<{ id: string; chain: number }[]>`
    UPDATE tasks SET chain = chain + 1, touched_at = CASE state WHEN 'submitting' THEN touched_at ELSE ${now} END
    WHERE id IN (
      SELECT id FROM tasks
      WHERE ended_at IS NULL AND touched_at < ${newBefore}
        AND (touched_at < ${before} OR (state = 'waiting' AND chain = 0))
      ORDER BY touched_at LIMIT ${limit} FOR UPDATE SKIP LOCKED)
    RETURNING id, chain`
  return [...rows]
}

/** Returns ids of open tasks after their deadline, the oldest first, except for those that can only be delivered. */
export async function findOverdueTasks(sql: Sql, now: number, limit: number): Promise<string[]> {
  const rows = await sql<{ id: string }[]>`
    SELECT id FROM tasks WHERE ended_at IS NULL AND state <> 'storing' AND deadline_at <= ${now}
    ORDER BY deadline_at LIMIT ${limit}`
  return rows.map(({ id }) => id)
}

/** Marks tasks as looked after. A transition touches its row as well. */
export async function touchTasks(sql: Sql, ids: readonly string[], now: number): Promise<void> {
  if (ids.length === 0) return
  await sql`
    UPDATE tasks SET touched_at = ${now}
    WHERE id IN (
      SELECT id FROM tasks WHERE id = ANY (${ids as string[]}::text[]) AND ended_at IS NULL AND touched_at < ${now}
      FOR UPDATE SKIP LOCKED)`
}

/** Returns the number of open tasks. */
export async function countOpenTasks(
  sql: Sql,
): Promise<{ kind: TaskKind; state: TaskState; count: number }[]> {
  const rows = await sql<{ kind: TaskKind; state: TaskState; count: bigint }[]>`
    SELECT kind, state, count(*) FROM tasks WHERE ended_at IS NULL GROUP BY kind, state`
  return rows.map(({ kind, state, count }) => ({ kind, state, count: Number(count) }))
}

/** Remembers that an object lasts until then. Of two ends the later one holds. */
export async function recordObjects(
  sql: Sql,
  objects: readonly { readonly key: string; readonly expiresAt: number }[],
): Promise<void> {
  if (objects.length === 0) return
  const ends = new Map<string, number>()
  for (const { key, expiresAt } of objects) ends.set(key, Math.max(expiresAt, ends.get(key) ?? 0))
  await sql`
    INSERT INTO stored_objects (key, expires_at)
    SELECT * FROM unnest(${[...ends.keys()]}::text[], ${[...ends.values()]}::bigint[])
    ON CONFLICT (key) DO UPDATE SET expires_at = greatest(stored_objects.expires_at, excluded.expires_at)`
}

/** Returns objects after their expiry, the oldest first. */
export async function findExpiredObjects(sql: Sql, now: number, limit: number): Promise<string[]> {
  const rows = await sql<{ key: string }[]>`
    SELECT key FROM stored_objects WHERE expires_at <= ${now} ORDER BY expires_at LIMIT ${limit}`
  return rows.map(({ key }) => key)
}

export async function removeObjects(sql: Sql, keys: readonly string[]): Promise<void> {
  if (keys.length === 0) return
  await sql`DELETE FROM stored_objects WHERE key = ANY (${keys as string[]}::text[])`
}
