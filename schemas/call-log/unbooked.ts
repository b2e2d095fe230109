/** Calls that only the call log has: PostgreSQL was restored from an older copy, or lost what it had committed. */
import { z } from 'zod'
import { amountText } from '../management/operation.ts'
import type { Credits } from '../money.ts'

/** A place in the log, which is read by account, instant and id. */
export interface LogPosition {
  readonly accountId: string
  /** Epoch milliseconds. */
  readonly createdAt: number
  readonly id: bigint
}

export interface LoggedCall extends LogPosition {
  readonly requestId: string
  /** Epoch milliseconds. */
  readonly submittedAt: number
  readonly cost: Credits
}

export const unbookedSum = z.object({
  calls: z.int().describe('Calls that the log has and PostgreSQL has not.'),
  cost: amountText.describe('What they cost, in credits.'),
  accounts: z
    .array(z.object({ account_id: z.string(), calls: z.int(), cost: amountText, is_known: z.boolean() }))
    .describe('The same by account. A call of an account that PostgreSQL does not know cannot be booked.'),
})
export type UnbookedSum = z.infer<typeof unbookedSum>
