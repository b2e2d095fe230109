/** One budget as one gateway process sees it: a wallet for each of its periods that calls of this process are in. */
import type { WalletTotals } from '../../schemas/accounts/account.ts'
import { type Budget, type BudgetPeriods, makeWalletId } from '../../schemas/accounts/budget.ts'
import type { Credits } from '../../schemas/money.ts'
import { WalletView } from './wallet.ts'

export class BudgetView {
  #budget: Budget
  /** Known beginnings of periods, ascending. PostgreSQL computes them: only it decides what a time zone is. */
  #starts: readonly number[]
  readonly #periods = new Map<number, WalletView>()

  constructor(known: BudgetPeriods) {
    this.#budget = known.budget
    this.#starts = known.starts
    this.renew(known)
  }

  get budget(): Budget {
    return this.#budget
  }

  /** Takes the budget as it was read again. */
  renew({ budget, starts, totals }: BudgetPeriods): void {
    const { period, timezone } = this.#budget
    if (budget.period !== period || budget.timezone !== timezone) this.#periods.clear()
    this.#budget = budget
    this.#starts = starts
    this.update(starts[0]!, totals)
  }

  /** Returns the period of calls that were submitted at this instant, as a wallet. */
  at(instant: number): WalletView {
    const start = this.#findStart(instant)
    return this.#periods.get(start) ?? this.#open(start)
  }

  /** Returns when the period of this instant ends; null beyond the known ones. */
  resetsAt(instant: number): number | null {
    return this.#starts.find((start) => start > instant) ?? null
  }

  /** Takes totals of the period that begins at `start`; older ones than those known are ignored. */
  update(start: number, totals: WalletTotals): void {
    const view = this.#periods.get(start)
    if (view === undefined) this.#open(start, totals)
    else view.update(totals)
  }

  /** Charges of calls that count in this budget are booked now. The oldest period is booked first. */
  applyBooked(cost: Credits): void {
    let left = cost
    for (const view of this.#periods.values()) {
      const before = view.unbooked
      view.applyBooked(left)
      left -= before - view.unbooked
    }
  }

  /** Whether the last known period has begun, so that the budget must be read again. */
  isOutOfPeriods(start: number): boolean {
    return start >= this.#starts.at(-1)!
  }

  #findStart(instant: number): number {
    const hasBegun = (start: number) => start <= instant
    const begun = this.#starts.findLast(hasBegun)
    if (begun !== undefined) return begun
    // A call that began before the budget was read again, in its next period.
    const open = [...this.#periods.keys()].filter(hasBegun)
    return open.length > 0 ? Math.max(...open) : this.#starts[0]!
  }

  /**
   * Nothing is known to be spent of a period that begins. The one before it stays for a time: totals and calls of it
   * still come.
   */
  #open(start: number, known?: WalletTotals): WalletView {
    const before = Math.max(...[...this.#periods.keys()].filter((earlier) => earlier < start))
    for (const [earlier, view] of this.#periods)
      if (earlier < before && view.isIdle) this.#periods.delete(earlier)
    const { id, amount } = this.#budget
    const view = new WalletView(
      known ?? { accountId: makeWalletId(id, start), balance: amount, held: 0n, used: 0n, version: 0n },
    )
    this.#periods.set(start, view)
    return view
  }
}
