/** The end of a task whose time is over. */
import type { Task } from '../../../src/postgres/tasks/types.ts'
import { type EngineDeps, transitionedTask } from '../engine.ts'
import { findUpstream } from '../poll/poll-upstream.ts'
import { endsAt } from '../poll/unconfirmed.ts'

/** Results that are there are stored, however late it is. */
export const isOver = ({ now }: EngineDeps, task: Task): boolean =>
  task.state !== 'storing' && now() >= endsAt(task)

/**
 * Ends the task, and returns its current row. An unconfirmed one is looked up once more: the gateway itself may have been
 * away, and the upstream may have the task after all.
 */
export async function endAtDeadline(deps: EngineDeps, task: Task): Promise<Task> {
  const found = task.state === 'unconfirmed' ? await findUpstream(deps, task) : null
  const last = found?.task ?? task
  return last.version === task.version ? transitionedTask(deps, task, 'deadline') : last
}
