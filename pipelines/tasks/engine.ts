/** What work on tasks needs, and the one way to move a task. */
import type { ChannelEntry } from '../../schemas/config/catalog.ts'
import { isFinal, type TaskEvent } from '../../schemas/tasks/task.ts'
import type { MediaPoll, PollState, TaskAdapter } from '../../src/channels/media/adapter.ts'
import { redact } from '../../src/core/call-log/redact.ts'
import type { Catalog } from '../../src/core/routing/catalog.ts'
import { hasAccess } from '../../src/core/routing/channel-access.ts'
import type { ChannelHealth } from '../../src/core/routing/circuit-breaker.ts'
import { listUpstreamTexts } from '../../src/core/routing/upstream-texts.ts'
import type { MoveOutcome, Task, TaskChanges, TaskMove } from '../../src/postgres/tasks/types.ts'
import type { PipelineLog } from '../settlement/retrying.ts'
import type { FindAdapter, MediaCalls, TaskStorage } from './ports.ts'
import { planTransition, type TransitionContext } from './transition.ts'
import type { TaskNotices } from './worker/messages.ts'

export interface TaskTransitions {
  applyTransition(move: TaskMove): Promise<MoveOutcome>
}

interface EngineTasks extends TaskTransitions {
  /** Records which objects are to be removed, and when. */
  recordObjects(objects: readonly { readonly key: string; readonly expiresAt: number }[]): Promise<void>
}

/** The upstreams that have tasks. */
export interface TaskUpstreams {
  readonly calls: MediaCalls
  readonly findAdapter: FindAdapter
  readonly catalog: () => Catalog
}

/** What moving tasks needs. */
export interface TaskMover {
  readonly database: { readonly tasks: TaskTransitions }
  readonly messages: TaskNotices
  readonly log: PipelineLog
  /** Epoch milliseconds. */
  readonly now: () => number
}

export interface TaskEngine extends TaskUpstreams, TaskMover {
  readonly database: { readonly tasks: EngineTasks }
  readonly storage: TaskStorage
  readonly health: ChannelHealth
  readonly metrics: TaskEvents
  /** Called once per task for an upstream state that the adapter does not map. */
  readonly onUnmappedState: (task: Task, upstreamState: string) => void
  readonly pause: (ms: number) => Promise<void>
  /** Returns a number in [0, 1), which chooses among equal channels. */
  readonly random: () => number
}

/** The end of an attempt at an upstream, for the metrics. */
export type SubmitEnd = 'accepted' | 'produced' | 'refused' | 'lost' | 'unreachable' | 'timeout' | 'unusable'
interface TaskEvents {
  countSubmit(end: SubmitEnd): void
  countPoll(outcome: string): void
  /** Counts a delivery of something that was not ordered. */
  countExcess(): void
  /** Counts an upstream's answer for a task that had ended. */
  countDiscard(): void
}

interface TransitionResult {
  /** Its current row. */
  readonly task: Task
  /** False if another process changed the task first, or its state does not allow the event. */
  readonly isApplied: boolean
}

/** Moves a task by an event. An event that its state does not allow changes nothing and is logged. */
export async function tryTransition(
  { database, messages, log, now }: TaskMover,
  task: Task,
  event: TaskEvent,
  changes: TaskChanges = {},
  made: Omit<TransitionContext, 'now'> = {},
): Promise<TransitionResult> {
  const move = planTransition(task, event, changes, { now: now(), ...made })
  if (move === null) {
    log.warn(
      { task: task.id, state: task.state, event },
      'Ignored an event that the state of its task does not allow',
    )
    return { task, isApplied: false }
  }
  const outcome = await database.tasks.applyTransition(move)
  if (outcome.outcome === 'stale') return { task: outcome.task, isApplied: false }
  messages.announce([outcome.task])
  if (outcome.wallet !== null) messages.announceWallets([outcome.wallet])
  if (event !== 'discarded' && hasEndedWithout(outcome.task))
    log.info(
      { task: task.id, state: outcome.task.state, code: outcome.task.errorCode },
      'Task ended without a result',
    )
  return { task: outcome.task, isApplied: true }
}

/** Applies a transition and returns the current row. */
export const transition = async (...args: Parameters<typeof tryTransition>): Promise<Task> =>
  (await tryTransition(...args)).task

/**
 * Moves a task whose upstream is done. A waiting client gets its error when the time is over, and a timeout is free: a
 * later result ends the task as its deadline does.
 */
export function finishTask(deps: TaskMover, task: Task, changes: TaskChanges): Promise<Task> {
  if (!task.isAwaited || deps.now() < task.deadlineAt) return transition(deps, task, 'produced', changes)
  const { result: _, ...facts } = changes
  return transition(deps, task, 'deadline', facts)
}

/**
 * Discards the answer of an upstream for a task that was cancelled or ended at its deadline; the row records which
 * upstream has the work. `task` is the current row.
 */
export async function discardAnswer(
  deps: TaskMover & { readonly metrics: TaskEvents },
  task: Task,
  { upstreamId, upstreamState }: TaskChanges,
): Promise<Task> {
  deps.metrics.countDiscard()
  deps.log.warn(
    { task: task.id, channel: task.channelId, state: task.state, upstream_task: upstreamId ?? null },
    'Upstream answered for a task that had ended; discarded its result',
  )
  return transition(deps, task, 'discarded', {
    ...(upstreamId !== undefined && { upstreamId }),
    ...(upstreamState !== undefined && { upstreamState }),
  })
}

/** Returns whether the task has ended without the upstream's present answer. */
export const hasEndedWithout = ({ state }: Task): boolean => isFinal(state) && state !== 'succeeded'

/** A channel and its name for the model. */
interface UpstreamRoute {
  readonly channel: ChannelEntry
  readonly upstreamModel: string
}

/** Masks the channel's id, address and keys in a text from an upstream, for the client and the call log. */
export function maskText(text: string, route: UpstreamRoute, model: string): string {
  const { names, secrets } = listUpstreamTexts([route], model)
  return redact(text, names, secrets)
}

export interface TaskChannel {
  readonly route: UpstreamRoute
  readonly adapter: TaskAdapter
}

/** Returns the channel that has the task; null if it is no longer configured or is disabled. */
export function findTaskChannel({ catalog, findAdapter }: TaskUpstreams, task: Task): TaskChannel | null {
  const channel = catalog().channels.find((entry) => entry.id === task.channelId && hasAccess(entry))
  const adapter = channel === undefined ? null : findAdapter(channel.protocol)
  if (channel === undefined || adapter === null) return null
  return { route: { channel, upstreamModel: task.upstreamModel ?? task.model }, adapter }
}

/** Returns the request that polls the upstream's task with this id. */
export const toPoll = ({ route }: TaskChannel, { job }: Task, upstreamId: string): MediaPoll => ({
  upstreamId,
  upstreamModel: route.upstreamModel,
  job,
  provider: route.channel.provider,
})

/** Returns the changes for an end without results, with the usage if it is charged nevertheless. */
export const readEnd = ({
  upstreamState,
  result,
}: Extract<PollState, { type: 'failed' | 'lapsed' | 'cancelled' }>): TaskChanges =>
  result === undefined ? { upstreamState } : { upstreamState, result }
