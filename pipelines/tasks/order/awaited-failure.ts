/** The error for a client that waited for a task; its row in the call log says the same. */
import { Failure, type FailureCode } from '../../../schemas/failure.ts'
import { findMediaFailureStatus } from '../../../src/channels/media/failure.ts'
import type { Task } from '../../../src/postgres/tasks/types.ts'
import { UpstreamRefusal } from '../../calls/upstream-error.ts'

const CODE_OF_STATUS: Readonly<Record<number, FailureCode>> = {
  400: 'invalid_request',
  502: 'upstream_error',
  503: 'service_unavailable',
  504: 'upstream_timeout',
}

/** Statuses of an upstream that are passed on, without headers of ours. */
const OF_UPSTREAM: ReadonlySet<number> = new Set([401, 429])

type Ended = Pick<Task, 'state' | 'errorCode' | 'endedAt' | 'deadlineAt'>

/** Returns whether the task ran out of time without another failure. */
const isLate = ({ state, errorCode, endedAt, deadlineAt }: Ended): boolean =>
  state === 'expired' ||
  (state === 'failed' && errorCode === null && endedAt !== null && endedAt >= deadlineAt)

/** Returns the error of a task that has failed, expired or been cancelled; `ending` says why. */
export function toAwaitedFailure(
  task: Ended,
  { code, message }: { readonly code: string | null; readonly message: string | null },
): Failure | UpstreamRefusal {
  if (isLate(task)) return new Failure('upstream_timeout', 'The upstream did not finish in time.')
  const words = message ?? 'The task failed.'
  if (code === 'connection_failed') return new Failure('upstream_unreachable', words)
  const status = findMediaFailureStatus(code ?? '')
  if (OF_UPSTREAM.has(status)) return new UpstreamRefusal(status, words, [])
  return new Failure(CODE_OF_STATUS[status] ?? 'upstream_error', words)
}
