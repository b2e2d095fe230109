/** Tasks as PostgreSQL keeps them. The row is the truth; each transition names the version that was read. */

import type { WalletTotals } from '../../../schemas/accounts/account.ts'
import type { SpendRefusal } from '../../../schemas/accounts/budget.ts'
import type { Settlement } from '../../../schemas/call-log/columns.ts'
import type { AttemptRow } from '../../../schemas/call-log/row.ts'
import type { MediaJob, TaskResult } from '../../../schemas/media/job.ts'
import type { TaskPrice } from '../../../schemas/media/price.ts'
import type { Credits } from '../../../schemas/money.ts'
import type { MoneyEffect, TaskEvent, TaskKind, TaskState } from '../../../schemas/tasks/task.ts'
import type { AuditedOperation } from '../accounts/audit-record.ts'
import type { IdempotencyClaim } from '../requests/idempotency.ts'
import type { TimeRange } from '../time-range.ts'

/** One try at the submit. */
export interface TaskAttempt extends AttemptRow {
  /** The header of a refusal, as the upstream wrote it. */
  readonly retry_after?: string
  /** Fields of the upstream's refusal besides its message. */
  readonly extras?: { readonly param?: string; readonly details?: unknown }
}

/** Instants are epoch milliseconds. */
export interface Task {
  readonly id: string
  readonly kind: TaskKind
  readonly accountId: string
  readonly keyId: string
  readonly requestId: string
  /** Canonical model id. */
  readonly model: string
  /** Family of the endpoint that was called, as the call log names protocols: `images`, `videos`, `music` … */
  readonly protocol: string
  /** The session that its client named. */
  readonly sessionId: string | null
  readonly job: MediaJob
  /** As it held when the request came. */
  readonly price: TaskPrice
  readonly hold: Credits
  /** True when the client already has its id, whatever the upstream answers to the submit. */
  readonly isEarly: boolean
  /** The request that made it waits for its end: no job that outlives its request. */
  readonly isAwaited: boolean
  /** Channels that it may be submitted to, in order of priority. */
  readonly channelIds: readonly string[]
  readonly state: TaskState
  readonly version: number
  readonly channelId: string | null
  readonly upstreamModel: string | null
  readonly upstreamId: string | null
  /** The upstream's own word. */
  readonly upstreamState: string | null
  readonly result: TaskResult | null
  readonly errorCode: string | null
  readonly errorMessage: string | null
  /** The HTTP status with which the submit was refused; null where none was. */
  readonly refusedStatus: number | null
  readonly attempts: readonly TaskAttempt[]
  readonly cost: Credits | null
  readonly submittedAt: number
  /** When the upstream took it on. */
  readonly acceptedAt: number | null
  readonly endedAt: number | null
  readonly deadlineAt: number
  /** From here on its record is not shown. */
  readonly deletedAt: number | null
  /** Time of the last transition or touch. */
  readonly touchedAt: number
  /** The number that a message about it must carry: messages with a lower one are obsolete. */
  readonly chain: number
}

export interface NewTask
  extends Pick<
    Task,
    | 'id'
    | 'kind'
    | 'accountId'
    | 'keyId'
    | 'requestId'
    | 'model'
    | 'protocol'
    | 'sessionId'
    | 'job'
    | 'price'
    | 'hold'
    | 'isEarly'
    | 'isAwaited'
    | 'channelIds'
    | 'submittedAt'
    | 'deadlineAt'
  > {
  /** The address to which the end of the task is posted; absent: none. */
  readonly callbackUrl?: string
  /** The same key makes one task, whatever is cut or tried again. Null: the request has none. */
  readonly idempotency: IdempotencyClaim | null
}

export type CreateTaskOutcome =
  | { readonly outcome: 'created'; readonly task: Task; readonly wallet: WalletTotals }
  /** The intent was carried out already, and did not fail. */
  | { readonly outcome: 'existing'; readonly task: Task }
  /** The key belongs to another request. */
  | { readonly outcome: 'reused_key' }
  | { readonly outcome: 'insufficient'; readonly wallet: WalletTotals }
  /** The rest of the key's spend cap, or of a budget, does not cover the hold. */
  | { readonly outcome: 'over_limit'; readonly refusal: SpendRefusal }

/** Columns that a transition writes besides the state. Absent ones stay unchanged. */
export type TaskChanges = Partial<
  Pick<
    Task,
    | 'channelId'
    | 'upstreamModel'
    | 'upstreamId'
    | 'upstreamState'
    | 'result'
    | 'errorCode'
    | 'errorMessage'
    | 'refusedStatus'
    | 'attempts'
    | 'acceptedAt'
    | 'cost'
    | 'endedAt'
  >
>

export interface TaskMove {
  readonly id: string
  /** The version that the mover has read: another one moves nothing. */
  readonly version: number
  readonly event: TaskEvent
  readonly to: TaskState
  readonly changes: TaskChanges
  /** The cell's effect, and with a charge or the end of a task the row of the call log, in the same transaction. */
  readonly money: MoneyEffect | null
  readonly settlement: Settlement | null
  /** When. */
  readonly at: number
  /** True where its submit is lost, or its upstream has it after all: operators get a record of it. */
  readonly isLost?: boolean
  /** Recorded in the audit with the move, where an operator makes it. */
  readonly audit?: Pick<AuditedOperation, 'action' | 'before' | 'after'>
}

export type MoveOutcome =
  | { readonly outcome: 'moved'; readonly task: Task; readonly wallet: WalletTotals | null }
  /** Another process changed it: this is the current row. */
  | { readonly outcome: 'stale'; readonly task: Task }

export interface TaskListQuery {
  readonly accountId: string
  readonly kind: TaskKind
  /** Null: all. `refused` ones are never listed, unless `isEarly`. */
  readonly states: readonly TaskState[] | null
  /** Only those older than the task of this id; null or left out: all. */
  readonly before?: string | null
  readonly limit: number
}

/** Tasks of all accounts, as operators search them. Null: all. */
export interface AllTasksQuery extends TimeRange {
  readonly accountId: string | null
  readonly kind: TaskKind | null
  readonly states: readonly TaskState[] | null
  /** Only those that have not ended. */
  readonly isOpen: boolean
  /** Only those that their account sees. Default: all. */
  readonly isShown?: boolean
  /** Only those submitted before the task of this id. */
  readonly before: string | null
  readonly limit: number
}

/** Asynchronous jobs that have not ended. Null: all. */
export interface OpenJobQuery {
  readonly accountId: string
  readonly keyId: string | null
  readonly models: readonly string[] | null
  readonly kinds: readonly TaskKind[] | null
  /** An id of a task or of the request that made it. */
  readonly ref: string | null
  readonly sessionId: string | null
  readonly limit: number
}

/** With the names of the key that made it, as they are now. */
export interface OpenJob {
  readonly task: Task
  readonly keyName: string
  readonly keyPrefix: string
}
