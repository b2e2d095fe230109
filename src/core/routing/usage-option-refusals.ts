/** Caches for some minutes which upstreams refuse the option that asks for usage, by channel and model. */
import { stillHolds } from '../still-holds.ts'
import { type Route, routeName } from './catalog.ts'

/** Then the option is tried again: an upstream may have learnt it, or the error may have had another cause. */
export const REFUSAL_KEPT_MS = 10 * 60_000

export class UsageOptionRefusals {
  /** By channel and the upstream's name of the model: until when the refusal holds, in milliseconds. */
  readonly #until = new Map<string, number>()
  readonly #onLearned: (route: Route) => void
  readonly #now: () => number

  /**
   * @param onLearned called when a refusal is remembered that was not known
   * @param now milliseconds
   */
  constructor(onLearned: (route: Route) => void = () => undefined, now: () => number = Date.now) {
    this.#onLearned = onLearned
    this.#now = now
  }

  has(route: Route): boolean {
    // Most often nothing is remembered: then no name is made.
    return this.#until.size > 0 && this.#isKept(routeName(route))
  }

  add(route: Route): void {
    const isNew = !this.has(route)
    this.#until.set(routeName(route), this.#now() + REFUSAL_KEPT_MS)
    if (isNew) this.#onLearned(route)
  }

  /** Returns the number of cached refusals. */
  count(): number {
    return [...this.#until.keys()].filter((name) => this.#isKept(name)).length
  }

  #isKept(name: string): boolean {
    const until = this.#until.get(name)
    if (until === undefined) return false
    if (stillHolds(until, this.#now(), REFUSAL_KEPT_MS)) return true
    this.#until.delete(name)
    return false
  }
}
