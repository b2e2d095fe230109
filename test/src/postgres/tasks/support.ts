/** Tasks to make and to move, with the settlements of their ends. */

import type { WalletTotals } from '../../../../schemas/accounts/account.ts'
import type { Settlement } from '../../../../schemas/call-log/columns.ts'
import { mediaJob, type TaskResult } from '../../../../schemas/media/job.ts'
import type { MediaPrice } from '../../../../schemas/media/price.ts'
import { ONE_RATE } from '../../../../schemas/money.ts'
import { TASK_RULES, type TaskEvent } from '../../../../schemas/tasks/task.ts'
import { newId } from '../../../../src/core/keys/ids.ts'
import type { Tasks } from '../../../../src/postgres/tasks/repository.ts'
import type {
  MoveOutcome,
  NewTask,
  Task,
  TaskChanges,
  TaskMove,
} from '../../../../src/postgres/tasks/types.ts'
import { settlement } from '../support.ts'

export const PRICE: MediaPrice = {
  unit: 'second',
  variant: null,
  variants: {},
  sound: false,
  perUnit: String(2n * ONE_RATE),
  pixelTiers: [],
  perInputImage: '0',
  leastImages: 1,
  defaultPixels: null,
  maxSeconds: null,
  discount: String(ONE_RATE),
}

export const RESULT: TaskResult = {
  files: [],
  seconds: 4,
  variant: null,
  beyond: [],
  billed_characters: null,
  input_seconds: null,
  tracks: [],
  made_id: null,
  segments: null,
  transcript: null,
}

export function newVideo(accountId: string, more: Partial<NewTask> = {}): NewTask {
  const now = Date.now()
  return {
    id: newId('vid'),
    kind: 'video',
    accountId,
    keyId: 'key_01J8Z3N4V9QKX2T5W7Y0ABCDEF',
    requestId: newId('req'),
    model: 'motion-large',
    protocol: 'videos',
    sessionId: null,
    job: mediaJob.parse({ work: 'video', content: [{ type: 'text', text: 'a kite' }], duration: 5 }),
    price: PRICE,
    hold: 500n,
    isEarly: false,
    isAwaited: false,
    channelIds: ['film'],
    submittedAt: now,
    deadlineAt: now + TASK_RULES.video.deadlineMs,
    idempotency: null,
    ...more,
  }
}

interface TaskDatabase {
  readonly tasks: Pick<Tasks, 'create' | 'applyTransition'>
}

/** @throws Error when the task is not taken on */
export async function created(
  database: { readonly tasks: Pick<Tasks, 'create'> },
  task: NewTask,
): Promise<Task> {
  const outcome = await database.tasks.create(task)
  if (outcome.outcome !== 'created') throw new Error(outcome.outcome)
  return outcome.task
}

export const hold = (database: TaskDatabase, accountId: string, amount: bigint, id?: string): Promise<Task> =>
  created(database, newVideo(accountId, { ...(id !== undefined && { id }), hold: amount }))

/** The work was done, and costs so much. */
export async function settle(database: TaskDatabase, task: Task, cost: bigint): Promise<WalletTotals> {
  const claimed = await database.tasks.applyTransition(move(task, 'claimed'))
  const storing = await database.tasks.applyTransition(move(claimed.task, 'produced', { result: RESULT }))
  return walletOf(await database.tasks.applyTransition(move(storing.task, 'stored', {}, cost)))
}

/** `refused`: it was never taken on. `failed`: it came to nothing. */
export const giveBack = async (
  database: TaskDatabase,
  task: Task,
  event: 'refused' | 'failed',
): Promise<WalletTotals> => walletOf(await database.tasks.applyTransition(move(task, event)))

function walletOf(outcome: MoveOutcome): WalletTotals {
  if (outcome.outcome !== 'moved' || outcome.wallet === null) throw new Error('no money has moved')
  return outcome.wallet
}

/** As the table of transitions has it; a task that ends has a settlement of `cost`. */
export function move(task: Task, event: TaskEvent, changes: TaskChanges = {}, cost = 0n): TaskMove {
  const transition = TASK_RULES[task.kind].transitions[task.state][event]
  if (transition === null) throw new Error(`${event} cannot be in ${task.state}`)
  const at = Date.now()
  const { to, money } = transition
  return {
    id: task.id,
    version: task.version,
    event,
    to,
    money,
    at,
    changes: money === null ? changes : { ...changes, cost, endedAt: at },
    settlement: money === null ? null : endOf(task, cost),
  }
}

const endOf = (task: Task, cost: bigint): Settlement =>
  settlement(task.accountId, {
    request_id: task.requestId,
    task_id: task.id,
    key_id: task.keyId,
    cost: String(cost),
    estimate: String(task.hold),
    submitted_at: task.submittedAt,
    attempts_count: null,
  })
