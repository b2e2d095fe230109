/**
 * Usage rows on their way to the call log. A range of row ids is claimed and the claim committed before
 * anything is inserted elsewhere, so that after a crash the very same range comes again, under the same
 * token, and the receiver drops what it has already.
 */
import type { Settlement } from '../../schemas/event.ts'

/** Both ends count. */
export interface CopyRange {
  readonly from: bigint
  readonly to: bigint
}

/** The same for every try at the same range, and for no other range: a deduplication token. */
export const copyToken = (range: CopyRange): string => `usage-${range.from}-${range.to}`

/** A booked call with what the log shows of its key. Amounts are strings that count 1e-8 credit. */
export interface UsageRow extends Settlement {
  /** Rises in the order of booking. */
  readonly id: bigint
  /** Empty when no such key is known. */
  readonly key_name: string
  readonly key_prefix: string
  /** Epoch milliseconds. */
  readonly booked_at: number
}
