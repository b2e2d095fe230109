/** The refund of a call or a task, as answers show it. */
import type { LedgerEntry } from '../../schemas/accounts/account.ts'
import type { ShownRefund } from '../../schemas/call-log/detail.ts'
import { Failure } from '../../schemas/failure.ts'
import { printCredits } from '../../schemas/money.ts'
import type { Wallets } from '../../src/postgres/billing/repository.ts'

export interface RefundDeps {
  readonly database: Pick<Wallets, 'findRefund'>
}

export const refundShape = ({ amount, note, createdAt }: LedgerEntry): ShownRefund => ({
  amount: printCredits(amount),
  reason: note ?? '',
  created_at: createdAt.toISOString(),
})

/**
 * Returns the refund; null without one.
 * @param ref the id of the task, or else of the request
 * @throws Failure `service_unavailable` while PostgreSQL is away
 */
export async function readRefund(
  { database }: RefundDeps,
  accountId: string,
  ref: string,
): Promise<ShownRefund | null> {
  try {
    const entry = await database.findRefund(accountId, ref)
    return entry && refundShape(entry)
  } catch (error) {
    throw new Failure('service_unavailable', 'Refunds cannot be read at the moment. Try again in a minute.', {
      internal: error instanceof Error ? error.message : String(error),
    })
  }
}
