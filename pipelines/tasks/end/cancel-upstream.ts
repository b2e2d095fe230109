/** Cancels a task at the provider that has it. See docs/api-rules.md, "Tasks". */
import { Failure } from '../../../schemas/failure.ts'
import type { MediaPoll } from '../../../src/channels/media/adapter.ts'
import type { Catalog } from '../../../src/core/routing/catalog.ts'
import type { Task } from '../../../src/postgres/tasks/types.ts'
import { unanswered } from '../../media/channel-lists.ts'
import { type TaskChannel, taskChannel } from '../engine.ts'
import type { AdapterOf, MediaCalls } from '../ports.ts'

const CALL_TIMEOUT_MS = 15_000
const MAX_ANSWER_BYTES = 1024 * 1024

export interface CancelUpstreamDeps {
  readonly calls: MediaCalls
  readonly adapterOf: AdapterOf
  readonly catalog: () => Catalog
}

export const notCancellable = (): Failure =>
  new Failure(
    'task_not_cancellable',
    'The task cannot be cancelled: only a task that is still queued can be, and not every upstream calls one off.',
  )

/** @throws Failure `task_not_cancellable` unless the upstream has cancelled it, `upstream_*` where it does not answer */
export async function cancelUpstream(deps: CancelUpstreamDeps, task: Task): Promise<void> {
  const followed = taskChannel(deps, task)
  const { upstreamId } = task
  if (followed === null || upstreamId === null) throw notCancellable()
  const poll = { upstreamId, upstreamModel: followed.route.upstreamModel, job: task.job }
  // Some upstreams delete the result of a finished task when asked to cancel it.
  const state = await stateAt(deps, followed, poll)
  if (state === 'cancelled') return
  const { follow } = followed.adapter
  const params = follow?.cancel?.(followed.route.channel, poll)
  const isInTime = state === 'queued' || (state === 'running' && follow?.cancelsRunning === true)
  if (!isInTime || params === undefined) throw notCancellable()
  const { status } = await sendOnce(deps, params)
  if (status < 200 || status >= 300) throw notCancellable()
}

async function stateAt(deps: CancelUpstreamDeps, { route, adapter }: TaskChannel, poll: MediaPoll) {
  const { follow } = adapter
  if (follow === null) return null
  const outcome = follow.readPoll(await sendOnce(deps, follow.poll(route.channel, poll)), poll)
  if (outcome.type !== 'error') return outcome.type
  throw new Failure('upstream_error', 'The upstream could not say how the task does.', {
    internal: outcome.reason,
  })
}

/** @throws Failure `upstream_*` where no answer comes */
export const sendOnce = (
  { calls }: Pick<CancelUpstreamDeps, 'calls'>,
  params: Parameters<MediaCalls['send']>[0],
) => calls.send(params, { timeoutMs: CALL_TIMEOUT_MS, maxAnswerBytes: MAX_ANSWER_BYTES }).catch(unanswered)
