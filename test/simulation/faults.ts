/** What goes wrong in a run, as long as the run lets it. */
import type { Random } from './random.ts'
import { Died, type Process } from './virtual-time.ts'

/**
 * Errors put into the service on purpose. With any of them some seed must fail: that shows that the simulation sees
 * what it says it sees.
 */
export const MUTATIONS = [
  /** PostgreSQL takes a request id twice. */
  'booked without a unique key',
  /** Admissions are called written before they are. */
  'admitted before the write',
  /** A restarted gateway does not read what the one before left. */
  'journal not recovered',
  /** A batch counts as booked once JetStream has it. */
  'confirmed when stored',
  /** Notifications of a booking do not hold the totals when the booking was done before. */
  'notifications without totals',
  /** A wallet view begins without what the recovered journal still owes. */
  'recovered costs forgotten',
  /** What a stream without a leader does not take is not sent to a settler. */
  'nothing sent directly',
] as const
export type Mutation = (typeof MUTATIONS)[number]

export class Faults {
  readonly #random: Random
  /** Between 0, a quiet run, and 1. */
  readonly #level: number
  readonly mutation: Mutation | null
  areOver = false
  isNatsDown = false
  /** The stream has no leader, and stays so: it takes and delivers nothing. */
  isStreamStuck = false
  isDatabaseDown = false
  isDiskFull = false
  /** Of processes, in this run. */
  deaths = 0

  constructor(random: Random, mutation: Mutation | null) {
    this.#random = random
    this.#level = random.pick([0, 0.3, 1, 1])
    this.mutation = mutation
  }

  get level(): number {
    return this.#level
  }

  happens(probability: number): boolean {
    return !this.areOver && this.#random.chance(probability * this.#level)
  }

  /** One of the many places where a process may die. @throws Died */
  mayDie(process: Process): void {
    if (!process.isAlive) throw new Died()
    if (!this.happens(0.01)) return
    process.die()
    throw new Died()
  }

  end(): void {
    this.areOver = true
    this.isNatsDown = false
    this.isDatabaseDown = false
    this.isDiskFull = false
  }
}
