/** Retries forever, more and more slowly, and logs an outage once. */
import { type MonoTypeOperatorFunction, retry, type SchedulerLike, tap, timer } from 'rxjs'

const BACKOFF_FIRST_MS = 50
const BACKOFF_MAX_MS = 2_000

export interface PipelineLog {
  info(details: object, message: string): void
  warn(details: object, message: string): void
  error(details: object, message: string): void
}

/** Whether some work fails now, shared by all that try it: the log has one line when it begins and one when it ends. */
export class OutageLog {
  readonly #log: PipelineLog
  readonly #subject: string
  #reason: string | null = null

  /** @param what completes "… fails and is tried again" */
  constructor(log: PipelineLog, what: string) {
    this.#log = log
    this.#subject = what
  }

  /** Reason of the last failed try; null after a success. */
  get reason(): string | null {
    return this.#reason
  }

  noteFailure(error: unknown): void {
    const reason = error instanceof Error ? error.message : String(error)
    if (this.#reason === null) this.#log.warn({ error, reason }, `${this.#subject} fails; retrying`)
    this.#reason = reason
  }

  noteSuccess(): void {
    if (this.#reason !== null) this.#log.info({}, `${this.#subject} works again`)
    this.#reason = null
  }
}

const FAULT_PAUSE_MS = 1_000

/** Subscribes again after an unexpected error: one fault must not end the booking of all that follows. */
export function resubscribeOnFault<T>(
  onFault: (error: unknown) => void,
  scheduler: SchedulerLike,
): MonoTypeOperatorFunction<T> {
  return retry({
    delay: (error) => {
      onFault(error)
      return timer(FAULT_PAUSE_MS, scheduler)
    },
  })
}

export function retryForever<T>(trouble: OutageLog, scheduler: SchedulerLike): MonoTypeOperatorFunction<T> {
  return (source$) =>
    source$.pipe(
      retry({
        delay: (error, attempt) => {
          trouble.noteFailure(error)
          return timer(Math.min(BACKOFF_MAX_MS, BACKOFF_FIRST_MS * 2 ** Math.min(attempt - 1, 10)), scheduler)
        },
      }),
      tap(() => trouble.noteSuccess()),
    )
}
