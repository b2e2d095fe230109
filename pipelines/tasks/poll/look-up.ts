/** Looks up a task whose submit was not answered. See docs/failure-modes.md, "Money", row 19. */
import type { Task } from '../../../src/postgres/tasks/types.ts'
import { type EngineDeps, transitionedTask } from '../engine.ts'
import { type Step, stepResult } from '../step.ts'
import { findUpstream } from './poll-upstream.ts'

/** No upstream can look the task up: it waits for its end. */
const WAIT_FOR_END_MS = 60_000

/** Asks the upstream whether it has the task. One whose answer would have been the result has failed. */
export const lookUpSubmit: Step = async (deps, task) => {
  if (isSynchronous(deps, task)) {
    const changes = { errorCode: 'upstream_error', errorMessage: 'The connection to the upstream was lost.' }
    return stepResult(await transitionedTask(deps, task, 'failed', changes))
  }
  return (await findUpstream(deps, task)) ?? stepResult(task, { delayMs: WAIT_FOR_END_MS })
}

const isSynchronous = ({ catalog, adapterOf }: EngineDeps, { channelId }: Task): boolean => {
  const channel = catalog().channels.find(({ id }) => id === channelId)
  return channel !== undefined && adapterOf(channel.protocol)?.follow === null
}
