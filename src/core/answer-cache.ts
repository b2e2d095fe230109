/**
 * Answers that are given again for a while. Who asks while an answer is on its way waits for the same one; the work
 * behind it is given up when the last of them has left. A failure is told to those who wait and is not kept.
 */

export interface AnswerCacheOptions {
  /** Counted from the moment at which the work on an answer began. */
  readonly maxAgeMs: number
  readonly maxEntries: number
  /** All that are kept together have no more characters than this. */
  readonly maxChars: number
  /** Epoch milliseconds. */
  readonly now: () => number
}

interface Entry {
  readonly begunAt: number
  readonly answer: Promise<string>
  readonly work: AbortController
  waiting: number
  /** 0 while the answer is on its way. */
  chars: number
}

/** Makes an answer; the signal says that nobody waits for it any more. */
export type MakeAnswer = (signal: AbortSignal) => Promise<string>

export class AnswerCache {
  readonly #options: AnswerCacheOptions
  /** In the order in which they were begun, so the oldest come first. */
  readonly #entries = new Map<string, Entry>()
  #chars = 0

  constructor(options: AnswerCacheOptions) {
    this.#options = options
  }

  /** The answer to `key`, which `make` makes where it is not there yet. `signal` says that the asker has left. */
  get(key: string, make: MakeAnswer, signal: AbortSignal): Promise<string> {
    this.#dropAged()
    const entry = this.#entries.get(key) ?? this.#begin(key, make)
    entry.waiting += 1
    signal.addEventListener('abort', () => this.#leave(key, entry), { once: true })
    return entry.answer
  }

  #begin(key: string, make: MakeAnswer): Entry {
    const work = new AbortController()
    const answer = make(work.signal)
    const entry: Entry = { begunAt: this.#options.now(), answer, work, waiting: 0, chars: 0 }
    this.#entries.set(key, entry)
    this.#dropOldest()
    answer.then(
      (text) => this.#keep(key, entry, text),
      () => this.#drop(key, entry),
    )
    return entry
  }

  #keep(key: string, entry: Entry, text: string): void {
    if (this.#entries.get(key) !== entry) return
    entry.chars = text.length
    this.#chars += text.length
    this.#dropOldest()
  }

  /** What has arrived stays for others; what nobody waits for any more does not go on. */
  #leave(key: string, entry: Entry): void {
    entry.waiting -= 1
    if (entry.waiting > 0 || entry.chars > 0) return
    this.#drop(key, entry)
    entry.work.abort()
  }

  #dropAged(): void {
    const oldest = this.#options.now() - this.#options.maxAgeMs
    for (const [key, entry] of this.#entries) {
      if (entry.begunAt > oldest) return
      this.#drop(key, entry)
    }
  }

  #dropOldest(): void {
    const { maxEntries, maxChars } = this.#options
    for (const [key, entry] of this.#entries) {
      if (this.#entries.size <= maxEntries && this.#chars <= maxChars) return
      this.#drop(key, entry)
    }
  }

  #drop(key: string, entry: Entry): void {
    if (this.#entries.get(key) !== entry) return
    this.#entries.delete(key)
    this.#chars -= entry.chars
  }
}
