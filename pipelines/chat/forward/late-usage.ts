/**
 * Streams whose client left behind the finish reason: each upstream is read on for a moment, to learn its usage. One
 * instance a process, so that a process that ends can settle all of them at once.
 */

/** How long an upstream is read on after its client left. */
const LATE_USAGE_MS = 2_000
/** How much of it is read. */
export const LATE_USAGE_MAX_BYTES = 262_144

/** A call whose client left. */
export interface LeftCall {
  /** Settles the call with what is known by now. */
  giveUp(): void
}

export class LateUsage {
  readonly #waitMs: number
  readonly #timers = new Map<LeftCall, NodeJS.Timeout>()
  #isClosed = false

  constructor(waitMs = LATE_USAGE_MS) {
    this.#waitMs = waitMs
  }

  /** Calls `giveUp` when the time is over. Returns false once closed: the call is to be settled at once. */
  add(call: LeftCall): boolean {
    if (this.#isClosed) return false
    this.#timers.set(
      call,
      setTimeout(() => call.giveUp(), this.#waitMs),
    )
    return true
  }

  /** The call is settled. */
  delete(call: LeftCall): void {
    const timer = this.#timers.get(call)
    if (timer === undefined) return
    clearTimeout(timer)
    this.#timers.delete(call)
  }

  /** Settles every call that still waits; from here on none waits. */
  close(): void {
    this.#isClosed = true
    for (const call of [...this.#timers.keys()]) call.giveUp()
  }
}
