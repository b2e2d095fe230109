/** Counts each call that ends as a task, in the process that ended it. */
import type { Settlement } from '../../../schemas/events/event.ts'
import type { Tasks } from '../../postgres/tasks/repository.ts'
import type { TaskMove } from '../../postgres/tasks/types.ts'

/** Wraps `tasks`: calls `onSettled` with the settlement of each transition that ends a task. */
export const countTransitions = <Repositories extends Pick<Tasks, 'applyTransition'>>(
  tasks: Repositories,
  onSettled: (settlement: Settlement) => void,
): Repositories => ({
  ...tasks,
  async applyTransition(move: TaskMove) {
    const outcome = await tasks.applyTransition(move)
    if (outcome.outcome !== 'stale' && move.settlement !== null) onSettled(move.settlement)
    return outcome
  },
})
