/** Tasks and their money: made with their hold, moved with their money effect, each in one transaction. */

import type { WalletTotals } from '../../../schemas/accounts/account.ts'
import { parseWalletId } from '../../../schemas/accounts/budget.ts'
import type { Settlement } from '../../../schemas/call-log/columns.ts'
import { CHANGES_CHANNEL } from '../../../schemas/events/event.ts'
import { printCredits } from '../../../schemas/money.ts'
import { isFinal, TASK_RULES } from '../../../schemas/tasks/task.ts'
import { countStoredTokens } from '../../core/pricing/estimate.ts'
import { accountNotFound } from '../accounts/accounts.ts'
import { recordOperation } from '../accounts/audit-record.ts'
import type { Booking } from '../billing/booking.ts'
import { bookBatch } from '../billing/booking.ts'
import { releaseCap, reserveTaskIn } from '../billing/caps.ts'
import { type Ending, giveBackIn, placeHold } from '../billing/holds.ts'
import type { Queryable, Sql } from '../connection.ts'
import { jsonValue } from '../json.ts'
import { LOCKS } from '../locks.ts'
import { recordEvent } from '../notifications/outbox.ts'
import { bindSubject, findBinding, unbindSubject } from '../requests/idempotency.ts'
import { endConversationCall } from '../requests/stored-conversations.ts'
import { measureBackgroundResponse, noteBackgroundResponse } from '../requests/stored-responses.ts'
import { inTransaction } from '../transaction.ts'
import { recordLost } from './lost-submits.ts'
import { setChanges, type TaskRow, toTask } from './rows.ts'
import type { CreateTaskOutcome, MoveOutcome, NewTask, Task, TaskMove } from './types.ts'

/** Creates row and hold in one transaction. Another call with the same id changes nothing. */
export const createTask = (sql: Sql, task: NewTask): Promise<CreateTaskOutcome> =>
  inTransaction(sql, (transaction) => createIn(transaction, task))

async function createIn(sql: Queryable, task: NewTask): Promise<CreateTaskOutcome> {
  const { isLimited } = await lockFor(sql, task)
  const { id: ref, accountId, hold: amount, idempotency } = task
  const bound = idempotency && (await findBinding(sql, idempotency))
  if (bound !== null && bound.subject !== ref)
    return bound.requestHash.equals(idempotency!.requestHash)
      ? { outcome: 'existing', task: await readTask(sql, bound.subject) }
      : { outcome: 'reused_key' }
  const refusal = isLimited ? await reserveTaskIn(sql, task) : null
  if (refusal !== null) return { outcome: 'over_limit', refusal }
  const { outcome, wallet } = await placeHold(sql, { ref, accountId, amount })
  if (outcome === 'insufficient') {
    if (isLimited) await releaseCap(sql, ref)
    return { outcome, wallet }
  }
  const made = outcome === 'placed' ? await insert(sql, task) : await readTask(sql, task.id)
  return { outcome: 'created', task: made, wallet }
}

/**
 * Locks the account for new tasks, so that one intent finds the task of its duplicate. Only a key with a grant, from its
 * first day to its last, may have a cap.
 */
async function lockFor(sql: Queryable, { accountId, keyId }: NewTask): Promise<{ isLimited: boolean }> {
  const [row] = await sql<{ is_limited: boolean }[]>`
    SELECT EXISTS (SELECT FROM grants WHERE key_id = ${keyId})
      OR EXISTS (SELECT FROM budgets WHERE account_id = ${accountId}) AS is_limited
    FROM wallets WHERE account_id = ${accountId} FOR UPDATE`
  if (row === undefined) throw accountNotFound(accountId)
  return { isLimited: row.is_limited }
}

async function insert(sql: Queryable, task: NewTask): Promise<Task> {
  if (task.idempotency !== null) await bindSubject(sql, task.idempotency, task.id)
  const [row] = await sql<[TaskRow]>`
    INSERT INTO tasks (
      id, kind, account_id, key_id, request_id, model, protocol, job, price, hold, is_early, is_awaited, channel_ids,
      state, submitted_at, deadline_at, touched_at, callback_url, session_id)
    VALUES (
      ${task.id}, ${task.kind}, ${task.accountId}, ${task.keyId}, ${task.requestId}, ${task.model},
      ${task.protocol}, ${jsonValue(sql, task.job)}, ${jsonValue(sql, task.price)}, ${task.hold},
      ${task.isEarly}, ${task.isAwaited}, ${task.channelIds as string[]}::text[], 'waiting', ${task.submittedAt},
      ${task.deadlineAt}, ${task.submittedAt}, ${task.callbackUrl ?? null}, ${task.sessionId})
    RETURNING *`
  return toTask(row)
}

async function readTask(sql: Queryable, id: string): Promise<Task> {
  const [row] = await sql<TaskRow[]>`SELECT * FROM tasks WHERE id = ${id}`
  if (row === undefined) throw new Error(`There is no task ${id}`)
  return toTask(row)
}

export const moveTask = (sql: Sql, move: TaskMove): Promise<MoveOutcome> =>
  inTransaction(sql, (transaction) => moveIn(transaction, move))

async function moveIn(sql: Queryable, move: TaskMove): Promise<MoveOutcome> {
  // Before any row is locked: a booking takes the lock first and the rows then.
  if (move.money !== null) await sql`SELECT pg_advisory_xact_lock(${LOCKS.booking})`
  const [row] = await sql<TaskRow[]>`
    UPDATE tasks SET state = ${move.to}, version = version + 1, touched_at = ${move.at}
      ${setChanges(sql, move.changes)}
    WHERE id = ${move.id} AND version = ${move.version} RETURNING *`
  if (row === undefined) return { outcome: 'stale', task: await readTask(sql, move.id) }
  if (move.audit !== undefined)
    await recordOperation(sql, { ...move.audit, accountId: row.account_id, subjectId: row.id })
  if (move.changes.upstreamId !== undefined) await noteResponse(sql, toTask(row))
  if (move.settlement !== null) await recordEnd(sql, toTask(row), move.settlement)
  if (move.isLost) await recordLost(sql, toTask(row), move.at)
  const wallet = await settle(sql, move)
  // After the wallet, as a new task locks both.
  if (isFinal(move.to) && move.to !== 'succeeded') await unbindSubject(sql, move.id)
  return { outcome: 'moved', task: toTask(row), wallet }
}

/** Records the event of a task's end. A client that was answered that the upstream refused has no task. */
async function recordEnd(sql: Queryable, task: Task, ended: Settlement): Promise<void> {
  await measure(sql, task)
  if (task.state === 'refused' && !task.isEarly) return
  await recordEvent(sql, {
    type: task.state === 'succeeded' ? 'task.succeeded' : 'task.failed',
    accountId: task.accountId,
    subjectId: task.id,
    crossing: null,
    data: {
      task_id: task.id,
      ...(task.job.work === 'response' && { response_id: task.upstreamId }),
      kind: task.kind,
      status: TASK_RULES[task.kind].outward[task.state],
      model: task.model,
      request_id: task.requestId,
      key_id: task.keyId,
      created_at: new Date(task.submittedAt).toISOString(),
      ended_at: new Date(ended.created_at).toISOString(),
      cost: printCredits(BigInt(ended.cost)),
      error: ended.error_code === null ? null : { code: ended.error_code, message: ended.error_message },
    },
  })
}

/** Notes where a response is made that an upstream has taken on. */
async function noteResponse(
  sql: Queryable,
  { id, accountId, job, state, upstreamId, channelId }: Task,
): Promise<void> {
  if (job.work !== 'response' || isFinal(state) || upstreamId === null || channelId === null) return
  await noteBackgroundResponse(sql, { accountId, taskId: id, upstreamId, channelId, days: job.kept_days })
}

/** Notes what a call reads again that goes on with a response, or with the conversation that it belongs to. */
async function measure(sql: Queryable, task: Task): Promise<void> {
  const { id, job, result, accountId, requestId, state, price } = task
  if (job.work !== 'response' || price.unit !== '1M_tokens') return
  const { usage = null, isUsageWhole = false, itemIds = [] } = result?.response ?? {}
  const reported = usage === null || usage.prompt === 0 ? null : usage.prompt + usage.output
  await measureBackgroundResponse(sql, id, reported ?? countStoredTokens(price.model, job.call), {
    ids: itemIds,
    tokens: isUsageWhole && usage !== null ? usage.output : null,
  })
  if (job.conversation === null) return
  const isStored = state !== 'refused'
  await endConversationCall(sql, { accountId, id: job.conversation, requestId, reported, isStored })
}

function findEnding({ money, settlement }: TaskMove): Ending | null {
  if (money === null) return null
  if (money !== 'charge') return { state: 'returned', entry: money, cost: 0n }
  return { state: 'settled', entry: 'release', cost: BigInt(settlement?.cost ?? 0) }
}

/** Moves the money of a transition; returns null where none moved. */
async function settle(sql: Queryable, move: TaskMove): Promise<WalletTotals | null> {
  const ending = findEnding(move)
  if (ending === null) return null
  const returned = await giveBackIn(sql, move.id, ending)
  if (move.settlement === null) return returned
  const { wallets } = await bookCharge(sql, move.settlement)
  // Processes that know a capped key or a budget read what it leaves: the answer below has only the account's wallet.
  for (const { accountId } of wallets) {
    const id = parseWalletId(accountId)?.budgetId ?? accountId
    if (id !== returned.accountId) await sql`SELECT pg_notify(${CHANGES_CHANNEL}, ${`wallet:${id}`})`
  }
  return wallets.find(({ accountId }) => accountId === returned.accountId) ?? returned
}

/**
 * Books the charge. The request may already have a row: one whose commit was not confirmed was answered as failed. A
 * charge is neither lost nor delayed for that: it then gets the task's own id. A free task needs no second row.
 */
async function bookCharge(sql: Queryable, settlement: Settlement): Promise<Booking> {
  const { request_id, task_id, cost } = settlement
  const booking = await bookBatch(sql, [settlement])
  if (booking.booked.length > 0 || BigInt(cost) === 0n) return booking
  if (task_id === null || task_id === request_id)
    throw new Error(`The charge of request ${request_id} cannot be booked`)
  return bookCharge(sql, { ...settlement, request_id: task_id })
}

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
