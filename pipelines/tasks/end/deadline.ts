/** The end of a task whose time is over. */
import type { Task } from '../../../src/postgres/tasks/types.ts'
import { type TaskEngine, type TaskMover, transition } from '../engine.ts'
import { toLostFields } from '../submit/refusal.ts'

/** How long after the deadline a waiting client gets its error: longer than a round trip takes. */
export const WAIT_GRACE_MS = 10_000

/** Results that are there are stored, however late it is; but for a client that waits, which has its error by then. */
export function isOver({ now }: TaskMover, { state, deadlineAt, isAwaited }: Task): boolean {
  if (state !== 'storing') return now() >= deadlineAt
  return isAwaited && now() >= deadlineAt + WAIT_GRACE_MS
}

/** Ends the task, and returns its current row. For a client that has no id yet there is none after a lost submit. */
export const endAtDeadline = (deps: TaskEngine, task: Task): Promise<Task> =>
  task.state === 'submitting' && !task.isEarly
    ? transition(deps, task, 'lost', toLostFields('upstream_timeout'))
    : transition(deps, task, 'deadline')
