/** A journal that writes and books nothing. The difference to the real one is the cost of settlement. */
import type { WalletView } from '../../src/credentials/wallet.ts'
import type { GatewayJournal } from '../../src/server/gateway/journal/journal.ts'

/** Returns a journal that drops each settlement and marks it as booked in the wallets. */
export function nullJournal(): GatewayJournal {
  let readWallet: (id: string) => WalletView | undefined = () => undefined
  return {
    journal: {
      id: 'none',
      admit(admission, written) {
        written(null)
        return { requestId: admission.request_id }
      },
      settle(_ticket, { account_id, key_id, cost }, written) {
        // No settler books it, so the wallet would count it as unbooked forever.
        for (const id of [account_id, key_id]) readWallet(id)?.applyBooked(BigInt(cost))
        written?.()
      },
    },
    depth: () => ({ open: 0, settlementsUnbooked: 0, bytes: 0, dropped: 0, isWritable: true }),
    recoveredCost: () => 0n,
    start(credentials) {
      readWallet = (id) => credentials.findWallet(id)
    },
    awaitCaughtUp: async () => {},
    bookEnded: async () => {},
    unreadiness: () => null,
    lagMs: () => 0,
    pingNats: async () => {},
    close: async () => {},
    closeAtOnce: async () => {},
  }
}
