/** Time as the journal sees it; a simulation brings its own. */
export interface JournalClock {
  /** Epoch milliseconds. */
  now(): number
  /** After what this turn of the event loop still brings. */
  soon(work: () => void): void
  /** Once, after a delay; the answer takes it back. Keeps no process alive. */
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
