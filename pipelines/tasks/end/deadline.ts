/** Ends a task at its deadline. */
import type { Task } from '../../../src/postgres/tasks/types.ts'
import { type TaskEngine, type TaskMover, transition } from '../engine.ts'
import { toLostFields } from '../submit/refusal.ts'

/** A waiting client gets its error this long after the deadline: longer than a round trip takes. */
export const WAIT_GRACE_MS = 10_000

/** Results that have arrived are stored even after the deadline, unless a client waited: it has its error by then. */
export function isOver({ now }: TaskMover, { state, deadlineAt, isAwaited }: Task): boolean {
  if (state !== 'storing') return now() >= deadlineAt
  return isAwaited && now() >= deadlineAt + WAIT_GRACE_MS
}

/** Ends the task and returns its current row. */
export const endAtDeadline = (deps: TaskEngine, task: Task): Promise<Task> =>
  task.state === 'submitting' && !task.isEarly
    ? transition(deps, task, 'lost', toLostFields('upstream_timeout'))
    : transition(deps, task, 'deadline')
