/** Counts each call that ends as a task, in the process that ended it. */
import type { Settlement } from '../../schemas/events/event.ts'
import type { Database } from '../postgres/types.ts'

/** The same database; `onSettled` is called with the settlement of each move that ended a task. */
export const countTransitions = (
  database: Database,
  onSettled: (settlement: Settlement) => void,
): Database => ({
  ...database,
  async applyTransition(move) {
    const outcome = await database.applyTransition(move)
    if (outcome.outcome !== 'stale' && move.settlement !== null) onSettled(move.settlement)
    return outcome
  },
})
