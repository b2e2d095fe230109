/**
 * Ends a task for an operator: releases the hold, writes the audit record, and asks the provider to cancel. Results that
 * come nevertheless are discarded.
 */
import { isFinal, TASK_RULES } from '../../../schemas/tasks/task.ts'
import type { Task } from '../../../src/postgres/tasks/types.ts'
import type { TaskTransitions } from '../engine.ts'
import { planTransition } from '../transition.ts'
import type { TaskNotices } from '../worker/messages.ts'

/** Retries if another process has moved the task. */
const MOVE_TRIES = 5

interface OpenTasks extends TaskTransitions {
  read(ids: readonly string[]): Promise<Task[]>
}

interface TaskEnder {
  readonly database: { readonly tasks: OpenTasks }
  readonly messages: TaskNotices
  readonly now: () => number
  /** Rejects with the reason why the provider has not cancelled the task. */
  readonly cancelUpstream: (task: Task) => Promise<unknown>
}

interface EndedTask {
  readonly task: Task
  /** What the provider did, for the operator. */
  readonly provider: string
}

interface OperatorEnd {
  /** `cancelled` if the customer asked for it, `failed` if the work failed. */
  readonly event: 'cancelled' | 'failed'
  /** The reason that the customer reads in the task and in the row. Null for the usual text. */
  readonly reason: string | null
}

/** The task cannot be ended; the message says why. */
export class NotEndable extends Error {
  override readonly name = 'NotEndable'
}

/** Ends the task with a full refund. @throws NotEndable */
export async function endTask(
  deps: TaskEnder,
  id: string,
  { event, reason }: OperatorEnd,
): Promise<EndedTask> {
  const { database, messages, now } = deps
  for (let tries = 0; tries < MOVE_TRIES; tries++) {
    const [task] = await database.tasks.read([id])
    if (task === undefined) throw new NotEndable(`There is no task ${id}.`)
    if (isFinal(task.state)) throw new NotEndable(`Task ${id} has ended already: it is ${task.state}.`)
    if (task.state === 'submitting')
      throw new NotEndable(`Task ${id} is being submitted. Try again in a minute.`)
    if (TASK_RULES[task.kind].transitions[task.state][event] === null)
      throw new NotEndable(
        `Task ${id} cannot be ended while it is ${task.state}: its results are there and are being stored.`,
      )
    const changes = reason === null ? {} : { errorMessage: reason }
    const move = planTransition(task, event, changes, { now: now() })!
    const audit = {
      action: `task.${event}`,
      before: { state: task.state },
      after: { state: move.to, reason },
    }
    const outcome = await database.tasks.applyTransition({ ...move, audit })
    if (outcome.outcome === 'stale') continue
    messages.announce([outcome.task])
    if (outcome.wallet !== null) messages.announceWallets([outcome.wallet])
    return { task: outcome.task, provider: await cancelAtProvider(deps, task) }
  }
  throw new NotEndable(`Task ${id} changes too quickly to be ended. Try again.`)
}

/** Runs after the task has ended here: a provider that does not answer cannot delay the refund. */
async function cancelAtProvider({ cancelUpstream }: TaskEnder, task: Task): Promise<string> {
  if (task.state === 'waiting') return 'never had it'
  if (task.upstreamId === null) return 'was not asked: it has given the task no id'
  return cancelUpstream(task).then(
    () => 'cancelled it',
    (error: Error) => `did not cancel it: ${error.message}`,
  )
}
