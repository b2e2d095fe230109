/** A clock that jumps from event to event, and processes whose events die with them. */
import { type SchedulerAction, type SchedulerLike, Subscription } from 'rxjs'
import type { JournalClock } from '../../src/journal/clock.ts'

interface Event {
  readonly at: number
  /** Events of one instant happen in the order in which they were planned. */
  readonly order: number
  readonly work: () => void
  isCancelled: boolean
}

/** Promises that are settled pass through at most this many turns until the code behind them has run. */
const MICROTASK_TURNS = 12
/** With more, time stands still: something plans itself again and again. */
const MAX_EVENTS_OF_INSTANT = 50_000

export class VirtualTime {
  #now = 0
  #order = 0
  readonly #heap: Event[] = []
  #arePromisesSettled = false
  readonly #turns: number

  constructor(turns = MICROTASK_TURNS) {
    this.#turns = turns
  }

  get now(): number {
    return this.#now
  }

  after(delayMs: number, work: () => void): () => void {
    const event = { at: this.#now + Math.max(0, delayMs), order: this.#order++, work, isCancelled: false }
    this.#push(event)
    return () => {
      event.isCancelled = true
    }
  }

  /** To be called by code that settles a promise, so that what follows from it happens at the same instant. */
  promiseSettled(): void {
    this.#arePromisesSettled = true
  }

  /** Runs events until `isDone` or the end of `untilMs`. */
  async run(untilMs: number, isDone: () => boolean = () => false): Promise<void> {
    await this.#settlePromises()
    let events = 0
    while (!isDone()) {
      const next = this.#heap[0]
      if (next === undefined || next.at > untilMs) break
      events = next.at > this.#now ? 0 : events + 1
      if (events > MAX_EVENTS_OF_INSTANT) throw new Error('time stands still')
      this.#pop()
      if (next.isCancelled) continue
      this.#now = next.at
      try {
        next.work()
      } catch (error) {
        if (!(error instanceof Died)) throw error
      }
      if (this.#arePromisesSettled) await this.#settlePromises()
    }
  }

  async #settlePromises(): Promise<void> {
    this.#arePromisesSettled = false
    for (let turn = 0; turn < this.#turns; turn++) await null
  }

  #push(event: Event): void {
    const heap = this.#heap
    let at = heap.push(event) - 1
    while (at > 0) {
      const above = (at - 1) >> 1
      if (isBefore(heap[above]!, event)) break
      heap[at] = heap[above]!
      at = above
    }
    heap[at] = event
  }

  #pop(): void {
    const heap = this.#heap
    const last = heap.pop()!
    if (heap.length === 0) return
    let at = 0
    for (;;) {
      let below = 2 * at + 1
      if (below >= heap.length) break
      if (below + 1 < heap.length && isBefore(heap[below + 1]!, heap[below]!)) below += 1
      if (isBefore(last, heap[below]!)) break
      heap[at] = heap[below]!
      at = below
    }
    heap[at] = last
  }
}

const isBefore = (a: Event, b: Event): boolean => a.at < b.at || (a.at === b.at && a.order < b.order)

/** Thrown where a process dies in the middle of a step. Nothing it still does takes effect. */
export class Died extends Error {}

/** One life of one process. */
export class Process {
  readonly #time: VirtualTime
  #isAlive = true
  onDeath: () => void = () => undefined

  constructor(time: VirtualTime) {
    this.#time = time
  }

  get isAlive(): boolean {
    return this.#isAlive
  }

  die(): void {
    if (!this.#isAlive) return
    this.#isAlive = false
    this.onDeath()
  }

  /** Does it unless the process has died by then. */
  after(delayMs: number, work: () => void): () => void {
    return this.#time.after(delayMs, () => {
      if (this.#isAlive) work()
    })
  }

  /** After a delay, what settles a promise. */
  settleAfter(delayMs: number, settle: () => void): void {
    this.after(delayMs, () => {
      settle()
      this.#time.promiseSettled()
    })
  }

  readonly clock: JournalClock = {
    now: () => this.#time.now,
    soon: (work) => void this.after(0, work),
    later: (work, delayMs) => this.after(delayMs, work),
  }

  readonly scheduler: SchedulerLike = {
    now: () => this.#time.now,
    schedule: <T>(work: (this: SchedulerAction<T>, state: T) => void, delay = 0, state?: T) =>
      new Planned(this, work).schedule(state, delay),
  }
}

/** Work of a scheduler, which may plan itself again. */
class Planned<T> extends Subscription implements SchedulerAction<T> {
  readonly #process: Process
  readonly #work: (this: SchedulerAction<T>, state: T) => void
  #cancel: () => void = () => undefined

  constructor(process: Process, work: (this: SchedulerAction<T>, state: T) => void) {
    super(() => this.#cancel())
    this.#process = process
    this.#work = work
  }

  schedule(state?: T, delayMs = 0): Subscription {
    if (!this.closed) this.#cancel = this.#process.after(delayMs, () => this.#work.call(this, state as T))
    return this
  }
}
