/** What an endpoint of media asks of the task engine, once it has read and checked its request. */
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
  /** Family of the endpoint, as the call log names protocols. */
  readonly protocol: string
  readonly model: Model
  readonly job: MediaJob
  readonly price: TaskPrice
  /** Kept back from the balance at once. */
  readonly hold: Credits
  /** Ways to an upstream that does this work, in order of priority; at least one. No other channel is tried. */
  readonly routes: readonly Route[]
  /**
   * What the answer waits for. `accepted`: an upstream has it, or refuses it (with upstreams that answer with the result
   * itself there is nothing to wait for, and the id goes out at once). `ended`: its end, at most the deadline.
   */
  readonly until: 'accepted' | 'ended'
  /** From the request to the end of time for it. Default: the kind's own. */
  readonly deadlineMs?: number
  /** The address to which the end of the task is posted; absent: none. */
  readonly callbackUrl?: string
  /** Its Idempotency-Key, which makes one task; null without one. */
  readonly idempotency: IdempotencyClaim | null
}
