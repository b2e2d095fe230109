/**
 * Bounds retries by the active calls: at most a fifth of them, and at least three, may be second tries. A provider
 * that is down for all clients does not get twice the load.
 */
const RETRY_SHARE = 0.2
export const MIN_RETRIES = 3

export class RetryBudget {
  #calls = 0
  #retries = 0

  beginCall(): void {
    this.#calls++
  }

  endCall(): void {
    this.#calls--
  }

  /** Takes a retry and returns true, or returns false. `retryEnded` gives it back. */
  take(): boolean {
    if (this.#retries >= Math.max(MIN_RETRIES, Math.floor(this.#calls * RETRY_SHARE))) return false
    this.#retries++
    return true
  }

  retryEnded(): void {
    this.#retries--
  }
}
