/**
 * Counts the requests admitted in the last 60 seconds. A request leaves the window 60 s after it entered, so that no
 * 60 s contain more than the limit. See docs/api-rules.md, "Rate limits".
 */
export const WINDOW_MS = 60_000
/** Requests of so short a time are kept as one, dated at the last of them: places are free late by this, never early. */
export const GRAIN_MS = 10
/** Entries that have left are thrown away this many at a time. */
const SPENT_ENTRIES = 64

/** Instants are milliseconds of one monotonic clock. */
export class RateWindow {
  /** Ascending. Entries before `#head` have left. */
  #times: number[] = []
  #counts: number[] = []
  #head = 0
  #total = 0

  /** Returns the number of requests in the window at `now`. */
  count(now: number): number {
    while (this.#head < this.#times.length && now - this.#times[this.#head]! >= WINDOW_MS)
      this.#total -= this.#counts[this.#head++]!
    if (this.#head >= SPENT_ENTRIES && this.#head * 2 >= this.#times.length) {
      this.#times = this.#times.slice(this.#head)
      this.#counts = this.#counts.slice(this.#head)
      this.#head = 0
    }
    return this.#total
  }

  /** Adds `count` requests that entered at `time`, which may be before others. */
  add(time: number, count = 1): void {
    this.#total += count
    let at = this.#times.length
    while (at > this.#head && this.#times[at - 1]! > time) at--
    const before = at - 1
    if (at === this.#times.length && before >= this.#head && this.#isSameGrain(before, time)) {
      this.#times[before] = time
      this.#counts[before]! += count
    } else {
      this.#times.splice(at, 0, time)
      this.#counts.splice(at, 0, count)
    }
  }

  /** Removes a request that entered at `time`. */
  remove(time: number): void {
    let at = this.#times.length
    while (at > this.#head && this.#times[at - 1]! >= time) at--
    if (at === this.#times.length) return
    this.#total--
    this.#counts[at]!--
    if (this.#counts[at] !== 0) return
    this.#times.splice(at, 1)
    this.#counts.splice(at, 1)
  }

  /**
   * Returns the time until fewer than `limit` requests are in the window, if no more come; at least the time until the
   * next leaves. Milliseconds.
   */
  msUntilFree(limit: number, now: number): number {
    let excess = this.count(now) - limit
    for (let at = this.#head; at < this.#times.length; at++) {
      excess -= this.#counts[at]!
      // Not `time + 60 s - now`: of instants between milliseconds that can round to more than a minute.
      if (excess < 0) return WINDOW_MS - (now - this.#times[at]!)
    }
    return 0
  }

  #isSameGrain(at: number, time: number): boolean {
    return Math.floor(this.#times[at]! / GRAIN_MS) === Math.floor(time / GRAIN_MS)
  }
}
