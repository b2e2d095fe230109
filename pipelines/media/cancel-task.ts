/**
 * Cancels a queued task: first at the upstream, then the hold is released in full, but for what a response has used. The
 * hold of an unconfirmed task is released once its upstream has no way to look it up. See docs/api-rules.md, "Tasks".
 */
import { Failure } from '../../schemas/failure.ts'
import type { TaskKind } from '../../schemas/tasks/task.ts'
import { upstreamPriceOf } from '../../src/core/media/pricing.ts'
import type { Task, TaskChanges } from '../../src/postgres/tasks/types.ts'
import type { Caller } from '../stages/authenticate.ts'
import {
  type CancelUpstreamDeps,
  cancelUpstream,
  notCancellable,
  sendOnce,
} from '../tasks/end/cancel-upstream.ts'
import { type TransitionDeps, taskChannel, transitionedTask } from '../tasks/engine.ts'
import { lookupEndsAt } from '../tasks/poll/unconfirmed.ts'
import { findTask, type TaskRecordsDeps, unavailable } from './task-records.ts'

/** Other processes may change the task meanwhile: how often the transition is retried. */
const TRANSITION_TRIES = 4

export interface CancelDeps
  extends TaskRecordsDeps,
    CancelUpstreamDeps,
    Pick<TransitionDeps, 'database' | 'messages' | 'log'> {
  readonly now?: () => number
}

const cancellationPending = (task: Task): Failure =>
  new Failure(
    'task_not_cancellable',
    'The provider has not confirmed the task, and is still asked whether it has it. Unless it answers, the task can be ' +
      `cancelled from ${new Date(lookupEndsAt(task)).toISOString()} on.`,
  )

/**
 * Cancels a task of the caller and returns it.
 * @throws Failure `not_found`, `task_not_cancellable`, `upstream_*`, `service_unavailable`
 */
export const cancelTask = async (
  deps: CancelDeps,
  caller: Caller,
  kind: TaskKind,
  id: string,
): Promise<Task> => cancelFoundTask(deps, await findTask(deps, caller, kind, id))

/**
 * Cancels a task and returns it.
 * @throws Failure `task_not_cancellable`, `upstream_*`, `service_unavailable`
 */
export async function cancelFoundTask(deps: Omit<CancelDeps, 'tasks'>, found: Task): Promise<Task> {
  let task = found
  /** What the upstream says of the task that it has cancelled; null until it has. */
  let calledOff: TaskChanges | null = null
  for (let tries = 0; tries < TRANSITION_TRIES; tries++) {
    // After the upstream cancelled the task, a concurrent poll may have recorded just that.
    if (calledOff === null && task.state === 'queued') calledOff = await cancelUpstream(deps, task)
    if (task.state === 'unconfirmed') {
      const confirmedTask = await confirmed(deps, task)
      if (confirmedTask !== task) {
        task = confirmedTask
        continue
      }
    }
    const isMovable =
      task.state === 'waiting' || task.state === 'unconfirmed' || (calledOff !== null && isWithUpstream(task))
    if (!isMovable) break
    task = await cancelled(deps, task, calledOff ?? {})
    if (task.state === 'cancelled') return task
  }
  if (calledOff !== null && task.state === 'cancelled') return task
  throw notCancellable()
}

const isWithUpstream = ({ state }: Task): boolean => state === 'queued' || state === 'running'

const cancelled = (
  { database, messages, log, now = Date.now, catalog }: Omit<CancelDeps, 'tasks'>,
  task: Task,
  changes: TaskChanges,
): Promise<Task> => {
  const upstreamPrice = upstreamPriceOf(catalog().config, task)
  const move = { database, messages, log, now }
  return transitionedTask(move, task, 'cancelled', changes, { upstreamPrice }).catch(unavailable)
}

/**
 * Asks the upstream once whether it has the task. Returns the task itself where no look-up exists, or its upstream
 * certainly has not got it.
 * @throws Failure while the upstream may still say that it has it
 */
async function confirmed(deps: Omit<CancelDeps, 'tasks'>, task: Task): Promise<Task> {
  const { now = Date.now, database, messages, log } = deps
  const followed = taskChannel(deps, task)
  const find = followed?.adapter.follow?.find
  if (followed === null || find === undefined) return task
  const request = find.request(followed.route.channel, task.id, task.job)
  // Who does not answer is as good as one that says nothing.
  const found = await sendOnce(deps, request).then(find.read, () => null)
  if (found?.type === 'accepted') {
    const { upstreamId, upstreamState, isRunning } = found
    const changes = { upstreamId, upstreamState, acceptedAt: now() }
    const move = { database, messages, log, now }
    return transitionedTask(move, task, isRunning ? 'started' : 'accepted', changes).catch(unavailable)
  }
  if (found?.type === 'produced') throw notCancellable()
  if (found?.type === 'refused' || now() >= lookupEndsAt(task)) return task
  throw cancellationPending(task)
}
