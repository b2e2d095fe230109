/** The journal's clock; a simulation replaces it. */
export interface JournalClock {
  /** Returns epoch milliseconds. */
  now(): number
  /** Calls `work` at the end of this turn of the event loop. */
  soon(work: () => void): void
  /** Calls `work` once, after a delay; the returned function cancels it. Keeps no process alive. */
  later(work: () => void, delayMs: number): () => void
}

export const systemClock: JournalClock = {
  now: Date.now,
  soon: setImmediate,
  later(work, delayMs) {
    const timer = setTimeout(work, delayMs).unref()
    return () => clearTimeout(timer)
  },
}

export interface JournalLog {
  info(details: object, message: string): void
  warn(details: object, message: string): void
  error(details: object, message: string): void
}
