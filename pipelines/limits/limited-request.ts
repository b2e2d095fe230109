/** One limited request: it waits for its decision, and gives back its slot when it is over. */
import type { Decision, Limits } from '../../src/core/limits/limiter-state.ts'

/** To be closed when the request is over, whatever became of it; a second time does nothing. */
export interface Permit {
  close(): void
}

export interface RequestHandlers {
  readonly onDecision: (decision: Decision) => void
  /** Called once, if the request was admitted, when it is over. */
  readonly onReleased: (request: LimitedRequest) => void
}

export class LimitedRequest implements Permit {
  readonly subject: string
  readonly limits: Limits
  readonly #handlers: RequestHandlers
  #isAdmitted = false
  #isClosed = false

  constructor(subject: string, limits: Limits, handlers: RequestHandlers) {
    this.subject = subject
    this.limits = limits
    this.#handlers = handlers
  }

  /** True when the decision is not needed any more. */
  get isClosed(): boolean {
    return this.#isClosed
  }

  settle(decision: Decision): void {
    this.#isAdmitted = decision.refusedBy === null
    if (!this.#isClosed) this.#handlers.onDecision(decision)
    else if (this.#isAdmitted) this.#handlers.onReleased(this)
  }

  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    if (this.#isAdmitted) this.#handlers.onReleased(this)
  }
}
