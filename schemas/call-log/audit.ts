/** Calls as an audit compares them: the usage rows of PostgreSQL with their copy, the call log. */
import type { Credits } from '../money.ts'

/** Sums of some calls. */
export interface CallSum {
  readonly rows: bigint
  /** The sum of their ids: distinguishes calls of equal number and cost. */
  readonly ids: bigint
  readonly cost: Credits
}

/** The calls of one account that ended in one month. */
export interface MonthCalls {
  readonly accountId: string
  /** UTC: `202601`. */
  readonly month: string
}

export type MonthSum = MonthCalls & CallSum

/** The calls whose id, divided by the bucket's size, is `bucket`. */
export interface BucketSum extends CallSum {
  readonly bucket: bigint
}

export interface AuditedCall {
  readonly id: bigint
  readonly requestId: string
  readonly cost: Credits
}

/** The calls that both sides of a comparison read; both ends count. */
export interface ComparedCalls {
  readonly from: bigint
  readonly upto: bigint
  /** Epoch milliseconds: calls admitted before were taken away from the usage rows by retention; 0: none were. */
  readonly admittedSince: number
}
