/** Reports a channel that delivered something that was not ordered. */
import type { Task } from '../../../src/postgres/tasks/types.ts'
import type { TaskEngine } from '../engine.ts'

/** Records such a delivery as a failure of the channel. */
export function reportExcess(
  { log, health, metrics }: TaskEngine,
  task: Task,
  beyond: readonly string[],
): void {
  if (beyond.length === 0) return
  const { id, channelId } = task
  log.warn({ task: id, channel: channelId, beyond }, 'Upstream delivered something else than was requested')
  metrics.countExcess()
  if (channelId !== null)
    health.noteFault(channelId, {
      code: 'beyond_order',
      message: `Delivered beyond the order: ${beyond.join('; ')}`,
    })
}
