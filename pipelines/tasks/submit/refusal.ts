/** The client's error for a refused submit, whichever process received it. See docs/errors.md, "Catalog". */
import { Failure } from '../../../schemas/failure.ts'
import type { Task } from '../../../src/postgres/tasks/types.ts'
import { UpstreamRefusal } from '../../calls/upstream-error.ts'

/** The codes with which the gateway itself refuses a submit, and their messages. */
export const OWN_REFUSALS = {
  upstream_timeout: 'The upstream did not answer in time.',
  upstream_unreachable: 'The connection to the upstream failed.',
  upstream_error: 'The upstream answered with something that is no answer.',
  no_channel_available: 'No channel is available for this model at the moment.',
  service_unavailable: 'The service could not take on the work in time. Try again in a minute.',
  invalid_request: 'A file that the request names could not be used.',
} as const
export type OwnRefusal = keyof typeof OWN_REFUSALS

const isOwn = (code: string | null): code is OwnRefusal => code !== null && Object.hasOwn(OWN_REFUSALS, code)

/** Returns the fields of a task whose submit was lost. */
export const toLostFields = (code: OwnRefusal): Pick<Task, 'errorCode' | 'errorMessage'> => ({
  errorCode: code,
  errorMessage: OWN_REFUSALS[code],
})

/** Connection failures keep their code whether the gateway or the upstream reports them. */
const isOfConnection = (code: string | null): code is OwnRefusal =>
  code === 'upstream_unreachable' || code === 'upstream_timeout'

const SECONDS = /^\d{1,9}$/
/** Longer than a date in any HTTP format. */
const MAX_DATE_CHARS = 40

/** Returns a `retry-after` unchanged; null if it is neither seconds nor a date. */
export function retryAfterIn(text: string | null): string | null {
  if (text === null || SECONDS.test(text)) return text
  return text.length <= MAX_DATE_CHARS && !Number.isNaN(Date.parse(text)) ? text : null
}

/** Returns the error of a task in the state `refused`. */
export function toRefusal(task: Task): Failure | UpstreamRefusal {
  const { refusedStatus, attempts, errorCode, errorMessage } = task
  if (refusedStatus !== null && !isOfConnection(errorCode)) {
    const { retry_after, extras } = attempts.at(-1) ?? {}
    const headers = retry_after === undefined ? [] : [['retry-after', retry_after] as const]
    return new UpstreamRefusal(refusedStatus, errorMessage ?? '', headers, extras)
  }
  const code = isOwn(errorCode) ? errorCode : 'upstream_error'
  return new Failure(code, errorMessage ?? OWN_REFUSALS[code])
}
