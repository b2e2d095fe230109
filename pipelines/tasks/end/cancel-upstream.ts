/** Cancels a task at the provider that has it. See docs/api-rules.md, "Tasks". */
import { Failure } from '../../../schemas/failure.ts'
import type { MediaPoll, MediaRequest, PollOutcome } from '../../../src/channels/media/adapter.ts'
import type { Task, TaskChanges } from '../../../src/postgres/tasks/types.ts'
import { findTaskChannel, readEnd, type TaskChannel, type TaskUpstreams, toPoll } from '../engine.ts'
import { throwUnanswered } from '../ports.ts'

const CALL_TIMEOUT_MS = 15_000
const MAX_ANSWER_BYTES = 1024 * 1024

export const notCancellable = (): Failure =>
  new Failure(
    'task_not_cancellable',
    'The task cannot be cancelled: only a task that is still queued can be, and not every upstream calls one off.',
  )

/**
 * Cancels a task at its upstream. Returns the upstream's changes, with the usage if it charges for work that it has
 * begun.
 * @throws Failure `task_not_cancellable` unless the upstream has cancelled it, `upstream_*` if it does not answer
 */
export async function cancelUpstream(deps: TaskUpstreams, task: Task): Promise<TaskChanges> {
  const followed = findTaskChannel(deps, task)
  const { upstreamId } = task
  if (followed === null || upstreamId === null) throw notCancellable()
  const poll = toPoll(followed, task, upstreamId)
  // Some upstreams delete the result of a finished task when asked to cancel it.
  const before = await readStateAt(deps, followed, poll)
  if (before?.type === 'cancelled') return readEnd(before)
  const { follow } = followed.adapter
  const params = follow?.cancel?.(followed.route.channel, poll)
  const isInTime =
    before?.type === 'queued' || (before?.type === 'running' && follow?.cancelsRunning === true)
  if (!isInTime || params === undefined) throw notCancellable()
  const { status } = await sendOnce(deps, params)
  if (status < 200 || status >= 300) throw notCancellable()
  if (follow?.cancelsRunning !== true) return {}
  const after = await readStateAt(deps, followed, poll)
  if (after?.type === 'cancelled') return readEnd(after)
  // The task stays open: its next poll ends it, with what was used.
  throw new Failure(
    'upstream_error',
    'The upstream was asked to cancel the task, and does not say yet that it has.',
  )
}

async function readStateAt(
  deps: TaskUpstreams,
  { route, adapter }: TaskChannel,
  poll: MediaPoll,
): Promise<Exclude<PollOutcome, { type: 'error' }> | null> {
  const { follow } = adapter
  if (follow === null) return null
  const outcome = follow.readPoll(await sendOnce(deps, follow.poll(route.channel, poll)), poll)
  if (outcome.type !== 'error') return outcome
  throw new Failure('upstream_error', 'The upstream could not say how the task does.', {
    internal: outcome.reason,
  })
}

/** @throws Failure `upstream_*` where no answer comes */
const sendOnce = ({ calls }: TaskUpstreams, params: MediaRequest) =>
  calls.send(params, { timeoutMs: CALL_TIMEOUT_MS, maxAnswerBytes: MAX_ANSWER_BYTES }).catch(throwUnanswered)
