/** Records of submits whose outcome is unknown. See docs/failure-modes.md, "Money", row 19. */
import type { Credits } from '../../../schemas/money.ts'
import {
  type LostSubmitEnd,
  type LostSubmitState,
  OPEN_LOST_STATES,
} from '../../../schemas/tasks/lost-submit.ts'
import type { TaskKind } from '../../../schemas/tasks/task.ts'
import { fromRow, type SnakeCase } from '../../core/json/snake-case.ts'
import { recordOperation } from '../accounts/audit-record.ts'
import { Refusal } from '../billing/refusal.ts'
import type { Queryable, Sql } from '../connection.ts'
import { toStorable } from '../json.ts'
import { inTransaction } from '../transaction.ts'
import type { Task } from './types.ts'

/** Instants are epoch milliseconds. */
export interface LostSubmit {
  /** Our reference at the provider. */
  readonly taskId: string
  readonly accountId: string
  readonly requestId: string
  readonly kind: TaskKind
  readonly model: string
  readonly channelId: string | null
  readonly lostAt: number
  readonly reason: string
  readonly state: LostSubmitState
  readonly upstreamId: string | null
  readonly upstreamState: string | null
  readonly checks: number
  readonly checkedAt: number | null
  readonly nextCheckAt: number | null
  readonly cost: Credits | null
  readonly closedAt: number | null
  readonly closedBy: string | null
  readonly closeReason: string | null
}

type Instants = Pick<LostSubmit, 'lostAt' | 'checkedAt' | 'nextCheckAt' | 'closedAt'>

/** Instants are `bigint`. */
type LostSubmitRow = SnakeCase<Omit<LostSubmit, keyof Instants>> & {
  readonly [Name in keyof SnakeCase<Instants>]: Extract<SnakeCase<Instants>[Name], null> | bigint
}

const toEpochMs = (epochMs: bigint | null): number | null => (epochMs === null ? null : Number(epochMs))

const toLostSubmit = (row: LostSubmitRow): LostSubmit => ({
  ...fromRow<Omit<LostSubmit, keyof Instants>>(row),
  lostAt: Number(row.lost_at),
  checkedAt: toEpochMs(row.checked_at),
  nextCheckAt: toEpochMs(row.next_check_at),
  closedAt: toEpochMs(row.closed_at),
})

const columns = (sql: Queryable) => sql`
  task_id, account_id, request_id, kind, model, channel_id, lost_at, reason, state, upstream_id, upstream_state, checks,
  checked_at, next_check_at, cost, closed_at, closed_by, close_reason`

/**
 * Records a submit whose outcome is unknown. Where the upstream has named its task since, that is recorded too,
 * also after it was said to have none.
 */
export async function recordLost(
  sql: Queryable,
  { id, accountId, requestId, kind, model, channelId, errorMessage, upstreamId, upstreamState }: Task,
  now: number,
): Promise<void> {
  const state = upstreamId === null ? 'open' : 'found'
  await sql`
    INSERT INTO lost_submits (
      task_id, account_id, request_id, kind, model, channel_id, lost_at, reason, state, upstream_id, upstream_state,
      next_check_at)
    VALUES (
      ${id}, ${accountId}, ${requestId}, ${kind}, ${model}, ${channelId}, ${now}, ${errorMessage ?? ''}, ${state},
      ${upstreamId}, ${upstreamState}, ${now})
    ON CONFLICT (task_id) DO UPDATE SET
      state = excluded.state, upstream_id = excluded.upstream_id, upstream_state = excluded.upstream_state,
      next_check_at = excluded.next_check_at, cost = NULL, closed_at = NULL
    WHERE excluded.upstream_id IS NOT NULL AND lost_submits.state IN ('open', 'absent')`
}

/** Claims records whose provider is to be asked now: each comes to one caller until the instant `until`. */
export async function claimLostSubmits(
  sql: Sql,
  now: number,
  until: number,
  limit: number,
): Promise<LostSubmit[]> {
  const rows = await sql<LostSubmitRow[]>`
    UPDATE lost_submits SET next_check_at = ${until}
    WHERE task_id IN (
      SELECT task_id FROM lost_submits WHERE closed_at IS NULL AND next_check_at <= ${now}
      ORDER BY next_check_at LIMIT ${limit} FOR UPDATE SKIP LOCKED)
    RETURNING ${columns(sql)}`
  return rows.map(toLostSubmit)
}

/** The provider's answer about a lost submit. */
export interface LostFinding {
  /** Null: it stays open. */
  readonly end: LostSubmitEnd | null
  readonly upstreamId: string | null
  readonly upstreamState: string | null
  readonly cost: Credits | null
  /** Null: it is not asked again. */
  readonly nextCheckAt: number | null
}

/** Records what the provider says. Returns false where the record was closed meanwhile, which stays as it is. */
export async function recordFinding(
  sql: Sql,
  taskId: string,
  { end, upstreamId, upstreamState, cost, nextCheckAt }: LostFinding,
  now: number,
): Promise<boolean> {
  const state = end ?? (upstreamId === null ? 'open' : 'found')
  const { count } = await sql`
    UPDATE lost_submits SET
      state = ${state}, upstream_id = ${upstreamId},
      upstream_state = ${upstreamState === null ? null : toStorable(upstreamState)},
      cost = ${cost}, next_check_at = ${nextCheckAt}, checks = checks + 1, checked_at = ${now},
      closed_at = ${end === null ? null : now}
    WHERE task_id = ${taskId} AND closed_at IS NULL`
  return count > 0
}

export interface LostSubmitQuery {
  /** Those that are not closed. */
  readonly isOpen: boolean
  /** The id before which the list begins; null: at the newest. */
  readonly before: string | null
  readonly limit: number
}

/** Lists records, the newest first. */
export async function listLostSubmits(
  sql: Sql,
  { isOpen, before, limit }: LostSubmitQuery,
): Promise<LostSubmit[]> {
  const rows = await sql<LostSubmitRow[]>`
    SELECT ${columns(sql)} FROM lost_submits
    WHERE true
      ${isOpen ? sql`AND closed_at IS NULL` : sql``}
      ${
        before === null
          ? sql``
          : sql`AND (lost_at, task_id) < (SELECT lost_at, task_id FROM lost_submits WHERE task_id = ${before})`
      }
    ORDER BY lost_at DESC, task_id DESC LIMIT ${limit}`
  return rows.map(toLostSubmit)
}

async function readLost(sql: Queryable, taskId: string): Promise<LostSubmit> {
  const [row] = await sql<LostSubmitRow[]>`
    SELECT ${columns(sql)} FROM lost_submits WHERE task_id = ${taskId}`
  if (row === undefined) throw new Refusal('lost_submit_not_found', `There is no lost submit ${taskId}`)
  return toLostSubmit(row)
}

const closedAlready = ({ taskId, state, closedBy, closeReason }: LostSubmit): Refusal =>
  new Refusal(
    'lost_submit_closed',
    closedBy === null
      ? `Lost submit ${taskId} is closed already: ${state}`
      : `${closedBy} has closed ${taskId} already: ${closeReason}`,
  )

/**
 * Has the provider of an open record asked now.
 * @throws Refusal `lost_submit_not_found`, `lost_submit_closed`
 */
export const checkLostSubmit = (sql: Sql, taskId: string, now: number): Promise<LostSubmit> =>
  inTransaction(sql, async (transaction) => {
    const { count } = await transaction`
      UPDATE lost_submits SET next_check_at = ${now} WHERE task_id = ${taskId} AND closed_at IS NULL`
    const lost = await readLost(transaction, taskId)
    if (count === 0) throw closedAlready(lost)
    const { accountId, state } = lost
    await recordOperation(transaction, {
      action: 'lost_submit.check',
      accountId,
      subjectId: taskId,
      after: { state },
    })
    return lost
  })

/**
 * Closes an open record with what it has cost the operator, with an entry in the audit record.
 * @throws Refusal `lost_submit_not_found`, `lost_submit_closed`
 */
export const closeLostSubmit = (
  sql: Sql,
  {
    taskId,
    cost,
    reason,
  }: { readonly taskId: string; readonly cost: Credits | null; readonly reason: string },
  now: number,
): Promise<LostSubmit> =>
  inTransaction(sql, async (transaction) => {
    const before = await readLost(transaction, taskId)
    const { count } = await transaction`
      UPDATE lost_submits SET
        state = 'closed', cost = ${cost}, closed_at = ${now}, closed_by = audit_actor(), close_reason = ${reason}
      WHERE task_id = ${taskId} AND closed_at IS NULL`
    if (count === 0) throw closedAlready(await readLost(transaction, taskId))
    const { accountId, state, upstreamId } = before
    await recordOperation(transaction, {
      action: 'lost_submit.close',
      accountId,
      subjectId: taskId,
      before: { state, upstream_id: upstreamId },
      after: { reason, cost: cost === null ? null : String(cost) },
    })
    return readLost(transaction, taskId)
  })

/** Returns the number of records that are open. */
export async function countLostSubmits(sql: Sql): Promise<number> {
  const [{ count }] = await sql<[{ count: bigint }]>`
    SELECT count(*) FROM lost_submits WHERE state = ANY (${[...OPEN_LOST_STATES]}::text[])`
  return Number(count)
}

/** Returns how many submits were lost in a window, and the sum of what those have cost of which it is known. */
export async function sumLostSubmits(
  sql: Sql,
  { accountId, from, to }: { readonly accountId: string | null; readonly from: number; readonly to: number },
): Promise<{ submits: number; cost: Credits }> {
  const [{ submits, cost }] = await sql<[{ submits: bigint; cost: bigint }]>`
    SELECT count(*) AS submits, coalesce(sum(cost), 0)::bigint AS cost FROM lost_submits
    WHERE lost_at >= ${from} AND lost_at < ${to}
      ${accountId === null ? sql`` : sql`AND account_id = ${accountId}`}`
  return { submits: Number(submits), cost }
}
