/** The journal of the bench's gateway without settlement. */
import t from 'tap'
import { nullJournal } from '../../bench/subjects/null-journal.ts'
import type { Settlement } from '../../schemas/events/event.ts'
import { WalletView } from '../../src/core/pricing/wallet.ts'
import type { Credentials } from '../../src/credentials/credentials.ts'

t.test('a charged call leaves nothing unbooked in the wallets of its account and its key', async (t) => {
  const totals = { balance: 100n, held: 0n, used: 0n, version: 1n }
  const wallets = new Map(
    ['acc_1', 'key_1'].map((id) => [id, new WalletView({ ...totals, accountId: id })] as const),
  )
  const journal = nullJournal()
  journal.start({ wallet: (id: string) => wallets.get(id) } as Credentials)
  for (const wallet of wallets.values()) {
    t.ok(wallet.admit(9n, true))
    wallet.end(9n, 7n)
    t.equal(wallet.unbooked, 7n)
  }
  let written = 0
  journal.journal.settle(
    null,
    { account_id: 'acc_1', key_id: 'key_1', cost: '7' } as Settlement,
    () => written++,
  )
  t.equal(written, 1)
  for (const wallet of wallets.values()) t.equal(wallet.unbooked, 0n)
})
