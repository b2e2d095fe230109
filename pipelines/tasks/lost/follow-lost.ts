/**
 * Follows lost submits: asks providers for work that nobody waits for, cancels it if they can, and books what it cost the
 * operator. Customers see none of it. See docs/operating.md, "Lost submits".
 */
import type { TaskResult } from '../../../schemas/media/job.ts'
import type { Credits } from '../../../schemas/money.ts'
import type { LostSubmitEnd } from '../../../schemas/tasks/lost-submit.ts'
import { TASK_RULES } from '../../../schemas/tasks/task.ts'
import type { SubmitOutcome } from '../../../src/channels/media/adapter.ts'
import { computeMediaCost, findUpstreamPrice } from '../../../src/core/media/pricing.ts'
import type { LostFinding, LostSubmit } from '../../../src/postgres/tasks/lost-submits.ts'
import type { Task } from '../../../src/postgres/tasks/types.ts'
import type { PipelineLog } from '../../settlement/retrying.ts'
import { cancelUpstream } from '../end/cancel-upstream.ts'
import { chargeTask } from '../end/charge.ts'
import { findTaskChannel, type TaskChannel, type TaskUpstreams } from '../engine.ts'
import { askUpstream } from '../poll/poll-upstream.ts'

const AT_ONCE = 16
/** If a process dies, another one claims its records after this time. */
const CLAIM_MS = 120_000
const FIRST_DELAY_MS = 10_000
const MAX_DELAY_MS = 600_000
/** Added to the time that work of the kind may take. */
const GIVE_UP_AFTER_MS = 24 * 60 * 60 * 1000
const FIND_TIMEOUT_MS = 15_000
const FIND_MAX_ANSWER_BYTES = 1024 * 1024

interface LostRecords {
  claim(now: number, until: number, limit: number): Promise<LostSubmit[]>
  recordFinding(taskId: string, finding: LostFinding, now: number): Promise<boolean>
}

interface LostSubmitFollower extends TaskUpstreams {
  readonly database: {
    readonly lostSubmits: LostRecords
    readonly tasks: { read(ids: readonly string[]): Promise<Task[]> }
  }
  readonly log: PipelineLog
  readonly now: () => number
}

/** Follows up the records that are due. */
export async function followLostSubmits(deps: LostSubmitFollower): Promise<void> {
  const { database, now } = deps
  for (;;) {
    const due = await database.lostSubmits.claim(now(), now() + CLAIM_MS, AT_ONCE)
    const tasks = await database.tasks.read(due.map(({ taskId }) => taskId))
    const byId = new Map(tasks.map((task) => [task.id, task]))
    await Promise.all(due.map((lost) => followOne(deps, lost, byId.get(lost.taskId))))
    if (due.length < AT_ONCE) return
  }
}

async function followOne(deps: LostSubmitFollower, lost: LostSubmit, task: Task | undefined): Promise<void> {
  const { database, log, now } = deps
  // Retention has removed its task, and the job with it.
  const finding = task === undefined ? stopAsking(lost) : await findOut(deps, lost, task)
  if (!(await database.lostSubmits.recordFinding(lost.taskId, finding, now())) || finding.end === null) return
  log.info(
    { task: lost.taskId, channel: lost.channelId, state: finding.end, upstream_task: finding.upstreamId },
    'Lost submit is closed by what its provider says',
  )
}

interface Known {
  readonly upstreamId: LostFinding['upstreamId']
  readonly upstreamState: LostFinding['upstreamState']
}

/** Only an operator can find out more. */
const stopAsking = ({ upstreamId, upstreamState }: Known): LostFinding => ({
  end: null,
  upstreamId,
  upstreamState,
  cost: null,
  nextCheckAt: null,
})

const endLost = (end: LostSubmitEnd, cost: Credits | null, known: Known): LostFinding => ({
  ...known,
  end,
  cost,
  nextCheckAt: null,
})

/** Asks again later, until no work of the kind can still be running. */
function askLater(
  { now }: LostSubmitFollower,
  { kind, lostAt, checks }: LostSubmit,
  known: Known,
): LostFinding {
  const delayMs = Math.min(MAX_DELAY_MS, FIRST_DELAY_MS * 2 ** Math.min(checks, 10))
  const isHopeless = now() + delayMs >= lostAt + TASK_RULES[kind].deadlineMs + GIVE_UP_AFTER_MS
  return { ...stopAsking(known), nextCheckAt: isHopeless ? null : now() + delayMs }
}

async function findOut(deps: LostSubmitFollower, lost: LostSubmit, task: Task): Promise<LostFinding> {
  const followed = findTaskChannel(deps, task)
  // The channel may come back.
  if (followed === null) return askLater(deps, lost, lost)
  if (followed.adapter.follow === null) return stopAsking(lost)
  if (lost.upstreamId !== null) return followWork(deps, lost, task, followed, lost.upstreamId)
  const found = await find(deps, task, followed)
  switch (found?.type) {
    case undefined:
      return stopAsking(lost)
    case 'accepted':
      return followWork(deps, lost, task, followed, found.upstreamId)
    case 'produced':
      return endLost('made', computeCost(deps, task, found.result), lost)
    case 'refused':
      return endLost('absent', 0n, lost)
    case 'unknown':
      return askLater(deps, lost, lost)
  }
}

/** Looks up a submit by our reference. Null if the provider cannot do that. */
async function find(
  { calls }: LostSubmitFollower,
  task: Task,
  { route, adapter }: TaskChannel,
): Promise<SubmitOutcome | null> {
  const question = adapter.follow?.find
  if (question === undefined) return null
  const limits = { timeoutMs: FIND_TIMEOUT_MS, maxAnswerBytes: FIND_MAX_ANSWER_BYTES }
  try {
    return question.read(await calls.send(question.request(route.channel, task.id, task.job), limits))
  } catch (error) {
    return { type: 'unknown', reason: (error as Error).message }
  }
}

/** Cancels the provider's work if it can, else polls it. */
async function followWork(
  deps: LostSubmitFollower,
  lost: LostSubmit,
  task: Task,
  followed: TaskChannel,
  upstreamId: string,
): Promise<LostFinding> {
  const cancelled = await cancelUpstream(deps, { ...task, upstreamId }).catch(() => null)
  if (cancelled !== null) {
    const { upstreamState = lost.upstreamState, result = null } = cancelled
    return endLost('cancelled', computeCost(deps, task, result), { upstreamId, upstreamState })
  }
  const state = await askUpstream(deps.calls, task, followed, upstreamId)
  if (state.type === 'error') return askLater(deps, lost, { upstreamId, upstreamState: lost.upstreamState })
  const known = { upstreamId, upstreamState: state.upstreamState }
  switch (state.type) {
    case 'produced':
      return endLost('made', computeCost(deps, task, state.result), known)
    case 'failed':
    case 'lapsed':
    case 'cancelled': {
      const end = state.type === 'cancelled' ? 'cancelled' : 'failed'
      return endLost(end, computeCost(deps, task, state.result ?? null), known)
    }
    default:
      return askLater(deps, lost, known)
  }
}

/** Returns what the operator pays; null if the configuration has no cost. */
function computeCost({ catalog }: LostSubmitFollower, task: Task, result: TaskResult | null): Credits | null {
  if (result === null) return 0n
  const price = findUpstreamPrice(catalog().config, task)
  return price && (chargeTask({ ...task, result, state: 'succeeded' }, price, computeMediaCost)?.cost ?? 0n)
}
