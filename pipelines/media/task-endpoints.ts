/** The endpoints that show, cancel and list the tasks of one kind. See docs/api-rules.md, "Tasks". */
import type { TaskKind } from '../../schemas/tasks/task.ts'
import type { Handler } from '../../src/http/handler.ts'
import type { Task } from '../../src/postgres/tasks/types.ts'
import { type CancelDeps, cancelTask } from './cancel-task.ts'
import { type FreeCallDeps, freeCall } from './free-call.ts'
import { findTask, listTasks, type TaskRecordsDeps } from './task-records.ts'

/** Returns a task as its account reads it. */
type PrintTask = (task: Task) => object | Promise<object>

export type TaskEndpointDeps = FreeCallDeps & CancelDeps

/** Shows the task that the path ends with. */
export const showTask = (deps: FreeCallDeps & TaskRecordsDeps, kind: TaskKind, print: PrintTask): Handler =>
  freeCall(deps, async (caller) => print(await findTask(deps, caller, kind, caller.request.params.id)))

export const taskEndpoints = (deps: TaskEndpointDeps, kind: TaskKind, print: PrintTask) => ({
  show: showTask(deps, kind, print),
  cancel: freeCall(deps, async (caller) =>
    print(await cancelTask(deps, caller, kind, caller.request.params.id)),
  ),
  list: freeCall(deps, async (caller) => {
    const { tasks, page } = await listTasks(deps, caller, kind)
    return { object: 'list', data: await Promise.all(tasks.map((task) => print(task))), ...page }
  }),
})
