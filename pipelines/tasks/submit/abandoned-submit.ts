/** A submit whose process has gone. What may have been sent is never sent again. */
import { transitionedTask } from '../engine.ts'
import { type Step, stepResult } from '../step.ts'
import { lostBy } from './refusal.ts'

/** A process that submits touches its tasks more often than this: one that does not is gone. */
const SUBMIT_LEASE_MS = 30_000

/** Ends a submit that was abandoned; its process may still be at work until the lease is over. */
export const endAbandonedSubmit: Step = async (deps, task) => {
  const leftMs = task.touchedAt + SUBMIT_LEASE_MS - deps.now()
  if (leftMs > 0) return stepResult(task, { delayMs: leftMs })
  deps.log.warn(
    { task: task.id, channel: task.channelId },
    'The process of a submit has gone; the hold goes back, and operators have a record of it',
  )
  return stepResult(await transitionedTask(deps, task, 'lost', lostBy('upstream_unreachable')))
}
