/** Finds all rows about one call or task in PostgreSQL. Each query uses an index. */
import type { Account, LedgerEntry } from '../../../schemas/accounts/account.ts'
import type { Credits } from '../../../schemas/money.ts'
import { type AccountRow, toAccount } from '../accounts/accounts.ts'
import { readNamedKeys } from '../accounts/keys.ts'
import { type EntryRow, toLedgerEntry } from '../billing/wallet-rows.ts'
import type { Queryable, Sql } from '../connection.ts'
import { readTakenBefore } from '../partitions/make.ts'
import { type TaskRow, toTask } from '../tasks/rows.ts'
import type { Task } from '../tasks/types.ts'
import { inTransaction, ONE_INSTANT } from '../transaction.ts'
import { findStoredCall, type OperatorCall } from './calls.ts'

interface HoldRecord {
  readonly ref: string
  readonly accountId: string
  readonly amount: Credits
  readonly state: 'open' | 'settled' | 'returned'
  readonly charged: Credits
  readonly createdAt: Date
  readonly closedAt: Date | null
}

/** A settlement that could not be booked, kept whole. */
interface RefusedSettlement {
  readonly reason: string
  readonly settlement: string
  readonly refusedAt: Date
}

/** `copying`: its range is claimed and not known to be in the call log permanently. */
export type CopyState = 'copied' | 'copying' | 'waiting'

export interface FoundCall {
  readonly call: OperatorCall | null
  /** The settings and the outcome of the call, as JSON text; null without any. */
  readonly detail: string | null
  /** State of the copy of its row to the call log; null without a row. */
  readonly copy: CopyState | null
  readonly account: Account | null
  /** In the order of booking. */
  readonly entries: LedgerEntry[]
  readonly hold: HoldRecord | null
  /** The task by its id or its request's; until it ends there is no row of it. */
  readonly task: Task | null
  /** The name of the task's key. */
  readonly taskKeyName: string | null
  readonly refused: RefusedSettlement | null
  /** The instant before which retention removed calls, if the id is older than that; otherwise null. */
  readonly keptSince: Date | null
}

const NUMERIC_ID = /^[1-9]\d{0,15}$/

/**
 * Returns the facts about a request id, a task id or the numeric id of a row. All are read at one instant, so that the
 * row and its entries match.
 */
export const findCall = (sql: Sql, ref: string): Promise<FoundCall> =>
  inTransaction(sql, (snapshot) => readFound(snapshot, ref), ONE_INSTANT)

async function readFound(sql: Queryable, ref: string): Promise<FoundCall> {
  const call =
    (await findStoredCall(sql, ref)) ?? (NUMERIC_ID.test(ref) ? await findStoredCall(sql, BigInt(ref)) : null)
  const task = await findTask(sql, call?.task_id ?? ref)
  const name = task?.id ?? call?.task_id ?? call?.request_id ?? ref
  const entries = await listEntries(sql, name)
  const hold = await findHold(sql, name)
  const accountId = call?.account_id ?? task?.accountId ?? hold?.accountId ?? entries[0]?.accountId
  return {
    call,
    detail: call === null ? null : await readDetail(sql, call.id),
    copy: call === null ? null : await readCopyState(sql, BigInt(call.id)),
    account: accountId === undefined ? null : await findAccount(sql, accountId),
    entries,
    hold,
    task,
    taskKeyName:
      task === null ? null : ((await readNamedKeys(sql, [task.keyId])).get(task.keyId)?.name ?? null),
    refused: await findRefused(sql, call?.request_id ?? ref),
    keptSince: await readTakenBefore(sql, 'usage_rows', ref),
  }
}

async function findTask(sql: Queryable, ref: string): Promise<Task | null> {
  const [row] = await sql<TaskRow[]>`SELECT * FROM tasks WHERE id = ${ref} OR request_id = ${ref} LIMIT 1`
  return row === undefined ? null : toTask(row)
}

async function readDetail(sql: Queryable, id: number): Promise<string | null> {
  const [row] = await sql<{ detail: string | null }[]>`SELECT detail FROM usage_rows WHERE id = ${id}`
  return row?.detail ?? null
}

async function readCopyState(sql: Queryable, id: bigint): Promise<CopyState> {
  const [mark] = await sql<[{ copied_upto: bigint; claimed_upto: bigint | null }]>`
    SELECT copied_upto, claimed_upto FROM usage_copy`
  if (id <= mark.copied_upto) return 'copied'
  return mark.claimed_upto !== null && id <= mark.claimed_upto ? 'copying' : 'waiting'
}

async function findAccount(sql: Queryable, id: string): Promise<Account | null> {
  const [row] = await sql<AccountRow[]>`SELECT * FROM accounts WHERE id = ${id}`
  return row === undefined ? null : toAccount(row)
}

async function listEntries(sql: Queryable, ref: string): Promise<LedgerEntry[]> {
  const rows = await sql<EntryRow[]>`SELECT * FROM ledger_entries WHERE ref = ${ref} ORDER BY id`
  return rows.map(toLedgerEntry)
}

async function findHold(sql: Queryable, ref: string): Promise<HoldRecord | null> {
  const [row] = await sql<HoldRecord[]>`
    SELECT ref, account_id AS "accountId", amount, state, charged, created_at AS "createdAt",
      closed_at AS "closedAt"
    FROM holds WHERE ref = ${ref}`
  return row ?? null
}

async function findRefused(sql: Queryable, requestId: string): Promise<RefusedSettlement | null> {
  const [row] = await sql<RefusedSettlement[]>`
    SELECT reason, settlement, refused_at AS "refusedAt"
    FROM settlements_refused WHERE request_id = ${requestId}`
  return row ?? null
}
