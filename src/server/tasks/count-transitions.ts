/** Counts each call that ends as a task, in the process that ended it. */
import type { Settlement } from '../../../schemas/call-log/columns.ts'
import { readDetail } from '../../core/call-log/detail-text.ts'
import type { Tasks } from '../../postgres/tasks/repository.ts'
import type { TaskMove } from '../../postgres/tasks/types.ts'
import type { LogOutput } from '../../telemetry/log.ts'
import { type Metrics, toObservation } from '../../telemetry/metrics.ts'
import { countSettled } from '../gateway/count-settled.ts'

/** Wraps `tasks`: calls `onSettled` with the settlement of each transition that ends a task. */
export const countTransitions = (tasks: Tasks, onSettled: (settlement: Settlement) => void): Tasks => ({
  ...tasks,
  async applyTransition(move: TaskMove) {
    const outcome = await tasks.applyTransition(move)
    if (outcome.outcome !== 'stale' && move.settlement !== null) onSettled(move.settlement)
    return outcome
  },
})

/** Returns what counts a task that has ended: an answer in the background by its usage, as one that its client waits for. */
export function countEndedTask(
  metrics: Metrics,
  log: Pick<LogOutput, 'warn'>,
): (settlement: Settlement) => void {
  const countAnswer = countSettled(metrics, log)
  return (settlement) => {
    const { protocol, model, detail } = settlement
    if (protocol !== 'responses') return metrics.call(toObservation(settlement, model))
    const suspect = readDetail(detail).usage_suspect ?? ''
    countAnswer(settlement, { suspect, reported: undefined, otherModel: '' }, '')
  }
}
