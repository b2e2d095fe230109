/** The refund of a call or a task, as answers show it. */
import type { ShownRefund } from '../../schemas/call-log/detail.ts'
import { Failure } from '../../schemas/failure.ts'
import { printCredits } from '../../schemas/money.ts'
import type { Wallets } from '../../src/postgres/billing/repository.ts'

/**
 * Returns the refund; null without one.
 * @param ref the id of the task, or else of the request
 * @throws Failure `service_unavailable` while PostgreSQL is down
 */
export async function readRefund(
  wallets: Wallets,
  accountId: string,
  ref: string,
): Promise<ShownRefund | null> {
  try {
    const entry = await wallets.findRefund(accountId, ref)
    if (entry === null) return null
    const { amount, note, createdAt } = entry
    return { amount: printCredits(amount), reason: note ?? '', created_at: createdAt.toISOString() }
  } catch (error) {
    throw new Failure('service_unavailable', 'Refunds cannot be read at the moment. Try again in a minute.', {
      internal: error instanceof Error ? error.message : String(error),
    })
  }
}
