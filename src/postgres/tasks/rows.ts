/** Converts tasks between their rows and the types of the service. */
import type { SnakeCase } from '../../core/json/snake-case.ts'
import type { Queryable } from '../connection.ts'
import { jsonValue, toStorable } from '../json.ts'
import type { Task, TaskChanges } from './types.ts'

type Instants = Pick<
  Task,
  'submittedAt' | 'acceptedAt' | 'endedAt' | 'deadlineAt' | 'deletedAt' | 'touchedAt'
>

/** Instants are `bigint`. */
export type TaskRow = SnakeCase<Omit<Task, keyof Instants>> & {
  readonly [Name in keyof SnakeCase<Instants>]: Extract<SnakeCase<Instants>[Name], null> | bigint
}

const toEpochMs = (epochMs: bigint | null): number | null => (epochMs === null ? null : Number(epochMs))

export const toTask = (row: TaskRow): Task => ({
  id: row.id,
  kind: row.kind,
  accountId: row.account_id,
  keyId: row.key_id,
  requestId: row.request_id,
  model: row.model,
  protocol: row.protocol,
  sessionId: row.session_id,
  job: row.job,
  price: row.price,
  hold: row.hold,
  isEarly: row.is_early,
  isAwaited: row.is_awaited,
  channelIds: row.channel_ids,
  state: row.state,
  version: row.version,
  chain: row.chain,
  channelId: row.channel_id,
  upstreamModel: row.upstream_model,
  upstreamId: row.upstream_id,
  upstreamState: row.upstream_state,
  result: row.result,
  errorCode: row.error_code,
  errorMessage: row.error_message,
  refusedStatus: row.refused_status,
  attempts: row.attempts,
  cost: row.cost,
  submittedAt: Number(row.submitted_at),
  acceptedAt: toEpochMs(row.accepted_at),
  endedAt: toEpochMs(row.ended_at),
  deadlineAt: Number(row.deadline_at),
  deletedAt: toEpochMs(row.deleted_at),
  touchedAt: Number(row.touched_at),
})

const COLUMNS: { readonly [Field in keyof Required<TaskChanges>]: string } = {
  channelId: 'channel_id',
  upstreamModel: 'upstream_model',
  upstreamId: 'upstream_id',
  upstreamState: 'upstream_state',
  result: 'result',
  errorCode: 'error_code',
  errorMessage: 'error_message',
  refusedStatus: 'refused_status',
  attempts: 'attempts',
  acceptedAt: 'accepted_at',
  cost: 'cost',
  endedAt: 'ended_at',
}

/** Returns `column = value` for each change, each with a comma before it. */
export function setChanges(sql: Queryable, changes: TaskChanges) {
  let text = sql``
  for (const [field, column] of Object.entries(COLUMNS) as [keyof TaskChanges, string][]) {
    const value = changes[field]
    if (value === undefined) continue
    const stored =
      value !== null && typeof value === 'object'
        ? jsonValue(sql, value)
        : sql`${typeof value === 'string' ? toStorable(value) : value}`
    text = sql`${text}, ${sql(column)} = ${stored}`
  }
  return text
}
