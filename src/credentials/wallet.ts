/**
 * One wallet as one gateway process sees it: the totals last booked, the estimates of its calls in flight, and the
 * unbooked cost of its ended calls. See docs/api-rules.md, "Pre-charge".
 */
import type { WalletTotals } from '../../schemas/accounts/account.ts'
import type { Grant } from '../../schemas/accounts/organization.ts'
import type { Credits } from '../../schemas/money.ts'

/** Returns a capped key as a wallet: the balance is the rest of the cap. Null without a cap. */
export function capTotals(grant: Grant | null): WalletTotals | null {
  if (grant === null || grant.spendCap === null) return null
  const { keyId, spendCap, spent, version } = grant
  return { accountId: keyId, balance: spendCap - spent, held: 0n, used: spent, version }
}

/**
 * A process may risk at most the balance divided by this without a shared reservation, open and unbooked calls
 * together.
 */
export const UNSHARED_FRACTION = 100n

export class WalletView {
  #largestEstimate: Credits = 0n
  #totals: WalletTotals
  #inFlight: Credits = 0n
  #unbooked: Credits

  /** @param unbooked charges that an earlier run of this process left to be booked */
  constructor(totals: WalletTotals, unbooked: Credits = 0n) {
    this.#totals = totals
    this.#unbooked = unbooked
  }

  get totals(): WalletTotals {
    return this.#totals
  }

  /** The sum of the estimates of this process's open calls. */
  get inFlight(): Credits {
    return this.#inFlight
  }

  /** Charges of this process that the totals do not show yet. */
  get unbooked(): Credits {
    return this.#unbooked
  }

  /** Returns the balance for this process, open calls not counted. */
  get balance(): Credits {
    return this.#totals.balance - this.#unbooked
  }

  /**
   * Reserves the estimate and returns true; returns false and changes nothing when the free balance does not cover it.
   */
  admit(estimate: Credits, reserveInFlight: boolean): boolean {
    const free = reserveInFlight ? this.balance - this.#inFlight : this.balance
    if (estimate > free) return false
    this.#inFlight += estimate
    if (estimate > this.#largestEstimate) this.#largestEstimate = estimate
    return true
  }

  /**
   * Returns true when the risk of this process, the call just admitted included, must be reserved over all processes:
   * the unreserved balance is below `exactBelow` (null: twice the largest estimate seen), or too little above it for
   * other processes to do the same. A reserved amount already counts twice, so that the answer errs towards true.
   */
  needsSharing(exactBelow: Credits | null): boolean {
    const { balance, reserved = 0n } = this.#totals
    const beyond = balance - reserved - (exactBelow ?? 2n * this.#largestEstimate)
    return beyond < UNSHARED_FRACTION * (this.#inFlight + this.#unbooked)
  }

  /** Ends an admitted call: its estimate is free again, its cost waits to be booked. */
  end(estimate: Credits, cost: Credits): void {
    this.#inFlight -= estimate
    this.#unbooked += cost
  }

  /**
   * Charges of this process are booked now; to be called in one step with `update`. Those of calls that a key made before
   * it had a cap were never counted here.
   */
  applyBooked(cost: Credits): void {
    this.#unbooked = cost < this.#unbooked ? this.#unbooked - cost : 0n
  }

  /** Takes totals that are newer than those known; older ones arrive late and are ignored. */
  update(totals: WalletTotals): void {
    if (totals.version > this.#totals.version) this.#totals = totals
  }

  /** Nothing open, nothing unbooked: the view may be dropped and read again. */
  get isIdle(): boolean {
    return this.#inFlight === 0n && this.#unbooked === 0n
  }
}
