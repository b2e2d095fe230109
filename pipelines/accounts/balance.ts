/**
 * `GET /v1/key/balance`: the wallet behind the key. Free, at a zero balance too.
 * See docs/api-rules.md, "Balance and usage".
 */
import { CURRENCY } from '../../schemas/call-log/row.ts'
import { printCredits } from '../../schemas/money.ts'
import type { BudgetView } from '../../src/credentials/budget.ts'
import type { WalletView } from '../../src/credentials/wallet.ts'
import type { Handler } from '../../src/http/handler.ts'
import { type AuthenticatedCall, authenticate, type KeyAccess } from '../calls/authenticate.ts'
import type { Stage } from '../calls/pipeline.ts'
import { answerJson, calls } from '../calls/pipeline.ts'

/**
 * Returns the key's balance. Cost of this process's ended calls counts as used, booked or not, as it does where calls
 * are admitted.
 */
function showKeyBalance(view: WalletView) {
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
const showCap = ({ totals, unbooked }: WalletView) => ({
  spend_cap: printCredits(totals.balance + totals.used),
  spent: printCredits(totals.used + unbooked),
})

/** Returns the budgets that cover a key, each in the period of the request. */
const showBudgets = (budgets: readonly BudgetView[], instant: number) => ({
  budgets: budgets.map((view) => {
    const { budget } = view
    const { totals, unbooked } = view.at(instant)
    const resetsAt = view.resetsAt(instant)
    return {
      id: budget.id,
      scope: budget.scope,
      amount: printCredits(budget.amount),
      spent: printCredits(totals.used + unbooked),
      period: budget.period,
      timezone: budget.timezone,
      resets_at: resetsAt === null ? null : new Date(resetsAt).toISOString(),
    }
  }),
})

export const balance = (access: KeyAccess): Handler =>
  calls(authenticate(access)).then(answerWithBalance()).toHandler()

/** Returns the wallet, the cap of a capped key, and the budgets that cover it. */
export const showBalance = ({ known: { view, cap, budgets }, request }: AuthenticatedCall) => ({
  ...showKeyBalance(view),
  ...(cap !== null && showCap(cap)),
  ...(budgets.length > 0 && showBudgets(budgets, request.submittedAt)),
})

/** Answers with the balance. */
export const answerWithBalance = (): Stage<AuthenticatedCall, never> => answerJson(showBalance)
