/**
 * Settlement going nowhere: calls are metered and priced, nothing is written or booked. For the bench alone, to show
 * what settlement costs; a service started so says it loudly.
 */
import type { WalletView } from '../../core/pricing/wallet.ts'
import type { Journal } from '../../journal/journal.ts'

/** The environment variable that asks for it, and its value. */
export const SETTLEMENT_VARIABLE = 'TOLLGATE_SETTLEMENT'
export const SETTLEMENT_NOWHERE = 'nowhere'

export function nullJournal(
  wallet: (id: string) => WalletView | undefined,
): Pick<Journal, 'admit' | 'settle' | 'depth'> {
  return {
    admit(admission, written) {
      written(null)
      return { requestId: admission.request_id }
    },
    settle(_ticket, settlement, written) {
      // No one will book it: the view would count it as unbooked for ever.
      wallet(settlement.account_id)?.booked(BigInt(settlement.cost))
      wallet(settlement.key_id)?.booked(BigInt(settlement.cost))
      written?.()
    },
    depth: () => ({ open: 0, settlementsUnbooked: 0, bytes: 0, dropped: 0, isWritable: true }),
  }
}
