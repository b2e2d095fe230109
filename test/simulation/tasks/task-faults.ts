/** What goes wrong in a run, as long as the run lets it. */
import type { Random } from '../random.ts'
import { Died, type Process } from '../virtual-time.ts'
import type { Lies } from './memory-tasks.ts'

/** Errors put into the service on purpose: with any of them some seed must fail. */
export const LIES: readonly (readonly [what: string, lies: Lies])[] = [
  ['a move does not compare the version', { anyVersion: true }],
  ['what may have been sent counts as not sent', { neverSent: true }],
  ['the hold of a task that failed is kept', { keepsHolds: true }],
  ['no record of a lost submit is made', { forgetsLost: true }],
]

export class TaskFaults {
  readonly #random: Random
  readonly #level: number
  areOver = false
  isDatabaseDown = false
  isNatsDown = false
  deaths = 0

  constructor(random: Random) {
    this.#random = random
    this.#level = random.pick([0, 0.3, 1, 1])
  }

  get level(): number {
    return this.#level
  }

  happens(probability: number): boolean {
    return !this.areOver && this.#random.chance(probability * this.#level)
  }

  /** One of the many places where a process may die. Nothing it still does takes effect then. */
  dies(process: Process): boolean {
    if (process.isAlive && this.happens(0.01)) process.die()
    return !process.isAlive
  }

  /** The same within an event of its own. @throws Died */
  mayDie(process: Process): void {
    if (this.dies(process)) throw new Died()
  }

  end(): void {
    this.areOver = true
    this.isDatabaseDown = false
    this.isNatsDown = false
  }
}
