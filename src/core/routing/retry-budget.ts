/**
 * Bounds retries by what goes on: at most a fifth of the active calls, and at least three, may be second tries. A
 * provider that is down for everybody is not asked twice by everybody.
 */
export const RETRY_SHARE = 0.2
export const MIN_RETRIES = 3

export class RetryBudget {
  #calls = 0
  #retries = 0

  callBegan(): void {
    this.#calls++
  }

  callEnded(): void {
    this.#calls--
  }

  /** True and taken, or false. What was taken is given back by `retryEnded`. */
  take(): boolean {
    if (this.#retries >= Math.max(MIN_RETRIES, Math.floor(this.#calls * RETRY_SHARE))) return false
    this.#retries++
    return true
  }

  retryEnded(): void {
    this.#retries--
  }
}
