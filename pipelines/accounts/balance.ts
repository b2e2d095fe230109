/**
 * `GET /v1/key/balance`: the wallet behind the key. Free, at a zero balance too.
 * See docs/api-rules.md, "Balance and usage".
 */
import { defer, type Observable, of } from 'rxjs'
import { CURRENCY } from '../../schemas/call-log/row.ts'
import { printCredits } from '../../schemas/money.ts'
import type { WalletView } from '../../src/core/pricing/wallet.ts'
import type { Reply } from '../../src/http/handler.ts'
import { jsonReply } from '../replies/json.ts'
import type { KnownKey } from './credentials.ts'

/**
 * Returns the key's balance. Cost of this process's ended calls counts as used, booked or not, as it does where calls
 * are admitted.
 */
function keyBalance(view: WalletView) {
  const { balance, unbooked } = view
  const used = view.totals.used + unbooked
  const { held } = view.totals
  return {
    object: 'key.balance',
    currency: CURRENCY,
    remaining: printCredits(balance),
    used: printCredits(used),
    total: printCredits(balance + used + held),
    held: printCredits(held),
  }
}

/** Returns the spend cap of a key and the amount of it that is spent. */
const ofCap = ({ totals, unbooked }: WalletView) => ({
  spend_cap: printCredits(totals.balance + totals.used),
  spent: printCredits(totals.used + unbooked),
})

export const balance = ({ view, cap }: Pick<KnownKey, 'view' | 'cap'>): Observable<Reply> =>
  defer(() => of(jsonReply({ ...keyBalance(view), ...(cap !== null && ofCap(cap)) })))
