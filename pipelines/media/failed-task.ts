/** What a request is answered that waited for the end of a task which did not succeed. See docs/upstream-task.md, "Errors". */
import type { Failure } from '../../schemas/failure.ts'
import type { Task } from '../../src/postgres/tasks/types.ts'
import { failureOfAwaited } from '../tasks/awaited-failure.ts'
import { endingOf } from '../tasks/task-record.ts'

/** Of a task that has failed, expired or been cancelled. */
export const failureOf = (task: Task): Failure => failureOfAwaited(task, endingOf(task))
