/** What a request is answered that waited for the end of a task which did not succeed. Source: docs/upstream-task.md, "Errors". */
import { Failure, type FailureCode } from '../../schemas/failure.ts'
import { mediaFailureStatus } from '../../src/channels/media-failure.ts'
import type { Task } from '../../src/postgres/task-types.ts'
import { endingOf } from '../tasks/task-record.ts'

const CODE_OF_STATUS: Readonly<Record<number, FailureCode>> = {
  400: 'invalid_request',
  429: 'rate_limit_exceeded',
  502: 'upstream_error',
  503: 'service_unavailable',
  504: 'upstream_timeout',
}

/** Nobody said why it failed before its time was up. */
const isLate = ({ state, errorCode, endedAt, deadlineAt }: Task): boolean =>
  state === 'expired' || (errorCode === null && endedAt !== null && endedAt >= deadlineAt)

/** Of a task that has failed, expired or been cancelled. */
export function failureOf(task: Task): Failure {
  if (isLate(task)) return new Failure('upstream_timeout', 'The upstream did not finish in time.')
  const { code, message } = endingOf(task)
  const words = message ?? 'The task failed.'
  if (code === 'connection_failed') return new Failure('upstream_unreachable', words)
  const status = mediaFailureStatus(code ?? '')
  return new Failure(CODE_OF_STATUS[status] ?? 'upstream_error', words)
}
