/**
 * Limiter state of one process: requests by subject, slots by holder; and the decision whether one more request fits.
 * A subject is an account or a key. A holder is a gateway process. See docs/api-rules.md, "Rate limits".
 */
import { RateWindow } from './rate-window.ts'

/** Null is no limit. */
export interface Limits {
  readonly requestsPerMinute: number | null
  readonly concurrency: number | null
}

/** Limits of one subject: an account or a key. */
export interface SubjectLimits {
  readonly subject: string
  readonly limits: Limits
}

type Dimension = 'requests' | 'concurrency'

/** The decision on one request by one subject. The numbers of a dimension without a limit mean nothing. */
export interface Decision {
  /** Null: admitted, unless another subject of the request refuses it. */
  readonly refusedBy: Dimension | null
  /** This request taken into account, if it was admitted. */
  readonly remainingRequests: number
  /** Until a place in the window is free. */
  readonly resetMs: number
  readonly remainingConcurrency: number
}

export type SlotCounts = ReadonlyMap<string, number>

export class LimiterState {
  readonly #windows = new Map<string, RateWindow>()
  /** By holder, then by subject. */
  readonly #slots = new Map<string, Map<string, number>>()
  /** By subject. */
  readonly #inFlight = new Map<string, number>()

  /** Admits the request by all its subjects and takes its slots, or changes nothing. Returns a decision for each. */
  decide(subjects: readonly SubjectLimits[], holder: string, now: number): Decision[] {
    const refusals = subjects.map((one) => this.#findRefusal(one, now))
    if (refusals.every((refusedBy) => refusedBy === null))
      for (const { subject, limits } of subjects) this.admit(subject, limits, holder, now)
    return subjects.map((one, index) => this.#makeDecision(one, refusals[index]!, now))
  }

  #findRefusal({ subject, limits }: SubjectLimits, now: number): Dimension | null {
    const { requestsPerMinute, concurrency } = limits
    if (requestsPerMinute !== null && this.#countRequests(subject, now) >= requestsPerMinute)
      return 'requests'
    return concurrency !== null && this.countInFlight(subject) >= concurrency ? 'concurrency' : null
  }

  #makeDecision({ subject, limits }: SubjectLimits, refusedBy: Dimension | null, now: number): Decision {
    const { requestsPerMinute, concurrency } = limits
    const window = this.#windows.get(subject)
    return {
      refusedBy,
      remainingRequests: Math.max(0, (requestsPerMinute ?? 0) - (window?.count(now) ?? 0)),
      resetMs: window?.msUntilFree(requestsPerMinute ?? 0, now) ?? 0,
      remainingConcurrency: Math.max(0, (concurrency ?? 0) - this.countInFlight(subject)),
    }
  }

  #countRequests(subject: string, now: number): number {
    return this.#windows.get(subject)?.count(now) ?? 0
  }

  /** Records a request that was admitted, here or elsewhere. */
  admit(subject: string, limits: Limits, holder: string, now: number): void {
    if (limits.requestsPerMinute !== null) this.noteRequests(subject, 1, now)
    if (limits.concurrency !== null) this.#addSlots(holder, subject, 1)
  }

  /** Records requests that were admitted elsewhere, at an instant of this process's clock. */
  noteRequests(subject: string, count: number, time: number): void {
    const window = this.#windows.get(subject) ?? new RateWindow()
    window.add(time, count)
    this.#windows.set(subject, window)
  }

  /** Withdraws a request admitted at `time`: the holder has decided otherwise. */
  withdraw(subject: string, limits: Limits, holder: string, time: number): void {
    if (limits.requestsPerMinute !== null) this.#windows.get(subject)?.remove(time)
    if (limits.concurrency !== null) this.release(subject, holder)
  }

  release(subject: string, holder: string, count = 1): void {
    const held = this.#slots.get(holder)?.get(subject) ?? 0
    this.#addSlots(holder, subject, -Math.min(held, count))
  }

  /** Replaces the slots of a holder by those that it reports. */
  setSlots(holder: string, slots: SlotCounts): void {
    this.dropHolder(holder)
    for (const [subject, count] of slots) this.#addSlots(holder, subject, count)
  }

  /** Frees all slots of a holder that has ended. */
  dropHolder(holder: string): void {
    for (const [subject, count] of this.#slots.get(holder) ?? []) this.#addTotal(subject, -count)
    this.#slots.delete(holder)
  }

  listSlots(holder: string): SlotCounts {
    return this.#slots.get(holder) ?? NO_SLOTS
  }

  listHolders(subject: string): string[] {
    return [...this.#slots].filter(([, slots]) => slots.has(subject)).map(([holder]) => holder)
  }

  countInFlight(subject: string): number {
    return this.#inFlight.get(subject) ?? 0
  }

  /** Forgets windows that are empty. To be called now and then: memory is bounded by the last minute's subjects. */
  sweep(now: number): void {
    for (const [subject, window] of this.#windows) if (window.count(now) === 0) this.#windows.delete(subject)
  }

  /** Subjects of which anything is known. */
  get size(): number {
    return new Set([...this.#windows.keys(), ...this.#inFlight.keys()]).size
  }

  #addSlots(holder: string, subject: string, change: number): void {
    const slots = this.#slots.get(holder) ?? new Map<string, number>()
    addTo(slots, subject, change)
    this.#slots.set(holder, slots)
    this.#addTotal(subject, change)
  }

  #addTotal(subject: string, change: number): void {
    addTo(this.#inFlight, subject, change)
  }
}

const NO_SLOTS: SlotCounts = new Map()

/** Adds to a count; removes a count of 0. */
function addTo(counts: Map<string, number>, subject: string, change: number): void {
  const count = (counts.get(subject) ?? 0) + change
  if (count === 0) counts.delete(subject)
  else counts.set(subject, count)
}
