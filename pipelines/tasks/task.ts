/**
 * The work on one task that is due: whatever comes next, until it has ended or has to wait. The row is the truth; what
 * a process that died left behind is continued, but never sent again. See docs/architecture.md, "A task".
 */
import { isFinal, pollDelayMs, TASK_RULES } from '../../schemas/tasks/task.ts'
import type { Task } from '../../src/postgres/tasks/types.ts'
import { type EngineDeps, transitionedTask } from './engine.ts'
import { findUpstream, pollUpstream } from './poll/poll-upstream.ts'
import { endsAt } from './poll/unconfirmed.ts'
import { storeResults } from './store/store-results.ts'
import { submitUpstream } from './submit/submit-upstream.ts'

/** A process that submits touches its tasks more often than this: who does not is gone. */
export const SUBMIT_LEASE_MS = 30_000
/** No upstream can look the task up: it waits for its end. */
const WAIT_FOR_END_MS = 60_000

/** Null: it has ended. Else how long it waits, and whether the last poll failed. */
export type Next = { readonly delayMs: number; readonly hasFailed: boolean } | null

/** `failures` looks in a row have failed before. */
export async function drive(deps: EngineDeps, loaded: Task, failures: number): Promise<Next> {
  let task = loaded
  for (;;) {
    if (isFinal(task.state)) return null
    if (isOver(deps, task)) {
      const last = await finalLookup(deps, task)
      task = last.version === task.version ? await transitionedTask(deps, task, 'deadline') : last
      continue
    }
    const before = task
    const result = await step(deps, task)
    task = result.task
    // What has changed may have something to be done about it at once.
    if (result.isDone && task.version !== before.version && !waitsForUpstream(task)) continue
    if (isFinal(task.state)) return null
    return { delayMs: delayOf(deps, task, result, failures), hasFailed: result.hasFailed }
  }
}

/** The gateway itself may have been away: an upstream that has the task after all is not left alone with it unasked. */
const finalLookup = async (deps: EngineDeps, task: Task): Promise<Task> =>
  (task.state === 'unconfirmed' ? (await findUpstream(deps, task))?.task : null) ?? task

const waitsForUpstream = ({ state }: Task): boolean =>
  state === 'queued' || state === 'running' || state === 'unconfirmed' || state === 'submitting'

const isOver = ({ now }: EngineDeps, task: Task): boolean => task.state !== 'storing' && now() >= endsAt(task)

interface Step {
  readonly task: Task
  readonly isDone: boolean
  readonly hasFailed: boolean
  /** Null: as the kind is polled. */
  readonly delayMs: number | null
}

const stepResult = (task: Task, more: Partial<Step> = {}): Step => ({
  task,
  isDone: true,
  hasFailed: false,
  delayMs: null,
  ...more,
})

async function step(deps: EngineDeps, task: Task): Promise<Step> {
  switch (task.state) {
    case 'waiting':
      return stepResult(await submitUpstream(deps, task))
    case 'submitting':
      return endAbandonedSubmit(deps, task)
    case 'unconfirmed':
      return unconfirmed(deps, task)
    case 'storing':
      return stepResult(await storeResults(deps, task))
    default: {
      const { task: after, isKnown } = await pollUpstream(deps, task)
      return stepResult(after, { hasFailed: !isKnown })
    }
  }
}

/** Ends a submit that was abandoned; its process may still be at work until the lease is over. */
async function endAbandonedSubmit(deps: EngineDeps, task: Task): Promise<Step> {
  const leftMs = task.touchedAt + SUBMIT_LEASE_MS - deps.now()
  if (leftMs > 0) return stepResult(task, { isDone: false, delayMs: leftMs })
  deps.log.warn({ task: task.id, channel: task.channelId }, 'Lost the outcome of a submit; not sent again')
  return stepResult(await transitionedTask(deps, task, 'lost'), { delayMs: 0 })
}

async function unconfirmed(deps: EngineDeps, task: Task): Promise<Step> {
  if (isSynchronous(deps, task)) {
    // Its answer would have been the result: nothing was delivered, and nothing is to come.
    const changes = { errorCode: 'upstream_error', errorMessage: 'The connection to the upstream was lost.' }
    return stepResult(await transitionedTask(deps, task, 'failed', changes))
  }
  const result = await findUpstream(deps, task)
  if (result === null) return stepResult(task, { delayMs: WAIT_FOR_END_MS })
  return stepResult(result.task, { hasFailed: !result.isKnown })
}

const isSynchronous = ({ catalog, adapterOf }: EngineDeps, { channelId }: Task): boolean => {
  const channel = catalog().channels.find(({ id }) => id === channelId)
  return channel !== undefined && adapterOf(channel.protocol)?.follow === null
}

function delayOf({ now }: EngineDeps, task: Task, { delayMs, hasFailed }: Step, failures: number): number {
  const rules = TASK_RULES[task.kind]
  const age = now() - (task.acceptedAt ?? task.submittedAt)
  const wanted = delayMs ?? pollDelayMs(rules, age, hasFailed ? failures + 1 : 0)
  // Its time does not end it any more.
  if (task.state === 'storing') return wanted
  return Math.max(1, Math.min(wanted, endsAt(task) - now()))
}
