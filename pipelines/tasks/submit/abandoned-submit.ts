/** A submit whose process has gone. What may have been sent is never sent again. */
import { transition } from '../engine.ts'
import { endStep, type Step } from '../step.ts'
import { toLostFields } from './refusal.ts'

/** A process that submits touches its tasks more often than this: one that does not is gone. */
const SUBMIT_LEASE_MS = 30_000

/** Ends a submit that was abandoned; its process may still be at work until the lease is over. */
export const endAbandonedSubmit: Step = async (deps, task) => {
  const leftMs = task.touchedAt + SUBMIT_LEASE_MS - deps.now()
  if (leftMs > 0) return endStep(task, { delayMs: leftMs })
  deps.log.warn(
    { task: task.id, channel: task.channelId },
    'The process of a submit has gone; the hold goes back, and operators have a record of it',
  )
  return endStep(await transition(deps, task, 'lost', toLostFields('upstream_unreachable')))
}
