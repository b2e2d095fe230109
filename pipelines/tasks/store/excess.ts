/** A channel that delivered something else than was ordered. */
import type { Task } from '../../../src/postgres/tasks/types.ts'
import type { TaskEngine } from '../engine.ts'

/** Records what was beyond an order as a failure of its channel. */
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
