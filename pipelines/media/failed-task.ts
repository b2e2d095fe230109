/** What a request is answered that waited for the end of a task which did not succeed. See docs/upstream-task.md, "Errors". */
import { Failure } from '../../schemas/failure.ts'
import type { Task } from '../../src/postgres/tasks/types.ts'
import type { UpstreamRefusal } from '../calls/upstream-error.ts'
import { readEnding } from '../tasks/end/settlement.ts'
import { toAwaitedFailure } from '../tasks/order/awaited-failure.ts'

/** Of a task that has failed, expired or been cancelled. */
export const toTaskFailure = (task: Task): Failure | UpstreamRefusal =>
  toAwaitedFailure(task, readEnding(task))

/** Answers a repeated request whose first client was cut off: the files that were made for it have been removed. */
export const filesRemoved = (what: 'images' | 'speech'): Failure =>
  new Failure(
    'idempotency_response_not_cached',
    `What the call with this Idempotency-Key made (${what}) has been removed since. A fresh key makes a new call, which is billed.`,
  )
