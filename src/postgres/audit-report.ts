/** What an audit of the wallets finds. Source: operator, "The command line", `wallet verify`. */
import type { Credits } from '../../schemas/money.ts'

export const DIFFERENCE_KINDS = [
  /** The balance is not the sum of the account's ledger entries. */
  'balance',
  /** `held` is not the sum of the account's open holds. */
  'held',
  /** What the hold, release and refund entries leave held is not the sum of the open holds. */
  'held_entries',
  /** `used` is not the sum of the account's charges. */
  'used',
  /** The account has no wallet. */
  'wallet_missing',
  /** Ledger entries of an account that has no wallet. */
  'entries_without_wallet',
  /** The entries of a hold are not those that its state asks for. */
  'hold_entries',
  /** The one charge that a booked call with a cost must have is missing, too much, or another amount. */
  'charge',
  /** A call was charged and has no row. */
  'call_missing',
  /** A request id has more than one row. */
  'request_id',
  /** The call log has another number of rows for the account, or another cost. */
  'log_rows',
  'log_cost',
] as const
export type DifferenceKind = (typeof DIFFERENCE_KINDS)[number]

export interface Difference {
  readonly account_id: string
  readonly kind: DifferenceKind
  /** The request or task, where the difference is about one. */
  readonly ref?: string
  /** Credits as decimal strings, or a number of rows. */
  readonly expected: string
  readonly found: string
}

export interface AuditReport {
  readonly ok: boolean
  /** How many wallets and ledger entries were looked at. */
  readonly accounts: number
  readonly entries: number
  /** At most `MAX_DIFFERENCES_PER_KIND` of each kind. */
  readonly differences: readonly Difference[]
}

/** What the call log holds of one account. */
export interface LogSum {
  readonly accountId: string
  readonly rows: bigint
  readonly cost: Credits
}

/** Reads the sums over all rows of the call log whose id is at most `upto`. */
export type ReadLogSums = (upto: bigint) => Promise<readonly LogSum[]>
