/**
 * Makes the only settlement of a task, from its row at its end.
 * See docs/api-rules.md, "Tasks" and "Call log rows".
 */

import type { Admission, Settlement } from '../../../schemas/call-log/columns.ts'
import type { AttemptRow, CallStatus } from '../../../schemas/call-log/row.ts'
import type { JobOf } from '../../../schemas/media/job.ts'
import { TASK_RULES, type TaskKind } from '../../../schemas/tasks/task.ts'
import { printForwardedDetail } from '../../../src/core/call-log/call-detail.ts'
import { joinDetail, printLines, printNumber, printText } from '../../../src/core/call-log/detail-text.ts'
import { emptySettlement } from '../../../src/core/call-log/settlement.ts'
import { findJobEndpoint, jobLines, resultLines } from '../../../src/core/media/job-facts.ts'
import type { TokenCharge } from '../../../src/core/pricing/charge.ts'
import { NO_USAGE } from '../../../src/core/pricing/usage.ts'
import type { Task } from '../../../src/postgres/tasks/types.ts'
import { chooseRefusedStatus } from '../../calls/upstream-error.ts'
import { toAwaitedFailure } from '../order/awaited-failure.ts'
import type { TaskCharge } from './charge.ts'

const MICROSECONDS_PER_MS = 1000

/** Links to the results. */
export interface ResultLinks {
  readonly urls: readonly string[]
  /** Epoch milliseconds; null if they never expire. */
  readonly expiresAt: number | null
}
export const NO_LINKS: ResultLinks = { urls: [], expiresAt: null }

function readStatus({ state, refusedStatus, errorCode, errorMessage }: Task): CallStatus {
  if (state === 'succeeded') return 'success'
  if (state !== 'refused') return 'error'
  if (refusedStatus !== null) return chooseRefusedStatus(refusedStatus, errorMessage ?? '')
  if (errorCode === 'invalid_request') return 'rejected'
  return errorCode === 'upstream_timeout' ? 'interrupted' : 'error'
}

/** Returns whether the client waited and got a timeout. See docs/api-rules.md, "Interrupted calls". */
const isOutOfTime = ({ isAwaited, state, errorCode, deadlineAt }: Task, now: number): boolean =>
  isAwaited && (state === 'expired' || state === 'failed') && errorCode === null && now >= deadlineAt

/** Contains no text of the upstream. */
const ENDINGS = {
  failed: ['task_failed', 'The task failed at the upstream.'],
  expired: ['task_expired', 'The task did not end in time.'],
  cancelled: ['task_cancelled', 'The task was cancelled.'],
} as const

type Ended = Pick<Task, 'state' | 'errorCode' | 'errorMessage' | 'endedAt' | 'deadlineAt'>

/** Returns whether the deadline ended a task of a kind without a state for that. */
const hasRunOut = ({ state, errorCode, errorMessage, endedAt, deadlineAt }: Ended): boolean =>
  state === 'failed' && errorCode === null && errorMessage === null && (endedAt ?? 0) >= deadlineAt

/** Returns why a task ended; nulls if it succeeded or goes on. */
export function readEnding(task: Ended): { code: string | null; message: string | null } {
  const { state, errorCode: code, errorMessage: message } = task
  if (state === 'refused') return { code, message }
  if (state !== 'failed' && state !== 'expired' && state !== 'cancelled') return { code: null, message: null }
  const [usualCode, usualMessage] = ENDINGS[hasRunOut(task) ? 'expired' : state]
  return { code: code ?? usualCode, message: message ?? usualMessage }
}

/** As `readEnding`; if a client waited, with the error that it got. */
function readAnsweredEnding(task: Task, now: number): ReturnType<typeof readEnding> {
  const ending = readEnding(task)
  const isAnswered = task.isAwaited && task.state !== 'refused' && ending.code !== null
  return isAnswered ? toAwaitedFailure({ ...task, endedAt: task.endedAt ?? now }, ending) : ending
}

/** Returns the attempts as rows of calls have them. */
export const printAttemptRows = ({ attempts }: Pick<Task, 'attempts'>): AttemptRow[] =>
  attempts.map(({ retry_after: _, extras: __, ...row }) => row)

/** Returns the time until the last attempt, and the duration of that attempt. */
function printAttemptPieces({ attempts, submittedAt }: Task): string {
  const last = attempts.at(-1)
  if (last === undefined) return ''
  const toMicroseconds = (ms: number) => Math.max(0, ms) * MICROSECONDS_PER_MS
  return (
    printNumber('before_upstream_us', toMicroseconds(Date.parse(last.created_at) - submittedAt)) +
    printNumber('waiting_for_upstream_us', toMicroseconds(last.latency_ms))
  )
}

/** Returns the request and its result, the attempts, and the cost. */
function buildDetail(task: Task, charge: TaskCharge | null): string | null {
  const { job, result, state, price } = task
  if (job.work === 'response') return printResponseDetail(task, job, charge)
  const isWithSound = 'sound' in price && price.sound
  return joinDetail(
    printText('endpoint', findJobEndpoint(job)) +
      printLines('request', jobLines(job, isWithSound)) +
      (state === 'succeeded' ? printLines('result', resultLines(result)) : '') +
      printAttemptPieces(task) +
      (charge === null || isByTokens(charge)
        ? ''
        : printText('charge', charge.line, Number.POSITIVE_INFINITY)),
  )
}

/** Prints the detail as for an answer whose client waits. */
function printResponseDetail(task: Task, { call }: JobOf<'response'>, charge: TaskCharge | null) {
  const owed = charge !== null && isByTokens(charge) ? charge : null
  return printForwardedDetail({
    call,
    model: { id: task.model },
    startedAt: 0,
    attempt: null,
    oddities: {
      suspect: owed?.suspect ?? '',
      reported: task.result?.response?.reported ?? null,
      otherModel: '',
    },
    usage: owed?.usage ?? NO_USAGE,
    terms: owed?.terms ?? null,
    more: printAttemptPieces(task),
  })
}

const isByTokens = (charge: TaskCharge): charge is TokenCharge => 'usage' in charge

/** Returns the counts, units and source of a charge for the row. */
function readMeasures(kind: TaskKind, charge: TaskCharge | null): Partial<Settlement> {
  if (charge !== null && isByTokens(charge)) {
    const { usage, source } = charge
    return {
      input_tokens: usage.prompt,
      output_tokens: usage.output,
      cached_tokens: usage.cached,
      cache_write_tokens: usage.cacheWrite,
      reasoning_tokens: usage.reasoning,
      server_tool_calls: usage.serverToolCalls,
      usage_source: source,
    }
  }
  return {
    unit_count: charge?.units ?? null,
    // Rows with tokens have no unit.
    unit_type: kind === 'response' ? null : TASK_RULES[kind].unitType,
    usage_source: charge === null ? 'none' : 'upstream',
  }
}

/** Returns a task as an admitted call. */
const toAdmission = (task: Task): Admission => ({
  request_id: task.requestId,
  account_id: task.accountId,
  key_id: task.keyId,
  model: task.model,
  protocol: task.protocol,
  stream: false,
  submitted_at: task.submittedAt,
  estimate: String(task.hold),
  session_id: task.sessionId,
})

/** Returns the settlement of a task that ended at `now`. `charge` is null if nothing is owed. */
export function settleTask(
  task: Task,
  charge: TaskCharge | null,
  links: ResultLinks,
  now: number,
): Settlement {
  const isLate = isOutOfTime(task, now)
  const ending = readAnsweredEnding(task, now)
  const hasFailed = task.state !== 'succeeded'
  // `attempts_count` is null if the job outlives its request.
  const isAsync = !task.isAwaited && (task.state !== 'refused' || task.isEarly)
  return {
    ...emptySettlement(toAdmission(task), now),
    ...readMeasures(task.kind, charge),
    status: isLate ? 'interrupted' : readStatus(task),
    error_code: ending.code,
    error_message: ending.message,
    cost: String(charge?.cost ?? 0n),
    channel_id: task.channelId,
    attempts_count: isAsync ? null : task.attempts.length,
    attempts: task.attempts.length > 1 || hasFailed ? printAttemptRows(task) : [],
    detail: buildDetail(task, charge),
    task_id: task.id,
    result_urls: [...links.urls],
    result_expires_at: links.expiresAt,
  }
}
