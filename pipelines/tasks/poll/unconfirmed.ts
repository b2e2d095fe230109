/**
 * Unconfirmed tasks: the answer to their submit was lost, and a submit is never repeated. Decides their deadline, how
 * long the upstream is polled for them, and the message that their customer reads.
 */
import { printCredits } from '../../../schemas/money.ts'
import { TASK_RULES } from '../../../schemas/tasks/task.ts'
import type { TaskAdapter } from '../../../src/channels/media/adapter.ts'
import type { Task } from '../../../src/postgres/tasks/types.ts'
import { type EngineDeps, taskChannel } from '../engine.ts'

/** A look-up that gives no answer for so long, from the request on, counts as impossible. */
export const MAX_LOOKUP_MS = 600_000

/** When the task ends at the latest, whatever its upstream says: epoch milliseconds. */
export function endsAt({ kind, state, submittedAt, deadlineAt }: Task): number {
  return state === 'unconfirmed'
    ? Math.min(deadlineAt, submittedAt + TASK_RULES[kind].unconfirmedMs)
    : deadlineAt
}

/** How to look a submit up by our reference; undefined where the upstream cannot say, or its channel is gone. */
export function findOf(
  deps: Pick<EngineDeps, 'catalog' | 'adapterOf'>,
  task: Task,
): NonNullable<TaskAdapter['follow']>['find'] {
  return taskChannel(deps, task)?.adapter.follow?.find
}

/** Returns until when look-ups go on before the customer may cancel the task: epoch milliseconds. */
export const lookupEndsAt = ({ submittedAt }: Task): number => submittedAt + MAX_LOOKUP_MS

const instant = (ms: number): string => new Date(ms).toISOString()

/** What the customer reads beside the status; null for a task whose upstream has it, or that has ended. */
export function unconfirmedNote(task: Task): string | null {
  if (task.state !== 'unconfirmed') return null
  return (
    'The provider has not confirmed that it has this task, and it is not sent again. Unless the provider confirms it, ' +
    `the ${printCredits(task.hold)} credits that are held are released at ${instant(endsAt(task))} at the latest.`
  )
}

/** As a field of an answer, which is left out where there is nothing to say. */
export function withUnconfirmedNote(task: Task): { readonly message?: string } {
  const message = unconfirmedNote(task)
  return message === null ? {} : { message }
}
