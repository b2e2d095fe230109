/** The findings of an audit of the wallets. See docs/operating.md, "The command line". */
import type {
  AuditedCall,
  BucketSum,
  ComparedCalls,
  MonthCalls,
  MonthSum,
} from '../../../schemas/call-log/audit.ts'
import type { ProviderPayment } from '../../../schemas/payments/provider.ts'

export const DIFFERENCE_KINDS = [
  /** The balance is not the sum of the account's ledger entries. */
  'balance',
  /** `held` is not the sum of the account's open holds. */
  'held',
  /** The held amount by the hold, release and refund entries differs from the sum of the open holds. */
  'held_entries',
  /** `used` is not the sum of the account's charges. */
  'used',
  /** The account has no wallet. */
  'wallet_missing',
  /** Ledger entries of an account that has no wallet. */
  'entries_without_wallet',
  /** The entries of a hold do not match its state. */
  'hold_entries',
  /** A task and its hold differ: open with its amount until the end, then closed with its cost. */
  'task_hold',
  /** The one charge that a booked call with a cost must have is missing, too much, or another amount. */
  'charge',
  /** A call was charged and has no row. */
  'call_missing',
  /** An account has several entries with one reference. */
  'reference',
  /** The refunds of a call or task are above its charge, or it was never charged. */
  'refund',
  /** A top-up, adjustment or trial credit names its actor, but the audit record has no such operation. */
  'credit_act',
  /** A paid payment has one top-up of its credits in the ledger; another payment none. */
  'payment',
  /** Credits that a refund or a dispute took back differ from the ledger. */
  'payment_reversal',
  /** The provider reported what contradicts our payment: nothing was booked. `ref` is its event. */
  'payment_event',
  /** A paid payment has one receipt, and the numbers of receipts have no gap. */
  'receipt',
  /** The provider has another amount of a payment, has one that is not booked, or lacks one that is. */
  'provider_payment',
  /** The provider took back another amount of a payment. */
  'provider_reversal',
  /** The spent amount of a grant differs from the cost of the key's calls. */
  'grant_spent',
  /** The spent amount of a budget in a period differs from the cost of the calls; `ref` has the budget and the beginning. */
  'budget_spent',
  /** An employee or agent key has no grant. */
  'grant_missing',
  /** A settlement was not booked, refused or malformed: its call was not charged. */
  'settlement_unbooked',
  /** A request id has more than one row. */
  'request_id',
  /** The call log has another number of rows for the account, or another cost. */
  'log_rows',
  'log_cost',
  /** A call that was copied is not in the call log. */
  'log_missing',
  /** A call is in the call log more than once. */
  'log_doubled',
  /** A call of the call log was never booked, or not for this account, or not in this month. */
  'log_unknown',
  /** A call has another cost in the call log. */
  'log_call_cost',
  /** A sum by day in the call log differs from its calls; `ref` is the UTC day. */
  'day_requests',
  'day_cost',
  'day_input_tokens',
  'day_output_tokens',
  'day_cached_tokens',
] as const
export type DifferenceKind = (typeof DIFFERENCE_KINDS)[number]

export interface Difference {
  readonly account_id: string
  readonly kind: DifferenceKind
  /** The request, task or day, where the difference is about one. */
  readonly ref?: string
  /** Credits as decimal strings, or a number of rows, calls or tokens. */
  readonly expected: string
  readonly found: string
}

export interface AuditReport {
  /** Nothing that was compared differs. */
  readonly ok: boolean
  /** The instant since which what was written was read; absent: everything was. */
  readonly since?: Date
  /** Number of checked wallets and ledger entries. */
  readonly accounts: number
  readonly entries: number
  /** At most `MAX_DIFFERENCES_PER_KIND` of each kind. */
  readonly differences: readonly Difference[]
  /** Reason why the call log could not be compared. Absent: it was, or the comparison was not requested. */
  readonly logTrouble?: string
  /** Reason why the provider's books could not be compared. Absent: they were, or there is no provider. */
  readonly paymentsTrouble?: string
}

/** The payment provider for audits. Throws Failure `service_unavailable` while it is down. */
export interface AuditedPayments {
  /** Returns our paid payments in its books, begun since an instant. */
  listPaid(since: Date): Promise<readonly ProviderPayment[]>
}

/** The call log for audits. Each throws Failure `service_unavailable` while it is down. */
export interface AuditedLog {
  /** Months that ended before this instant (epoch milliseconds) were dropped by age; 0: none was. */
  readRetainedFrom(): Promise<number>
  /** Returns sums over the compared calls. A month without calls is absent. */
  sumMonths(compared: ComparedCalls): Promise<readonly MonthSum[]>
  /** Returns sums of the compared calls of one month, by buckets of this many ids. */
  bucketSums(calls: MonthCalls, compared: ComparedCalls, bucketIds: number): Promise<readonly BucketSum[]>
  /** Returns compared calls; a duplicate is returned twice. */
  listCallsBetween(calls: MonthCalls, compared: ComparedCalls): Promise<readonly AuditedCall[]>
  /**
   * Returns the days whose sums differ from their calls, in the months from an instant on (null: all); calls above `upto`
   * may not be in the sums yet.
   */
  compareDays(upto: bigint, since: Date | null): Promise<readonly Difference[]>
}
