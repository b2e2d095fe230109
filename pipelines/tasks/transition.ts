/** Plans what an event does to a task, its money and its row in the call log. Pure. */
import type { TaskPrice } from '../../schemas/media/price.ts'
import {
  isFinal,
  type MoneyEffect,
  TASK_RULES,
  type TaskEvent,
  type TaskState,
} from '../../schemas/tasks/task.ts'
import { computeMediaCost } from '../../src/core/media/pricing.ts'
import type { Task, TaskChanges, TaskMove } from '../../src/postgres/tasks/types.ts'
import { chargeTask } from './end/charge.ts'
import { NO_LINKS, type ResultLinks, settleTask } from './end/settlement.ts'
import { OWN_REFUSALS } from './submit/refusal.ts'

export interface TransitionContext {
  readonly now: number
  /** The links to the results, if the task succeeds. */
  readonly links?: ResultLinks
  /** What the operator pays; null if it is not known. */
  readonly upstreamPrice?: TaskPrice | null
}

/** A lost submit of a task whose id the client has: the task stays, and ends as failed. */
const LOST_JOB: { readonly to: TaskState; readonly money: MoneyEffect } = { to: 'failed', money: 'refund' }

/** Returns null if the task's state does not allow the event. */
export function planTransition(
  task: Task,
  event: TaskEvent,
  changes: TaskChanges,
  { now, links = NO_LINKS, upstreamPrice = null }: TransitionContext,
): TaskMove | null {
  const transition = TASK_RULES[task.kind].transitions[task.state][event]
  if (transition === null) return null
  const { to, money } = event === 'lost' && task.isEarly ? LOST_JOB : transition
  const isUntold = task.state === 'submitting' && (event === 'lost' || event === 'deadline')
  const isLost = isUntold || event === 'discarded'
  const move = { id: task.id, version: task.version, event, to, money, at: now, ...(isLost && { isLost }) }
  // An ended task already has its row in the call log.
  if (!isFinal(to) || isFinal(task.state)) return { ...move, changes, settlement: null }
  const changed = { ...task, ...changes, state: to }
  const charge = money === 'charge' ? chargeTask(changed, changed.price) : null
  const ended = { ...changed, cost: charge?.cost ?? 0n, endedAt: now }
  // Otherwise the hold is released, as for any other task.
  const isOwed = to === 'succeeded' || ended.cost > 0n
  return {
    ...move,
    money: money === 'charge' && !isOwed ? 'refund' : money,
    changes: { ...changes, cost: ended.cost, endedAt: now },
    settlement: {
      ...settleTask(ended, charge, links, now),
      ...(charge !== null &&
        upstreamPrice !== null && {
          upstream_cost: String(chargeTask(changed, upstreamPrice, computeMediaCost)!.cost),
        }),
    },
  }
}

/** Plans the refusal of a task that was not sent. Returns null if it may have been sent. */
export function planUnsentRefusal(task: Task, now: number): TaskMove | null {
  if (task.state !== 'waiting') return null
  const code = 'service_unavailable'
  return planTransition(task, 'refused', { errorCode: code, errorMessage: OWN_REFUSALS[code] }, { now })
}
