/**
 * Reads a stream further for a moment after its client left behind the finish reason, to learn its usage. One instance
 * a process, so that a process that ends can settle all of them at once.
 */

/** Time for which an upstream is read after its client left. */
const LATE_USAGE_MS = 2_000
/** Bytes that are read of it. */
export const LATE_USAGE_MAX_BYTES = 262_144

/** A call whose client left. */
export interface LeftCall {
  /** Settles the call with the facts known by now. */
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

  /** Removes a settled call. */
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
