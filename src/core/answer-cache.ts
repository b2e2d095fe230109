/**
 * An LRU cache of answers that joins equal requests: a request for an answer that is being made waits for that one. The
 * work is aborted when the last request that waits for it has ended. A failure reaches all that wait and is not cached.
 */
import { LRUCache } from 'lru-cache'

export interface AnswerCacheOptions {
  /** Counted from the moment at which the work on an answer began. */
  readonly maxAgeMs: number
  readonly maxEntries: number
  /** All cached answers together have at most this many characters. */
  readonly maxChars: number
  /** Returns the time, epoch milliseconds. */
  readonly now: () => number
}

interface Pending {
  readonly startedAt: number
  readonly answer: Promise<string>
  readonly work: AbortController
  waiting: number
}

/** Makes an answer; the signal aborts when no request waits for it any longer. */
type MakeAnswer = (signal: AbortSignal) => Promise<string>

export class AnswerCache {
  readonly #options: AnswerCacheOptions
  readonly #answers: LRUCache<string, string>
  readonly #pending = new Map<string, Pending>()

  constructor(options: AnswerCacheOptions) {
    const { maxAgeMs, maxEntries, maxChars, now } = options
    this.#options = options
    this.#answers = new LRUCache({
      max: maxEntries,
      maxSize: maxChars,
      sizeCalculation: ({ length }) => length || 1,
      ttl: maxAgeMs,
      ttlResolution: 0,
      perf: { now },
    })
  }

  /** Returns the answer to `key`, made by `make` unless it is cached. `signal` aborts when the request ends. */
  get(key: string, make: MakeAnswer, signal: AbortSignal): Promise<string> {
    const cached = this.#answers.get(key)
    if (cached !== undefined) return Promise.resolve(cached)
    const known = this.#pending.get(key)
    const isFresh = known && this.#options.now() - known.startedAt <= this.#options.maxAgeMs
    const pending = isFresh ? known : this.#start(key, make)
    pending.waiting += 1
    signal.addEventListener('abort', () => this.#leave(key, pending), { once: true })
    return pending.answer
  }

  #start(key: string, make: MakeAnswer): Pending {
    const work = new AbortController()
    const startedAt = this.#options.now()
    const pending: Pending = { startedAt, answer: make(work.signal), work, waiting: 0 }
    this.#pending.set(key, pending)
    pending.answer.then(
      (text) => this.#remove(key, pending) && this.#answers.set(key, text, { start: startedAt }),
      () => this.#remove(key, pending),
    )
    return pending
  }

  #leave(key: string, pending: Pending): void {
    pending.waiting -= 1
    if (pending.waiting === 0 && this.#remove(key, pending)) pending.work.abort()
  }

  /** Returns false when `pending` has ended, or newer work has replaced it. */
  #remove(key: string, pending: Pending): boolean {
    return this.#pending.get(key) === pending && this.#pending.delete(key)
  }
}
