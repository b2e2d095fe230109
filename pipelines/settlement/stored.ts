/** Up to which settlement of a journal JetStream has stored everything, and the answers that wait for it. */
import type { SchedulerLike } from 'rxjs'
import type { JournalBatch } from '../../src/journal/journal.ts'

/** How long an answer waits for JetStream: longer than the election of a new leader takes. */
const STORED_WAIT_MS = 30_000
const SWEEP_INTERVAL_MS = 1_000

/** Called once: without an error when it is stored, with one when the time to wait for it is over. */
export type OnStored = (error?: Error) => void

interface Waiting {
  readonly upTo: number
  since: number
  readonly done: OnStored
}

export class StoredMark {
  readonly #scheduler: SchedulerLike
  /** Taken and not known to be stored, in the order of the journal. */
  readonly #unstored: JournalBatch[] = []
  #takenTo = 0
  /** In the order of the journal. */
  #waiting: Waiting[] = []
  #isSweeping = false

  constructor(scheduler: SchedulerLike) {
    this.#scheduler = scheduler
  }

  /** Whether an answer waits. */
  get isAwaited(): boolean {
    return this.#waiting.length > 0
  }

  /** Number of batches taken and not known to be stored. */
  get unstored(): number {
    return this.#unstored.length
  }

  add(batch: JournalBatch): void {
    this.#unstored.push(batch)
    this.#takenTo = batch.end
  }

  /** Notes that JetStream or PostgreSQL has the batch. A second call changes nothing. */
  markStored(batch: JournalBatch): void {
    const at = this.#unstored.indexOf(batch)
    if (at === -1) return
    this.#unstored.splice(at, 1)
    if (at > 0 || this.#waiting.length === 0) return
    const upTo = this.#readStoredTo()
    const count = this.#waiting.findIndex((waiting) => waiting.upTo > upTo)
    for (const { done } of this.#waiting.splice(0, count === -1 ? this.#waiting.length : count)) done()
  }

  /** Calls `done` once every settlement numbered below `upTo` is stored. */
  callWhenStored(upTo: number, done: OnStored): void {
    if (upTo <= this.#readStoredTo()) return done()
    this.#waiting.push({ upTo, since: this.#scheduler.now(), done })
    this.#sweepLater()
  }

  /** Returns how long an answer has been waiting, milliseconds; 0 when none waits. */
  measureWaitMs(): number {
    const [oldest] = this.#waiting
    return oldest === undefined ? 0 : Math.max(0, this.#scheduler.now() - oldest.since)
  }

  #readStoredTo(): number {
    const [oldest] = this.#unstored
    return oldest === undefined ? this.#takenTo : oldest.end - oldest.count
  }

  #sweepLater(): void {
    if (this.#isSweeping) return
    this.#isSweeping = true
    this.#scheduler.schedule(() => {
      this.#isSweeping = false
      const now = this.#scheduler.now()
      // The clock may have been set back.
      for (const waiting of this.#waiting) waiting.since = Math.min(waiting.since, now)
      while (this.measureWaitMs() > STORED_WAIT_MS)
        this.#waiting.shift()?.done(new Error('JetStream has not stored the settlement.'))
      if (this.#waiting.length > 0) this.#sweepLater()
    }, SWEEP_INTERVAL_MS)
  }
}
