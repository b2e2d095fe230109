/**
 * The steps of a task, from the submit to the end. `order/create-task.ts` creates it, and `worker/work.ts` calls `drive`
 * whenever it is due. The row is the truth: the task of a process that died continues, but is never sent again.
 * See docs/architecture.md, "A task".
 */
import {
  type FinalState,
  isFinal,
  pollDelayMs,
  TASK_RULES,
  type TaskState,
} from '../../schemas/tasks/task.ts'
import type { Task } from '../../src/postgres/tasks/types.ts'
import { endAtDeadline, isOver } from './end/deadline.ts'
import { type TaskEngine, transition } from './engine.ts'
import { pollUpstream } from './poll/poll-upstream.ts'
import { endStep, type Step, type StepResult } from './step.ts'
import { storeResults } from './store/store-results.ts'
import { toLostFields } from './submit/refusal.ts'
import { submitUpstream } from './submit/submit-upstream.ts'

/** A process touches the tasks that it submits more often than this; otherwise it counts as gone. */
const SUBMIT_LEASE_MS = 30_000

/**
 * Ends the submit of a process that is gone, which may still be working until the lease is over. A submit that may have
 * been sent is never sent again.
 */
const endAbandonedSubmit: Step = async (deps, task) => {
  const leftMs = task.touchedAt + SUBMIT_LEASE_MS - deps.now()
  if (leftMs > 0) return endStep(task, { delayMs: leftMs })
  deps.log.warn(
    { task: task.id, channel: task.channelId },
    'The process of a submit has gone; the hold goes back, and operators have a record of it',
  )
  return endStep(await transition(deps, task, 'lost', toLostFields('upstream_unreachable')))
}

/** The step for each state, in order. The transition of a step leads to the next. */
const STEPS: Readonly<Record<Exclude<TaskState, FinalState>, Step>> = {
  waiting: submitUpstream,
  submitting: endAbandonedSubmit,
  queued: pollUpstream,
  running: pollUpstream,
  storing: storeResults,
}

/** Null if the task has ended; else the delay, and whether the last poll failed. */
export type Next = { readonly delayMs: number; readonly hasFailed: boolean } | null

/** Runs the task until it ends or has to wait. `failures` is the number of failed polls in a row. */
export async function drive(deps: TaskEngine, loaded: Task, failures: number): Promise<Next> {
  let task = loaded
  while (!isFinal(task.state)) {
    if (isOver(deps, task)) {
      task = await endAtDeadline(deps, task)
      continue
    }
    const result = await STEPS[task.state](deps, task)
    const hasChanged = result.task.version !== task.version
    task = result.task
    if (isFinal(task.state) || (hasChanged && !waitsForUpstream(task))) continue
    return { delayMs: chooseDelay(deps, result, failures), hasFailed: result.hasFailed }
  }
  return null
}

const waitsForUpstream = ({ state }: Task): boolean =>
  state === 'queued' || state === 'running' || state === 'submitting'

function chooseDelay(
  { now }: TaskEngine,
  { task, delayMs, hasFailed }: StepResult,
  failures: number,
): number {
  const rules = TASK_RULES[task.kind]
  const age = now() - (task.acceptedAt ?? task.submittedAt)
  const wanted = delayMs ?? pollDelayMs(rules, age, hasFailed ? failures + 1 : 0)
  // Its deadline no longer ends it.
  if (task.state === 'storing') return wanted
  return Math.max(1, Math.min(wanted, task.deadlineAt - now()))
}
