/** PostgreSQL's part, in memory: what `book_settlements` does, with its unique keys, in one step or not at all. */

import type { WalletTotals } from '../../schemas/accounts/account.ts'
import type { Settlement } from '../../schemas/call-log/columns.ts'
import type { Bookings, Wallets } from '../../src/postgres/billing/repository.ts'
import type { Faults } from './faults.ts'
import type { Random } from './random.ts'
import type { Process, VirtualTime } from './virtual-time.ts'

export interface Entry {
  readonly accountId: string
  readonly kind: 'topup' | 'charge'
  readonly amount: bigint
  readonly ref: string | null
}

export interface SimulatedDatabase {
  readonly bookings: Pick<Bookings, 'book' | 'readBooked'>
  readonly wallets: Pick<Wallets, 'read'>
  findWallet(accountId: string): Promise<WalletTotals>
}

export class Books {
  readonly #time: VirtualTime
  readonly #random: Random
  readonly #faults: Faults
  readonly rows: Settlement[] = []
  readonly #booked = new Set<string>()
  readonly entries: Entry[] = []
  readonly wallets = new Map<string, WalletTotals>()

  constructor(time: VirtualTime, random: Random, faults: Faults) {
    this.#time = time
    this.#random = random
    this.#faults = faults
  }

  open(accountId: string, balance: bigint): void {
    this.wallets.set(accountId, { accountId, balance, held: 0n, used: 0n, version: 1n })
    this.entries.push({ accountId, kind: 'topup', amount: balance, ref: null })
  }

  has(requestId: string): boolean {
    return this.#booked.has(requestId)
  }

  /** The edge as one process sees it. */
  databaseOf(process: Process): SimulatedDatabase {
    const read = (accountIds: readonly string[]) =>
      accountIds.map((id) => this.wallets.get(id)).filter((wallet) => wallet !== undefined)
    return {
      bookings: {
        book: (settlements) => this.#answer(process, () => this.#book(settlements)),
        readBooked: (requestIds, accountIds) =>
          this.#answer(process, () => ({
            requestIds: new Set(requestIds.filter((id) => this.#booked.has(id))),
            wallets: read(accountIds),
          })),
      },
      wallets: {
        read: (accountIds) =>
          this.#answer(process, () =>
            this.#faults.mutation === 'notifications without totals' ? [] : read(accountIds),
          ),
      },
      findWallet: (accountId) => this.#answer(process, () => this.wallets.get(accountId)!),
    }
  }

  #book(settlements: readonly Settlement[]) {
    const booked: string[] = []
    const charged = new Set<string>()
    for (const settlement of settlements) {
      const { request_id, account_id } = settlement
      if (this.#booked.has(request_id) && this.#faults.mutation !== 'booked without a unique key') continue
      this.#booked.add(request_id)
      this.rows.push(settlement)
      booked.push(request_id)
      const cost = BigInt(settlement.cost)
      if (cost === 0n) continue
      this.entries.push({ accountId: account_id, kind: 'charge', amount: -cost, ref: request_id })
      const wallet = this.wallets.get(account_id)!
      const version = wallet.version + (charged.has(account_id) ? 0n : 1n)
      this.wallets.set(account_id, {
        ...wallet,
        balance: wallet.balance - cost,
        used: wallet.used + cost,
        version,
      })
      charged.add(account_id)
    }
    return { booked, refused: [], wallets: [...charged].map((id) => this.wallets.get(id)!) }
  }

  /** The statement is lost on its way, or done and its answer lost, or answered. */
  #answer<T>(process: Process, work: () => T): Promise<T> {
    this.#faults.mayDie(process)
    return new Promise((resolve, reject) => {
      const fail = () =>
        process.settleAfter(this.#random.int(0, 50), () => reject(new Error('the connection was lost')))
      this.#time.after(this.#random.int(0, this.#faults.areOver ? 5 : 100), () => {
        if (this.#faults.isDatabaseDown || this.#faults.happens(0.05)) return void fail()
        const answer = work()
        if (this.#faults.happens(0.05)) return void fail()
        process.settleAfter(this.#random.int(0, this.#faults.areOver ? 5 : 100), () => resolve(answer))
      })
    })
  }
}
