/**
 * Submits a task: tries one channel after the other, as long as each has certainly not accepted it. A task that may have
 * been accepted is never sent again.
 * See docs/failure-modes.md, "Money", rows 19 and 24; docs/api-rules.md, "Tasks" and "Timeouts".
 */

import { nameUpstreamStatus } from '../../../schemas/failure.ts'
import { TASK_RULES } from '../../../schemas/tasks/task.ts'
import type { MediaAnswer, Refused, SubmitOutcome, TaskAdapter } from '../../../src/channels/media/adapter.ts'
import { PAYMENT_REQUIRED, readFields, toFields } from '../../../src/channels/media/answer.ts'
import type { Route } from '../../../src/core/routing/catalog.ts'
import { chooseNextRoute } from '../../../src/core/routing/order.ts'
import type { Task, TaskAttempt, TaskChanges } from '../../../src/postgres/tasks/types.ts'
import { ACCESS_REFUSED, isAboutAccess, isHidden } from '../../calls/upstream-error.ts'
import {
  discardAnswer,
  finishTask,
  hasEndedWithout,
  maskText,
  type SubmitEnd,
  type TaskEngine,
  transition,
  tryTransition,
} from '../engine.ts'
import { MAX_ANSWER_BYTES, MediaCallFailure, StoreFailure } from '../ports.ts'
import { endStep, type Step } from '../step.ts'
import { deliverInline } from '../store/inline-results.ts'
import { type PreparedJob, prepareFiles, UnusableFile } from './prepare-files.ts'
import { OWN_REFUSALS, type OwnRefusal, retryAfterIn } from './refusal.ts'

/** With less time left, an attempt is not worthwhile. */
const LEAST_ATTEMPT_MS = 100
/** While PostgreSQL is down, the process keeps an upstream's answer for this long. */
const KEEP_ANSWER_MS = 600_000
const KEEP_RETRY_MS = 1_000

/** The result of one attempt. */
type Attempt =
  | Extract<SubmitOutcome, { type: 'accepted' | 'produced' }>
  /** It certainly did not take it on. `mayTryNext`: another channel may. */
  | {
      readonly type: 'refused'
      readonly failure: Failure
      readonly mayTryNext: boolean
      readonly isChannelFault: boolean
      /** The upstream's message, only for operators; absent if `failure` has it. */
      readonly detail?: string
    }
  /** Nobody knows what became of it. */
  | { readonly type: 'lost'; readonly failure: Failure }

/** Why the task is refused if this was the last attempt. */
interface Failure {
  readonly code: string
  readonly message: string
  /** The upstream's status, if the message is its own. */
  readonly status: number | null
  /** The upstream's `retry-after`. */
  readonly retryAfter: string | null
  /** Its other fields. */
  readonly extras?: TaskAttempt['extras']
  readonly end: SubmitEnd
}

const makeFailure = (code: OwnRefusal, end: SubmitEnd): Failure => ({
  code,
  message: OWN_REFUSALS[code],
  status: null,
  retryAfter: null,
  end,
})

const toRefusedFields = ({ code, message, status }: Failure) => ({
  errorCode: code,
  errorMessage: message,
  refusedStatus: status,
})

/** Submits the task: it then waits for an upstream, has its results, is refused, or was taken by another process. */
export const submitUpstream: Step = async (deps, task) => endStep(await submitTask(deps, task))

async function submitTask(deps: TaskEngine, task: Task): Promise<Task> {
  const rules = TASK_RULES[task.kind]
  const untilAt = Math.min(task.submittedAt + rules.ladderTimeoutMs, task.deadlineAt)
  // The client already has its error.
  if (!task.isEarly && deps.now() >= untilAt)
    return transition(deps, task, 'refused', toRefusedFields(makeFailure('service_unavailable', 'timeout')))
  return new SubmitLadder(deps, task, task.isEarly ? deps.now() + rules.ladderTimeoutMs : untilAt).run()
}

/** Returns how long the work takes at a channel that answers with the result; 0 for others. */
const readWorkMs = ({ findAdapter }: TaskEngine, { protocol }: Route['channel']): number =>
  findAdapter(protocol)?.workTimeoutMs ?? 0

/** The attempts at one submit. */
class SubmitLadder {
  readonly #deps: TaskEngine
  readonly #untilAt: number
  readonly #routes: readonly Route[]
  readonly #tried: Route[] = []
  readonly #attempts: TaskAttempt[] = []
  #task: Task

  constructor(deps: TaskEngine, task: Task, untilAt: number) {
    this.#deps = deps
    this.#task = task
    this.#routes = listRoutes(deps, task)
    const workMs = task.isEarly ? this.#routes.map(({ channel }) => readWorkMs(deps, channel)) : []
    this.#untilAt = Math.min(untilAt + Math.max(0, ...workMs), task.deadlineAt)
  }

  async run(): Promise<Task> {
    let last = makeFailure('no_channel_available', 'unreachable')
    for (;;) {
      const route = this.#chooseNext()
      if (route === null) return this.#refuse(last)
      const adapter = this.#deps.findAdapter(route.channel.protocol)!
      const prepared = await this.#prepare(adapter, route)
      if (prepared === null) return this.#task
      if (!(await this.#claim(route))) return this.#tried.length === 0 ? this.#task : this.#refuse(last)
      const attempt = await this.#attempt(route, adapter, prepared)
      if (attempt.type !== 'refused') return this.#take(attempt)
      last = attempt.failure
      if (!attempt.mayTryNext) return this.#refuse(last)
      if (this.#deps.now() > this.#untilAt - LEAST_ATTEMPT_MS)
        return this.#refuse(makeFailure('upstream_timeout', 'timeout'))
    }
  }

  #chooseNext(): Route | null {
    const open = this.#routes.filter((route) => !this.#tried.includes(route))
    const available = this.#deps.health.listAvailable(open, ({ channel }) => channel.id)
    return chooseNextRoute(available, this.#tried, null, this.#deps.random)
  }

  /** Returns null if the task is refused because of its files or the store. */
  async #prepare(adapter: TaskAdapter, { channel }: Route): Promise<PreparedJob | null> {
    try {
      return await prepareFiles(this.#deps, this.#task, adapter, channel)
    } catch (error) {
      await this.#refuse(this.#toFailure(error))
      return null
    }
  }

  #toFailure(error: unknown): Failure {
    if (error instanceof UnusableFile)
      return { ...makeFailure('invalid_request', 'refused'), message: error.message }
    if (!(error instanceof StoreFailure)) throw error
    const { id } = this.#task
    this.#deps.log.error({ task: id, reason: error.message }, 'Failed to store or read a file of a job')
    return makeFailure('service_unavailable', 'refused')
  }

  /** Records in the row which channel may have the task. Returns false if another process has moved the task. */
  async #claim({ channel, upstreamModel }: Route): Promise<boolean> {
    const changes = { channelId: channel.id, upstreamModel, attempts: this.#attempts }
    const { task, isApplied } = await tryTransition(this.#deps, this.#task, 'claimed', changes)
    this.#task = task
    return isApplied
  }

  async #attempt(route: Route, adapter: TaskAdapter, prepared: PreparedJob): Promise<Attempt> {
    const { health, now, metrics, log } = this.#deps
    const { channel } = route
    this.#tried.push(route)
    health.begin(channel.id)
    const startedAt = now()
    const attempt = await this.#send(route, adapter, prepared)
    const failure = 'failure' in attempt ? attempt.failure : null
    const isFault = attempt.type === 'lost' || (attempt.type === 'refused' && attempt.isChannelFault)
    const detail = attempt.type === 'refused' ? attempt.detail : undefined
    if (detail !== undefined)
      log.warn(
        { task: this.#task.id, channel: channel.id, reason: detail },
        'Upstream refused the key of a channel',
      )
    if (failure === null) health.noteSuccess(channel.id, now() - startedAt)
    else if (isFault) health.noteFailure(channel.id, { ...failure, message: detail ?? failure.message })
    else health.noteRefusal(channel.id, failure)
    metrics.countSubmit(failure?.end ?? (attempt.type as 'accepted' | 'produced'))
    this.#attempts.push({
      seq: this.#attempts.length + 1,
      created_at: new Date(startedAt).toISOString(),
      latency_ms: Math.max(0, now() - startedAt),
      error_code: failure?.code ?? null,
      error_message: failure?.message ?? null,
      ...(failure !== null && failure.retryAfter !== null && { retry_after: failure.retryAfter }),
      ...(failure?.extras !== undefined && { extras: failure.extras }),
    })
    return attempt
  }

  async #send(route: Route, adapter: TaskAdapter, prepared: PreparedJob): Promise<Attempt> {
    const { calls, now, log } = this.#deps
    const { id, kind, model } = this.#task
    const submit = { ...prepared, upstreamModel: route.upstreamModel, reference: id }
    const isAsync = adapter.follow !== null
    const left = this.#untilAt - now()
    try {
      const workMs = this.#task.isEarly ? readWorkMs(this.#deps, route.channel) : 0
      const timeoutMs = Math.max(1, Math.min(workMs || TASK_RULES[kind].submitTimeoutMs, left))
      const request = adapter.submit(route.channel, submit)
      const answer = await calls.send(request, { timeoutMs, maxAnswerBytes: MAX_ANSWER_BYTES })
      const outcome = adapter.readSubmit(answer, submit)
      if (outcome.type === 'refused')
        return toRefusedAttempt({ ...outcome, ...readBesides(answer, route, model) }, route, model)
      if (outcome.type !== 'unknown') return outcome
      const reason = maskText(outcome.reason, route, model)
      log.warn({ task: id, channel: route.channel.id, reason }, 'Failed to read the answer to a submit')
      return isAsync ? toLostAttempt(answer.status, reason) : toUnusableAttempt('upstream_error', 'unusable')
    } catch (error) {
      const isCut = error instanceof MediaCallFailure
      log.warn({ task: id, channel: route.channel.id, reason: (error as Error).message }, 'Submit failed')
      // An error in the adapter may come after the upstream's answer.
      if (isAsync && (!isCut || error.isSent))
        return { type: 'lost', failure: makeFailure(chooseCode(error as Error), 'lost') }
      if (isCut && error.isTimeout) return toUnusableAttempt('upstream_timeout', 'timeout')
      return isCut
        ? toUnusableAttempt('upstream_unreachable', 'unreachable')
        : toUnusableAttempt('upstream_error', 'unusable')
    }
  }

  async #take(attempt: Exclude<Attempt, { type: 'refused' }>): Promise<Task> {
    const attempts = this.#attempts
    if (attempt.type === 'lost') return this.#lose(attempt.failure)
    if (attempt.type === 'accepted') {
      const { upstreamId, upstreamState, isRunning } = attempt
      const changes = { upstreamId, upstreamState, acceptedAt: this.#deps.now(), attempts }
      return this.#resolve(isRunning ? 'started' : 'accepted', changes)
    }
    const result = await deliverInline(this.#deps, this.#task, attempt)
    if (result !== null) return this.#resolve('produced', { result, attempts })
    const errorMessage = 'The results could not be stored.'
    return this.#move('failed', { errorCode: 'upstream_error', errorMessage, attempts })
  }

  #refuse(failure: Failure): Promise<Task> {
    const ended = { ...toRefusedFields(failure), attempts: this.#attempts }
    return this.#keepTrying(() => this.#move('refused', ended))
  }

  /** Work that the upstream may have begun is not the customer's task: it becomes a record for operators. */
  #lose(failure: Failure): Promise<Task> {
    const { id, channelId } = this.#task
    this.#deps.log.warn(
      { task: id, channel: channelId, code: failure.code },
      'Lost the outcome of a submit; the hold goes back, and operators have a record of it',
    )
    const ended = { ...toRefusedFields(failure), attempts: this.#attempts }
    return this.#keepTrying(() => this.#move('lost', ended))
  }

  /** Another process may think that this one is gone: the upstream's answer counts nevertheless. */
  async #resolve(event: 'accepted' | 'started' | 'produced', changes: TaskChanges): Promise<Task> {
    const after = await this.#keepTrying(() => this.#move(event, changes))
    return hasEndedWithout(after) ? this.#keepTrying(() => discardAnswer(this.#deps, after, changes)) : after
  }

  /** Retries until the row is written: no other process knows the answer. */
  async #keepTrying(move: () => Promise<Task>): Promise<Task> {
    const { now, pause } = this.#deps
    const giveUpAt = now() + KEEP_ANSWER_MS
    for (;;) {
      try {
        return await move()
      } catch (error) {
        if (now() >= giveUpAt) throw error
        await pause(KEEP_RETRY_MS)
      }
    }
  }

  async #move(event: Parameters<typeof transition>[2], changes: TaskChanges): Promise<Task> {
    this.#task =
      event === 'produced'
        ? await finishTask(this.#deps, this.#task, changes)
        : await transition(this.#deps, this.#task, event, changes)
    return this.#task
  }
}

/** The upstream's own status, if it is that of a failure. */
const toLostAttempt = (status: number, message: string): Attempt => ({
  type: 'lost',
  failure:
    status < 400
      ? makeFailure('upstream_error', 'lost')
      : { code: nameUpstreamStatus(status).code, message, status, retryAfter: null, end: 'lost' },
})

function chooseCode(error: Error): OwnRefusal {
  if (!(error instanceof MediaCallFailure)) return 'upstream_error'
  return error.isTimeout ? 'upstream_timeout' : 'upstream_unreachable'
}

function toUnusableAttempt(code: OwnRefusal, end: SubmitEnd): Attempt {
  return { type: 'refused', failure: makeFailure(code, end), mayTryNext: true, isChannelFault: true }
}

type Besides = Pick<Failure, 'retryAfter' | 'extras'>
/** Longer details are left out: they may quote the request. */
const MAX_DETAILS_CHARS = 16_384

/** Returns the other fields of a refusal, for the client. */
function readBesides(answer: MediaAnswer, route: Route, model: string): Besides {
  const { param, details } = toFields(readFields(answer)?.error) ?? {}
  const mask = (value: unknown): unknown => {
    if (typeof value === 'string') return maskText(value, route, model)
    if (Array.isArray(value)) return value.map(mask)
    const fields = toFields(value)
    return fields === null
      ? value
      : Object.fromEntries(Object.entries(fields).map(([name, inner]) => [name, mask(inner)]))
  }
  const isShown = details !== undefined && JSON.stringify(details).length <= MAX_DETAILS_CHARS
  const extras = {
    ...(typeof param === 'string' && { param: maskText(param, route, model) }),
    ...(isShown && { details: mask(details) }),
  }
  const retryAfter = retryAfterIn(answer.header('retry-after'))
  return Object.keys(extras).length === 0 ? { retryAfter } : { retryAfter, extras }
}

const REQUEST_TIMEOUT = 408
const TOO_MANY_REQUESTS = 429

/** A customer's mistake does not count against the channel, and every other channel would refuse it too. */
function toRefusedAttempt(
  { status, message, code: named, retryAfter, extras }: Refused & Besides,
  route: Route,
  model: string,
): Attempt {
  const isAccess = isAboutAccess(status, message)
  if (isHidden(route.channel, status, message)) {
    const failure = { ...makeFailure('upstream_error', 'refused'), message: ACCESS_REFUSED }
    const detail = `The upstream refused the channel's access with status ${status}: ${maskText(message, route, model)}`
    // Another channel may still have credit.
    return { type: 'refused', failure, mayTryNext: status === PAYMENT_REQUIRED, isChannelFault: true, detail }
  }
  const isPassing = status === REQUEST_TIMEOUT || status === TOO_MANY_REQUESTS || status >= 500
  const mayTryNext = isPassing || status === PAYMENT_REQUIRED
  const code = named ?? nameUpstreamStatus(status).code
  const words = maskText(message, route, model)
  const failure: Failure = { code, message: words, status, retryAfter, extras, end: 'refused' }
  return { type: 'refused', failure, mayTryNext, isChannelFault: isPassing || isAccess }
}

/** Lists the task's channels that still exist and do this work. */
function listRoutes({ catalog, findAdapter }: TaskEngine, { model: name, job, channelIds }: Task): Route[] {
  const current = catalog()
  const model = current.resolve(name)
  if (model === null) return []
  const protocols = new Set(current.channels.map(({ protocol }) => protocol))
  return [...protocols]
    .filter((protocol) => findAdapter(protocol)?.works.includes(job.work))
    .flatMap((protocol) => current.routes(model, protocol))
    .filter(({ channel }) => channelIds.includes(channel.id))
    .toSorted((a, b) => a.channel.priority - b.channel.priority)
}
