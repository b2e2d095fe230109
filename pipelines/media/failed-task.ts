/** What a request is answered that waited for the end of a task which did not succeed. See docs/upstream-task.md, "Errors". */
import type { Failure } from '../../schemas/failure.ts'
import type { Task } from '../../src/postgres/tasks/types.ts'
import type { UpstreamRefusal } from '../chat/forward/upstream-error.ts'
import { endingOf } from '../tasks/end/settlement.ts'
import { failureOfAwaited } from '../tasks/order/awaited-failure.ts'

/** Of a task that has failed, expired or been cancelled. */
export const failureOf = (task: Task): Failure | UpstreamRefusal => failureOfAwaited(task, endingOf(task))
