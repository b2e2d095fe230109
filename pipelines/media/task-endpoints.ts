/** Shows, cancels and lists the tasks of one kind. See docs/api-rules.md, "Tasks". */
import type { TaskKind } from '../../schemas/tasks/task.ts'
import type { Handler } from '../../src/http/handler.ts'
import type { Task } from '../../src/postgres/tasks/types.ts'
import type { CallAccess } from '../calls/authenticate.ts'
import { type CancelledTasks, cancelTask } from './cancel-task.ts'
import { answerForFree } from './free-call.ts'
import { findTask, listTasks, type TaskFinder, type TaskRecords } from './task-records.ts'

/** Prints a task for its account. */
type PrintTask = (task: Task) => object | Promise<object>

export interface MediaTasks extends CancelledTasks {
  readonly tasks: TaskRecords
}

/** Shows the task that the path ends with. */
export const showTask = (
  access: CallAccess,
  records: TaskFinder,
  kind: TaskKind,
  print: PrintTask,
): Handler =>
  answerForFree(access, async (caller) =>
    print(await findTask(records, caller, kind, caller.request.params.id)),
  )

export const taskEndpoints = (access: CallAccess, deps: MediaTasks, kind: TaskKind, print: PrintTask) => ({
  show: showTask(access, deps.tasks, kind, print),
  cancel: answerForFree(access, async (caller) =>
    print(await cancelTask(deps, caller, kind, caller.request.params.id)),
  ),
  list: answerForFree(access, async (caller) => {
    const { tasks, page } = await listTasks(deps.tasks, caller, kind)
    return { object: 'list', data: await Promise.all(tasks.map((task) => print(task))), ...page }
  }),
})
