/**
 * One wallet that any number of processes serve, run from a seed: calls of any estimate and cost, notifications that are late or
 * lost, clients that leave, processes that are killed and come back. The wallet views are the real ones; PostgreSQL is a
 * model of `reserve_wallet` and `end_reservations`.
 */
import type { WalletTotals } from '../../schemas/accounts/account.ts'
import { UNSHARED_FRACTION, WalletView } from '../../src/credentials/wallet.ts'
import type { Random } from './random.ts'

/** Errors that the simulation must find. */
export const WALLET_MUTATIONS = [
  'nothing is shared',
  'reservations end with the call',
  'notifications without reservations',
] as const
export type WalletMutation = (typeof WALLET_MUTATIONS)[number]

const STEPS = 600
/** As many messages as are sent arrive, over time. */
const ARRIVALS_MAX = 12

interface Call {
  readonly ref: string
  readonly estimate: bigint
  readonly isShared: boolean
}

interface Ended {
  readonly ref: string
  readonly cost: bigint
}

interface Gateway {
  view: WalletView
  open: Call[]
  /** In its journal, and not booked. */
  ended: Ended[]
  /** Changes with each kill: what was on its way to the earlier life is lost. */
  life: number
}

export interface WalletOutcome {
  readonly problem: string | null
  readonly alone: number
  readonly shared: number
  readonly refused: number
}

export function simulateWallet(random: Random, mutation: WalletMutation | null = null): WalletOutcome {
  return new WalletRun(random, mutation).run()
}

class WalletRun {
  readonly #random: Random
  readonly #mutation: WalletMutation | null
  readonly #gateways: Gateway[]
  readonly #reservations = new Map<string, bigint>()
  #balance: bigint
  #version = 1n
  #highest: bigint
  readonly #largestEstimate: number
  /** Few large calls that last among many small ones: what drains a wallet that is reserved already. */
  readonly #isMixed: boolean
  readonly #exactBelow: bigint | null
  /** Messages on their way; they arrive in any order. */
  #onTheWay: (() => void)[] = []
  #serial = 0
  readonly #counts = { alone: 0, shared: 0, refused: 0 }

  constructor(random: Random, mutation: WalletMutation | null) {
    this.#random = random
    this.#mutation = mutation
    this.#balance = BigInt(random.pick([1, 100, 10_000, 1_000_000]) * random.int(1, 20))
    this.#highest = this.#balance
    this.#largestEstimate = Math.ceil(Number(this.#balance) / random.pick([1, 2, 10, 200, 1000]))
    this.#isMixed = random.chance(0.3)
    this.#exactBelow = this.#isMixed ? 0n : random.pick([null, null, 0n, this.#balance / 2n])
    this.#gateways = Array.from({ length: random.int(1, 6) }, () => this.#born(0n))
  }

  run(): WalletOutcome {
    for (let step = 0; step < STEPS; step++) {
      this.#step()
      const problem = this.#problem()
      if (problem !== null) return { ...this.#counts, problem: `step ${step}: ${problem}` }
    }
    return { ...this.#counts, problem: null }
  }

  #born(unbooked: bigint): Gateway {
    return { view: new WalletView(this.#totals(), unbooked), open: [], ended: [], life: 0 }
  }

  get #reserved(): bigint {
    return [...this.#reservations.values()].reduce((sum, amount) => sum + amount, 0n)
  }

  #totals(): WalletTotals {
    const reserved = this.#mutation === 'notifications without reservations' ? 0n : this.#reserved
    return { accountId: 'a', balance: this.#balance, held: 0n, used: 0n, version: this.#version, reserved }
  }

  #step(): void {
    const random = this.#random
    const gateway = random.pick(this.#gateways)
    const chance = random.unit()
    if (chance < 0.4) this.#call(gateway)
    else if (chance < 0.6) this.#end(gateway)
    else if (chance < 0.8) this.#arrive()
    else if (chance < 0.97) this.#book(gateway)
    else if (chance < 0.99) this.#kill(gateway)
    else this.#topUp()
  }

  #estimate(): bigint {
    if (!this.#isMixed) return BigInt(this.#random.int(0, this.#largestEstimate))
    const most = this.#balance > 0n ? this.#balance : 0n
    if (this.#random.chance(0.02)) return most - most / 50n
    return BigInt(this.#random.int(0, Number(most / 200n)))
  }

  #call(gateway: Gateway): void {
    const estimate = this.#estimate()
    if (!gateway.view.admit(estimate, true)) return void this.#counts.refused++
    const isShared = this.#mutation !== 'nothing is shared' && gateway.view.needsSharing(this.#exactBelow)
    const call = { ref: `r${this.#serial++}`, estimate, isShared }
    if (!isShared) {
      this.#counts.alone++
      gateway.open.push(call)
      return
    }
    const isLeft = this.#random.chance(0.1)
    if (isLeft) gateway.view.end(estimate, 0n)
    const { life } = gateway
    this.#send(() => {
      const isReserved = estimate <= this.#balance - this.#reserved
      if (isReserved) this.#reservations.set(call.ref, estimate)
      this.#send(() => {
        if (gateway.life !== life) return
        if (isLeft) return void this.#reservations.delete(call.ref)
        if (!isReserved) {
          this.#counts.refused++
          return gateway.view.end(estimate, 0n)
        }
        this.#counts.shared++
        gateway.open.push(call)
      })
    })
  }

  #end(gateway: Gateway): void {
    const call = this.#taken(gateway.open)
    if (call === undefined) return
    const { ref, estimate, isShared } = call
    if (this.#isMixed && isShared && this.#random.chance(0.98)) return void gateway.open.push(call)
    const cost = this.#random.chance(0.6) ? estimate : BigInt(this.#random.int(0, Number(estimate)))
    gateway.view.end(estimate, cost)
    gateway.ended.push({ ref, cost })
    if (!isShared) return
    if (this.#mutation === 'reservations end with the call') this.#reservations.delete(ref)
    // Without the message the whole estimate stays reserved until the row is booked.
    else if (this.#random.chance(0.9))
      this.#send(() => {
        if (this.#reservations.has(ref)) this.#reservations.set(ref, cost)
      })
  }

  #book(gateway: Gateway): void {
    const ended = this.#taken(gateway.ended)
    if (ended === undefined) return
    const { ref, cost } = ended
    this.#balance -= cost
    this.#reservations.delete(ref)
    if (cost === 0n) return
    this.#version++
    this.#tell(gateway, (view) => view.applyBooked(cost))
  }

  /** The process whose charge it is is notified at last; to the others the notification may be lost. */
  #tell(owner: Gateway | null, before: (view: WalletView) => void): void {
    const totals = this.#totals()
    for (const gateway of this.#gateways) {
      const { life } = gateway
      if (gateway !== owner && this.#random.chance(0.3)) continue
      this.#send(() => {
        if (gateway.life !== life) return
        if (gateway === owner) before(gateway.view)
        gateway.view.update(totals)
      })
    }
  }

  /** What it had open costs nothing; what had ended is in its journal. */
  #kill(gateway: Gateway): void {
    gateway.life++
    for (const { ref } of gateway.open) gateway.ended.push({ ref, cost: 0n })
    gateway.open = []
    gateway.view = this.#born(gateway.ended.reduce((sum, { cost }) => sum + cost, 0n)).view
  }

  #topUp(): void {
    this.#balance += BigInt(this.#random.int(1, this.#largestEstimate))
    if (this.#balance > this.#highest) this.#highest = this.#balance
    this.#version++
    this.#tell(null, () => undefined)
  }

  #send(message: () => void): void {
    this.#onTheWay.push(message)
  }

  #arrive(): void {
    for (let count = this.#random.int(1, ARRIVALS_MAX); count > 0; count--) this.#taken(this.#onTheWay)?.()
  }

  #taken<T>(list: T[]): T | undefined {
    return list.length === 0 ? undefined : list.splice(this.#random.int(0, list.length - 1), 1)[0]
  }

  /** What is left if every open call costs all of its estimate, against the documented bound. */
  #problem(): string | null {
    let left = this.#balance
    for (const { open, ended } of this.#gateways) {
      for (const { estimate } of open) left -= estimate
      for (const { cost } of ended) left -= cost
    }
    const bound = (BigInt(this.#gateways.length) * this.#highest) / UNSHARED_FRACTION
    return left < -bound ? `the balance may fall to ${left}, under -${bound}` : null
  }
}
