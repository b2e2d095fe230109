/**
 * Polls an upstream once for the state of a task. A failed poll changes nothing; only the deadline ends the task.
 * See docs/failure-modes.md, "Money", rows 18, 21 and 22.
 */
import type { MediaRequest, PollOutcome, PollState } from '../../../src/channels/media/adapter.ts'
import { findUpstreamPrice } from '../../../src/core/media/pricing.ts'
import type { Task, TaskChanges } from '../../../src/postgres/tasks/types.ts'
import { ACCESS_REFUSED } from '../../calls/upstream-error.ts'
import {
  findTaskChannel,
  finishTask,
  maskText,
  readEnd,
  type TaskChannel,
  type TaskEngine,
  toPoll,
  transition,
} from '../engine.ts'
import { MAX_ANSWER_BYTES, type MediaCalls } from '../ports.ts'
import { endStep, type Step, type StepResult } from '../step.ts'
import { deliverInline } from '../store/inline-results.ts'

const POLL_TIMEOUT_MS = 15_000

const retryLater = (task: Task): StepResult => endStep(task, { hasFailed: true })

/** Polls the upstream that has the task. */
export const pollUpstream: Step = async (deps, task) => {
  const followed = findTaskChannel(deps, task)
  const follow = followed?.adapter.follow ?? null
  if (followed === null || follow === null || task.upstreamId === null) return noteGone(deps, task)
  const outcome = await askUpstream(deps.calls, task, followed, task.upstreamId)
  deps.metrics.countPoll(outcome.type)
  return applyPoll(deps, task, followed, outcome)
}

/** Returns the state of the upstream's work with this id. Never rejects. */
export async function askUpstream(
  calls: MediaCalls,
  task: Task,
  followed: TaskChannel,
  upstreamId: string,
): Promise<PollState> {
  const { follow } = followed.adapter
  if (follow === null) return { type: 'error', reason: 'It answers with the result itself.' }
  const asking = toPoll(followed, task, upstreamId)
  try {
    const answer = await send(calls, follow.poll(followed.route.channel, asking))
    return await readState(calls, followed, follow.readPoll(answer, asking))
  } catch (error) {
    return { type: 'error', reason: (error as Error).message }
  }
}

/** Returns the state; requests the result of a finished task if the upstream keeps it elsewhere. */
async function readState(
  calls: MediaCalls,
  { route }: TaskChannel,
  outcome: PollOutcome,
): Promise<PollState> {
  if (outcome.type !== 'finished') return outcome
  const { request, read } = outcome.result
  return read(await send(calls, request(route.channel)))
}

const send = (calls: MediaCalls, request: MediaRequest) =>
  calls.send(request, { timeoutMs: POLL_TIMEOUT_MS, maxAnswerBytes: MAX_ANSWER_BYTES })

function noteFailedPoll({ log }: TaskEngine, task: Task, reason: string): StepResult {
  log.info({ task: task.id, channel: task.channelId, reason }, 'Failed to poll a task; retrying')
  return retryLater(task)
}

function noteGone({ log }: TaskEngine, task: Task): StepResult {
  log.warn(
    { task: task.id, channel: task.channelId },
    'Channel of a task is not configured; the task ends at its deadline unless the channel returns',
  )
  return retryLater(task)
}

/** An upstream uses it for errors about the channel's own key. */
const UNAUTHORIZED = 'unauthorized'

async function applyPoll(
  deps: TaskEngine,
  task: Task,
  { route }: TaskChannel,
  outcome: PollState,
): Promise<StepResult> {
  if (outcome.type === 'error') return noteFailedPoll(deps, task, outcome.reason)
  const { upstreamState } = outcome
  switch (outcome.type) {
    case 'produced':
      return takeResult(deps, task, outcome, { upstreamState })
    case 'failed': {
      const message = maskText(outcome.message, route, task.model)
      const isAccess = outcome.code === UNAUTHORIZED
      const isConcealed = isAccess && route.channel.hide_auth_errors === true
      if (isAccess)
        deps.log.warn(
          { task: task.id, channel: route.channel.id, reason: message },
          'Upstream refused the key of a channel',
        )
      const errorMessage = isConcealed ? ACCESS_REFUSED : message
      const errorCode = isConcealed ? 'upstream_error' : outcome.code
      const changes = { ...readEnd(outcome), errorCode, errorMessage }
      return endStep(await transition(deps, task, 'failed', changes, addUpstreamPrice(deps, task)))
    }
    case 'lapsed':
    case 'cancelled':
      return endStep(
        await transition(deps, task, outcome.type, readEnd(outcome), addUpstreamPrice(deps, task)),
      )
    case 'running':
      if (task.state === 'running') return endStep(task)
      return endStep(await transition(deps, task, 'started', { upstreamState }))
    case 'queued':
      return endStep(task)
    case 'unmapped':
      deps.onUnmappedState(task, upstreamState)
      return endStep(task)
  }
}

const addUpstreamPrice = ({ catalog }: TaskEngine, task: Task) => ({
  upstreamPrice: findUpstreamPrice(catalog().config, task),
})

/** If the store fails, the next poll tries again: the upstream still has the result. */
async function takeResult(
  deps: TaskEngine,
  task: Task,
  outcome: Parameters<typeof deliverInline>[2],
  changes: TaskChanges,
): Promise<StepResult> {
  const result = await deliverInline(deps, task, outcome)
  if (result === null) return retryLater(task)
  return endStep(await finishTask(deps, task, { ...changes, result }))
}
