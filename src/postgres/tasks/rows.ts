/** Converts tasks between their rows and the types of the service. */
import type { AttemptRow } from '../../../schemas/call-log/row.ts'
import type { MediaJob, TaskResult } from '../../../schemas/media/job.ts'
import type { TaskPrice } from '../../../schemas/media/price.ts'
import type { Credits } from '../../../schemas/money.ts'
import type { TaskKind, TaskState } from '../../../schemas/tasks/task.ts'
import type { Queryable } from '../connection.ts'
import { jsonValue, storable } from '../json.ts'
import type { Task, TaskChanges } from './types.ts'

export interface TaskRow {
  readonly id: string
  readonly kind: TaskKind
  readonly account_id: string
  readonly key_id: string
  readonly request_id: string
  readonly model: string
  readonly protocol: string
  readonly job: MediaJob
  readonly price: TaskPrice
  readonly hold: Credits
  readonly is_early: boolean
  readonly is_awaited: boolean
  readonly channel_ids: string[]
  readonly state: TaskState
  readonly version: number
  readonly chain: number
  readonly channel_id: string | null
  readonly upstream_model: string | null
  readonly upstream_id: string | null
  readonly upstream_state: string | null
  readonly result: TaskResult | null
  readonly error_code: string | null
  readonly error_message: string | null
  readonly refused_status: number | null
  readonly attempts: AttemptRow[]
  readonly cost: Credits | null
  readonly submitted_at: bigint
  readonly accepted_at: bigint | null
  readonly ended_at: bigint | null
  readonly deadline_at: bigint
  readonly deleted_at: bigint | null
  readonly touched_at: bigint
  readonly intent_hash: Buffer | null
}

const instant = (epochMs: bigint | null): number | null => (epochMs === null ? null : Number(epochMs))

export const taskOfRow = (row: TaskRow): Task => ({
  id: row.id,
  kind: row.kind,
  accountId: row.account_id,
  keyId: row.key_id,
  requestId: row.request_id,
  model: row.model,
  protocol: row.protocol,
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
  acceptedAt: instant(row.accepted_at),
  endedAt: instant(row.ended_at),
  deadlineAt: Number(row.deadline_at),
  deletedAt: instant(row.deleted_at),
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
export function assignments(sql: Queryable, changes: TaskChanges) {
  let text = sql``
  for (const [field, column] of Object.entries(COLUMNS) as [keyof TaskChanges, string][]) {
    const value = changes[field]
    if (value === undefined) continue
    const stored =
      value !== null && typeof value === 'object'
        ? jsonValue(sql, value)
        : sql`${typeof value === 'string' ? storable(value) : value}`
    text = sql`${text}, ${sql(column)} = ${stored}`
  }
  return text
}
