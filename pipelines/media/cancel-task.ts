/**
 * Cancels a queued task: first at the upstream, then releases the hold, except for what a response has used.
 * See docs/api-rules.md, "Tasks".
 */
import type { TaskKind } from '../../schemas/tasks/task.ts'
import { findUpstreamPrice } from '../../src/core/media/pricing.ts'
import type { Task, TaskChanges } from '../../src/postgres/tasks/types.ts'
import type { Caller } from '../calls/authenticate.ts'
import type { PipelineLog } from '../settlement/retrying.ts'
import { cancelUpstream, notCancellable } from '../tasks/end/cancel-upstream.ts'
import { type TaskTransitions, type TaskUpstreams, transition } from '../tasks/engine.ts'
import type { TaskNotices } from '../tasks/worker/messages.ts'
import { findTask, type TaskFinder, throwUnavailable } from './task-records.ts'

/** Other processes may change the task in between. */
const TRANSITION_TRIES = 4

/** What cancelling a task needs. */
export interface TaskCanceller extends TaskUpstreams {
  readonly database: { readonly tasks: TaskTransitions }
  readonly messages: TaskNotices
  readonly log: PipelineLog
  readonly now?: () => number
}

export interface CancelledTasks extends TaskCanceller {
  readonly tasks: TaskFinder
}

/**
 * Cancels a task of the caller and returns it.
 * @throws Failure `not_found`, `task_not_cancellable`, `upstream_*`, `service_unavailable`
 */
export const cancelTask = async (
  deps: CancelledTasks,
  caller: Caller,
  kind: TaskKind,
  id: string,
): Promise<Task> => cancelFoundTask(deps, await findTask(deps.tasks, caller, kind, id))

/**
 * Cancels a task and returns it.
 * @throws Failure `task_not_cancellable`, `upstream_*`, `service_unavailable`
 */
export async function cancelFoundTask(deps: TaskCanceller, found: Task): Promise<Task> {
  let task = found
  /** The upstream's answer once it has cancelled the task. */
  let calledOff: TaskChanges | null = null
  for (let tries = 0; tries < TRANSITION_TRIES; tries++) {
    // After the upstream cancelled the task, a concurrent poll may have recorded that already.
    if (calledOff === null && task.state === 'queued') calledOff = await cancelUpstream(deps, task)
    const isMovable = task.state === 'waiting' || (calledOff !== null && isWithUpstream(task))
    if (!isMovable) break
    task = await markCancelled(deps, task, calledOff ?? {})
    if (task.state === 'cancelled') return task
  }
  if (calledOff !== null && task.state === 'cancelled') return task
  throw notCancellable()
}

const isWithUpstream = ({ state }: Task): boolean => state === 'queued' || state === 'running'

const markCancelled = (
  { database, messages, log, now = Date.now, catalog }: TaskCanceller,
  task: Task,
  changes: TaskChanges,
): Promise<Task> => {
  const upstreamPrice = findUpstreamPrice(catalog().config, task)
  const move = { database, messages, log, now }
  return transition(move, task, 'cancelled', changes, { upstreamPrice }).catch(throwUnavailable)
}
