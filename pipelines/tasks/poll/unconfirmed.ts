/**
 * Unconfirmed tasks: the answer to their submit was lost, and a submit is never repeated. Decides their deadline, how
 * long the upstream is polled for them, and the message that their customer reads.
 */
import { printCredits } from '../../../schemas/money.ts'
import { TASK_RULES } from '../../../schemas/tasks/task.ts'
import type { Task } from '../../../src/postgres/tasks/types.ts'

/** A look-up that gives no answer for so long, from the request on, counts as impossible. */
export const MAX_LOOKUP_MS = 600_000

/** When the task ends at the latest, whatever its upstream says: epoch milliseconds. */
export function endsAt({ kind, state, submittedAt, deadlineAt }: Task): number {
  return state === 'unconfirmed'
    ? Math.min(deadlineAt, submittedAt + TASK_RULES[kind].unconfirmedMs)
    : deadlineAt
}

/** Returns until when look-ups go on before the customer may cancel the task: epoch milliseconds. */
export const lookupEndsAt = ({ submittedAt }: Task): number => submittedAt + MAX_LOOKUP_MS

/** What the customer reads beside the status, as a field; none for a task whose upstream has it, or that has ended. */
export function withUnconfirmedNote(task: Task): { readonly message?: string } {
  if (task.state !== 'unconfirmed') return {}
  const until = new Date(endsAt(task)).toISOString()
  return {
    message:
      'The provider has not confirmed that it has this task, and it is not sent again. Unless the provider confirms it, ' +
      `the ${printCredits(task.hold)} credits that are held are released at ${until} at the latest.`,
  }
}
