/**
 * Polls an upstream once for the state of a task. A poll that fails changes nothing; the deadline does.
 * See docs/failure-modes.md, "Money", rows 18, 21 and 22.
 */
import type { MediaRequest, PollOutcome, PollState } from '../../../src/channels/media/adapter.ts'
import { upstreamPriceOf } from '../../../src/core/media/pricing.ts'
import type { Task, TaskChanges } from '../../../src/postgres/tasks/types.ts'
import { ACCESS_REFUSED } from '../../calls/upstream-error.ts'
import {
  endOf,
  masked,
  pollOf,
  producedTask,
  type TaskChannel,
  type TaskEngine,
  taskChannel,
  transitionedTask,
} from '../engine.ts'
import { MAX_ANSWER_BYTES, type MediaCalls } from '../ports.ts'
import { type Step, type StepResult, stepResult } from '../step.ts'
import { deliverInline } from '../store/inline-results.ts'

const POLL_TIMEOUT_MS = 15_000

const unknown = (task: Task): StepResult => stepResult(task, { hasFailed: true })

/** Asks the upstream that has the task how far it is. */
export const pollUpstream: Step = async (deps, task) => {
  const followed = taskChannel(deps, task)
  const follow = followed?.adapter.follow ?? null
  if (followed === null || follow === null || task.upstreamId === null) return gone(deps, task)
  const outcome = await askUpstream(deps.calls, task, followed, task.upstreamId)
  deps.metrics.polled(outcome.type)
  return polled(deps, task, followed, outcome)
}

/** Returns how far the upstream is with what it has under its id. Never rejects. */
export async function askUpstream(
  calls: MediaCalls,
  task: Task,
  followed: TaskChannel,
  upstreamId: string,
): Promise<PollState> {
  const { follow } = followed.adapter
  if (follow === null) return { type: 'error', reason: 'It answers with the result itself.' }
  const asking = pollOf(followed, task, upstreamId)
  try {
    const answer = await send(calls, follow.poll(followed.route.channel, asking))
    return await stateIn(calls, followed, follow.readPoll(answer, asking))
  } catch (error) {
    return { type: 'error', reason: (error as Error).message }
  }
}

/** Returns what a poll says; requests the result of a finished task where the upstream keeps it elsewhere. */
async function stateIn(calls: MediaCalls, { route }: TaskChannel, outcome: PollOutcome): Promise<PollState> {
  if (outcome.type !== 'finished') return outcome
  const { request, read } = outcome.result
  return read(await send(calls, request(route.channel)))
}

const send = (calls: MediaCalls, request: MediaRequest) =>
  calls.send(request, { timeoutMs: POLL_TIMEOUT_MS, maxAnswerBytes: MAX_ANSWER_BYTES })

function failed({ log }: TaskEngine, task: Task, reason: string): StepResult {
  log.info({ task: task.id, channel: task.channelId, reason }, 'Failed to poll a task; retrying')
  return unknown(task)
}

function gone({ log }: TaskEngine, task: Task): StepResult {
  log.warn(
    { task: task.id, channel: task.channelId },
    'Channel of a task is not configured; the task ends at its deadline unless the channel returns',
  )
  return unknown(task)
}

/** What an upstream says with it is about the channel's own key. */
const UNAUTHORIZED = 'unauthorized'

async function polled(
  deps: TaskEngine,
  task: Task,
  { route }: TaskChannel,
  outcome: PollState,
): Promise<StepResult> {
  if (outcome.type === 'error') return failed(deps, task, outcome.reason)
  const { upstreamState } = outcome
  switch (outcome.type) {
    case 'produced':
      return produced(deps, task, outcome, { upstreamState })
    case 'failed': {
      const message = masked(outcome.message, route, task.model)
      const isAccess = outcome.code === UNAUTHORIZED
      const isConcealed = isAccess && route.channel.hide_auth_errors === true
      if (isAccess)
        deps.log.warn(
          { task: task.id, channel: route.channel.id, reason: message },
          'Upstream refused the key of a channel',
        )
      const errorMessage = isConcealed ? ACCESS_REFUSED : message
      const errorCode = isConcealed ? 'upstream_error' : outcome.code
      const changes = { ...endOf(outcome), errorCode, errorMessage }
      return stepResult(await transitionedTask(deps, task, 'failed', changes, costing(deps, task)))
    }
    case 'lapsed':
    case 'cancelled':
      return stepResult(await transitionedTask(deps, task, outcome.type, endOf(outcome), costing(deps, task)))
    case 'running':
      if (task.state === 'running') return stepResult(task)
      return stepResult(await transitionedTask(deps, task, 'started', { upstreamState }))
    case 'queued':
      return stepResult(task)
    case 'unmapped':
      deps.onUnmappedState(task, upstreamState)
      return stepResult(task)
  }
}

const costing = ({ catalog }: TaskEngine, task: Task) => ({
  upstreamPrice: upstreamPriceOf(catalog().config, task),
})

/** What the store does not take now it may take with the next look: the upstream still has it. */
async function produced(
  deps: TaskEngine,
  task: Task,
  outcome: Parameters<typeof deliverInline>[2],
  changes: TaskChanges,
): Promise<StepResult> {
  const result = await deliverInline(deps, task, outcome)
  if (result === null) return unknown(task)
  return stepResult(await producedTask(deps, task, { ...changes, result }))
}
