/**
 * `GET /v1/key/balance`: the wallet behind the key. Free, at a zero balance too.
 * See docs/api-rules.md, "Balance and usage".
 */
import { CURRENCY } from '../../schemas/call-log/row.ts'
import { printCredits } from '../../schemas/money.ts'
import type { WalletView } from '../../src/core/pricing/wallet.ts'
import type { Handler } from '../../src/http/handler.ts'
import { answerJson } from '../stages/answer.ts'
import { type AuthenticateDeps, type AuthenticatedCall, authenticate } from '../stages/authenticate.ts'
import { pipeline } from '../stages/pipeline.ts'
import type { Stage } from '../stages/stage.ts'

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

export const balance = (deps: AuthenticateDeps): Handler => pipeline(authenticate(deps), answerWithBalance())

/** Answers with the wallet, and with the cap of a capped key. */
export const answerWithBalance = (): Stage<AuthenticatedCall, never> =>
  answerJson(({ known: { view, cap } }) => ({ ...keyBalance(view), ...(cap !== null && ofCap(cap)) }))
