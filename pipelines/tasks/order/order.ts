/** What a media endpoint orders from the task engine, once it has read and checked its request. */
import type { MediaJob } from '../../../schemas/media/job.ts'
import type { TaskPrice } from '../../../schemas/media/price.ts'
import type { Credits } from '../../../schemas/money.ts'
import type { TaskKind } from '../../../schemas/tasks/task.ts'
import type { Model, Route } from '../../../src/core/routing/catalog.ts'
import type { IdempotencyClaim } from '../../../src/postgres/requests/idempotency.ts'
import type { Caller } from '../../calls/authenticate.ts'

export interface TaskOrder {
  readonly caller: Caller
  readonly kind: TaskKind
  /** The endpoint's family, in the call log's column for the protocol. */
  readonly protocol: string
  readonly model: Model
  readonly job: MediaJob
  readonly price: TaskPrice
  /** Held from the balance at once. */
  readonly hold: Credits
  /** Routes to upstreams that do this work, by priority; at least one. No other channel is tried. */
  readonly routes: readonly Route[]
  /**
   * What the answer waits for. `accepted`: an upstream has it, or refuses it (with upstreams that answer with the result
   * itself there is nothing to wait for, and the id goes out at once). `ended`: its end, at most the deadline.
   */
  readonly until: 'accepted' | 'ended'
  /** The time from the request to the deadline. Default: that of the kind. */
  readonly deadlineMs?: number
  /** The end of the task is posted to this address. */
  readonly callbackUrl?: string
  /** Its Idempotency-Key, which makes one task; null without one. */
  readonly idempotency: IdempotencyClaim | null
}
