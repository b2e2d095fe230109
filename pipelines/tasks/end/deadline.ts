/** The end of a task whose time is over. */
import type { Task } from '../../../src/postgres/tasks/types.ts'
import { type EngineDeps, transitionedTask } from '../engine.ts'
import { findUpstream } from '../poll/poll-upstream.ts'
import { endsAt } from '../poll/unconfirmed.ts'

/** The client that waits for a task has its error so long after the deadline: beyond what the way there and back takes. */
export const WAIT_GRACE_MS = 10_000

/** Results that are there are stored, however late it is; but for a client that waits, which has its error by then. */
export function isOver({ now }: Pick<EngineDeps, 'now'>, task: Task): boolean {
  if (task.state !== 'storing') return now() >= endsAt(task)
  return task.isAwaited && now() >= task.deadlineAt + WAIT_GRACE_MS
}

/**
 * Ends the task, and returns its current row. An unconfirmed one is looked up once more: the gateway itself may have been
 * away, and the upstream may have the task after all.
 */
export async function endAtDeadline(deps: EngineDeps, task: Task): Promise<Task> {
  const found = task.state === 'unconfirmed' ? await findUpstream(deps, task) : null
  const last = found?.task ?? task
  return last.version === task.version ? transitionedTask(deps, task, 'deadline') : last
}
