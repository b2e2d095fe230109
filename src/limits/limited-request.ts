/** One limited request: it waits for its decisions, and gives back its slots when it is over. */
import type { Decision, SubjectLimits } from '../core/limits/limiter-state.ts'

/** To be closed when the request is over, whatever became of it; a second time does nothing. */
export interface Permit {
  close(): void
}

interface RequestHandlers {
  /** Called with a decision for each subject, in their order. All of them admit the request, or it is refused. */
  readonly onDecisions: (decisions: readonly Decision[]) => void
  /** Called once, if the request was admitted, when it is over. */
  readonly onReleased: (request: LimitedRequest) => void
}

/** Returns whether all subjects admit a request. */
export const admits = (decisions: readonly Decision[]): boolean =>
  decisions.every(({ refusedBy }) => refusedBy === null)

export class LimitedRequest implements Permit {
  readonly subjects: readonly SubjectLimits[]
  readonly #handlers: RequestHandlers
  #isAdmitted = false
  #isClosed = false

  constructor(subjects: readonly SubjectLimits[], handlers: RequestHandlers) {
    this.subjects = subjects
    this.#handlers = handlers
  }

  /** True when the decisions are no longer needed. */
  get isClosed(): boolean {
    return this.#isClosed
  }

  settle(decisions: readonly Decision[]): void {
    this.#isAdmitted = admits(decisions)
    if (!this.#isClosed) this.#handlers.onDecisions(decisions)
    else if (this.#isAdmitted) this.#handlers.onReleased(this)
  }

  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    if (this.#isAdmitted) this.#handlers.onReleased(this)
  }
}
