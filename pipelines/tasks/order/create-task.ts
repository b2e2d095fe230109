/**
 * Turns an endpoint's order into a task: row and hold in one transaction, then a message to the workers, then the wait
 * for what the client was promised. See docs/api-rules.md, "Tasks"; docs/architecture.md, "A task".
 */
import {
  asyncScheduler,
  concatMap,
  firstValueFrom,
  map,
  type Observable,
  of,
  type SchedulerLike,
  timer,
} from 'rxjs'
import type { WalletTotals } from '../../../schemas/accounts/account.ts'
import { Failure } from '../../../schemas/failure.ts'
import { isFinal, TASK_RULES } from '../../../schemas/tasks/task.ts'
import { newId } from '../../../src/core/keys/ids.ts'
import { readSessionId } from '../../../src/core/routing/session.ts'
import type { CreateTaskOutcome, NewTask, Task, TaskMove } from '../../../src/postgres/tasks/types.ts'
import { insufficientBalance, toSpendFailure } from '../../calls/balance.ts'
import type { PipelineLog } from '../../settlement/retrying.ts'
import { WAIT_GRACE_MS } from '../end/deadline.ts'
import type { TaskTransitions } from '../engine.ts'
import type { FindAdapter } from '../ports.ts'
import { toLostFields, toRefusal } from '../submit/refusal.ts'
import { planTransition, planUnsentRefusal } from '../transition.ts'
import type { TaskMessages } from '../worker/messages.ts'
import type { TaskOrder } from './order.ts'
import { isAccepted, type TaskWatch } from './watch-tasks.ts'

/** While PostgreSQL is down. Later the sweep finds what nobody took on. */
const FORGET_RETRY_MS = 2_000
const FORGET_TRIES = 60
/** Retries if a worker has moved the task. */
const MOVE_TRIES = 5

interface OrderedTasks extends TaskTransitions {
  create(task: NewTask): Promise<CreateTaskOutcome>
  read(ids: readonly string[]): Promise<Task[]>
}

export interface TaskOrders {
  readonly database: { readonly tasks: OrderedTasks }
  readonly messages: TaskMessages
  readonly watch: TaskWatch
  readonly findAdapter: FindAdapter
  /** Returns whether PostgreSQL may have committed although the statement failed. */
  readonly isTransient: (error: unknown) => boolean
  /** Called with the totals after a hold, for this process's views. */
  readonly onWallet: (wallet: WalletTotals) => void
  readonly log: PipelineLog
  readonly now?: () => number
  readonly scheduler?: SchedulerLike
}

/**
 * Creates the task with its hold, and publishes it. The same intent with the same Idempotency-Key finds the earlier
 * task. Rejects with Failure `quota_exceeded`, `idempotency_key_reuse`, `service_unavailable`.
 */
export const createTask =
  (deps: TaskOrders) =>
  async (order: TaskOrder): Promise<Task> => {
    const { database, findAdapter, isTransient, onWallet, messages, now = Date.now } = deps
    const task = buildTask(order, findAdapter, now())
    // A repeated intent may have its hold already.
    const { known } = order.caller
    if (task.idempotency === null && order.hold > known.view.balance)
      throw insufficientBalance(known, order.hold)
    const outcome = await database.tasks.create(task).catch((error: Error) => {
      if (isTransient(error)) void undoCreation(deps, task)
      return throwUnavailable(error)
    })
    if (outcome.outcome === 'created' || outcome.outcome === 'insufficient') onWallet(outcome.wallet)
    if (outcome.outcome === 'created') {
      // Even if the client has left: the next request with its key waits for this task.
      messages.publish(outcome.task)
      messages.announceWallets([outcome.wallet])
    }
    return readTask(outcome, order)
  }

/**
 * Emits the task once it is in the state of `order.until`, then completes.
 * @throws Failure `service_unavailable`, `upstream_timeout`, `upstream_unreachable`, `upstream_error`; UpstreamRefusal
 *   if the upstream refused the submit
 */
export const awaitTask =
  (deps: TaskOrders) =>
  (order: TaskOrder, task: Task): Observable<Task> =>
    task.isEarly ? of(task) : waitUntilReached(deps, order.until === 'ended', task)

/**
 * Ends a task that may exist although its client got an error: it must not be carried out. A late transaction may still
 * create it. So this creates the task itself, after which that transaction changes nothing, and ends it.
 */
async function undoCreation(deps: TaskOrders, wanted: NewTask): Promise<void> {
  const { database, messages, onWallet, now = Date.now, log, scheduler = asyncScheduler } = deps
  for (let tries = FORGET_TRIES; tries > 0; tries--) {
    await firstValueFrom(timer(FORGET_RETRY_MS, scheduler))
    try {
      const made = await database.tasks.create(wanted)
      // Otherwise its intent has another task by now, or the wallet cannot cover it.
      if (made.outcome !== 'created') return
      const move = planUnsentRefusal(made.task, now())
      if (move === null) return
      const outcome = await database.tasks.applyTransition(move)
      if (outcome.outcome !== 'moved' || outcome.wallet === null) continue
      onWallet(outcome.wallet)
      return messages.announceWallets([outcome.wallet])
    } catch (error) {
      log.warn({ task: wanted.id, error }, 'Outcome of creating a task is unknown; checked later')
    }
  }
}

function readTask(outcome: CreateTaskOutcome, { caller, hold }: TaskOrder): Task {
  switch (outcome.outcome) {
    case 'insufficient':
      throw insufficientBalance(caller.known, hold)
    case 'over_limit':
      throw toSpendFailure(outcome.refusal)
    case 'reused_key':
      throw new Failure('idempotency_key_reuse', 'This Idempotency-Key was used with a different request.')
    default:
      return outcome.task
  }
}

function throwUnavailable(error: Error): never {
  throw new Failure(
    'service_unavailable',
    'The service cannot take on work at the moment. Try again in a minute.',
    { internal: `task row: ${error.message}` },
  )
}

function buildTask(order: TaskOrder, findAdapter: FindAdapter, now: number): NewTask {
  const { caller, kind, protocol, model, job, price, hold, routes, until, deadlineMs, idempotency } = order
  const rules = TASK_RULES[kind]
  const { request, known } = caller
  const isWhole = routes.some(({ channel }) => findAdapter(channel.protocol)?.follow === null)
  return {
    id: newId(rules.idPrefix, now),
    kind,
    accountId: known.account.id,
    keyId: known.key.id,
    requestId: request.requestId,
    model: model.id,
    protocol,
    sessionId: readSessionId(request.header),
    job,
    price,
    hold,
    isEarly: until === 'accepted' && isWhole,
    isAwaited: until === 'ended',
    channelIds: routes.map(({ channel }) => channel.id),
    submittedAt: request.submittedAt,
    deadlineAt: request.submittedAt + (deadlineMs ?? rules.deadlineMs),
    callbackUrl: order.callbackUrl,
    idempotency,
  }
}

function waitUntilReached(deps: TaskOrders, isEnd: boolean, task: Task): Observable<Task> {
  const { now = Date.now, watch } = deps
  const boundAt = isEnd ? task.deadlineAt : task.submittedAt + TASK_RULES[task.kind].ladderTimeoutMs
  const boundMs = Math.max(0, boundAt - now()) + WAIT_GRACE_MS
  return watch.until(task, isEnd ? isFinal : isAccepted, boundMs).pipe(
    concatMap(({ task: seen, isReached }) => (isReached ? of(seen) : endAbandoned(deps, seen, isEnd))),
    map((seen) => {
      if (seen.state === 'refused') throw toRefusal(seen)
      return seen
    }),
  )
}

/**
 * Returns how a task ends when its client's wait ends: an unsent task is not sent, and a submit without an answer is
 * lost. A client that waits for the result gets a timeout, which is free. Null if the task goes on.
 */
function planEndOfWait(task: Task, isEnd: boolean, now: number): TaskMove | null {
  if (task.state === 'submitting')
    return planTransition(task, 'lost', toLostFields('upstream_timeout'), { now })
  return planUnsentRefusal(task, now) ?? (isEnd ? planTransition(task, 'deadline', {}, { now }) : null)
}

/** Ends a task whose client's wait is over, whatever a worker is about to do. */
async function endAbandoned(deps: TaskOrders, seen: Task, isEnd: boolean): Promise<Task> {
  const { now = Date.now } = deps
  let task = seen
  for (let tries = 0; tries < MOVE_TRIES; tries++) {
    const move = planEndOfWait(task, isEnd, now())
    if (move === null) return task
    const outcome = await deps.database.tasks.applyTransition(move).catch(throwUnavailable)
    task = outcome.task
    if (outcome.outcome === 'stale') continue
    if (outcome.wallet !== null) {
      deps.onWallet(outcome.wallet)
      deps.messages.announceWallets([outcome.wallet])
    }
    return task
  }
  throw new Failure('upstream_timeout', 'The upstream did not answer in time.')
}
