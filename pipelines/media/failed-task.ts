/** The answer to a request that waited for a task which did not succeed. See docs/upstream-task.md, "Errors". */
import { Failure } from '../../schemas/failure.ts'
import type { Task } from '../../src/postgres/tasks/types.ts'
import type { UpstreamRefusal } from '../calls/upstream-error.ts'
import { readEnding } from '../tasks/end/settlement.ts'
import { toAwaitedFailure } from '../tasks/order/awaited-failure.ts'

/** Returns the error of a task that has failed, expired or been cancelled. */
export const toTaskFailure = (task: Task): Failure | UpstreamRefusal =>
  toAwaitedFailure(task, readEnding(task))

/** Answers a repeated request if the files of the first one have been removed. */
export const filesRemoved = (what: 'images' | 'speech'): Failure =>
  new Failure(
    'idempotency_response_not_cached',
    `What the call with this Idempotency-Key made (${what}) has been removed since. A fresh key makes a new call, which is billed.`,
  )
