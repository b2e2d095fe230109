/**
 * The limits of a key besides its wallet, as this process sees them: its spend cap, and the budgets that cover the key,
 * its member and its account. See docs/api-rules.md, "Budgets".
 */
import type { Budget, SpendRefusal } from '../../schemas/accounts/budget.ts'
import { Failure } from '../../schemas/failure.ts'
import { type Credits, printCredits } from '../../schemas/money.ts'
import type { BudgetView } from '../../src/core/pricing/budget.ts'
import type { KnownKey } from '../../src/credentials/credentials.ts'

type Limited = Pick<KnownKey, 'cap' | 'budgets'>

export const isLimited = ({ cap, budgets }: Limited): boolean => cap !== null || budgets.length > 0

/** @param cost what the call may cost, as `costNote` has it */
const spendCapReached = (cost = ''): Failure =>
  new Failure(
    'quota_exceeded',
    `The spend cap of this API key leaves too little for this call${cost}. Ask an admin of the organization to raise it.`,
  )

const PERIOD_NAMES = { day: 'daily', week: 'weekly', month: 'monthly' } as const
const SUBJECT_NAMES = {
  key: 'this API key',
  member: 'the member who uses this API key',
  account: 'the account',
} as const

const budgetReached = ({ id, amount, period, scope }: Budget, resetsAt: number | null, cost = ''): Failure =>
  new Failure(
    'quota_exceeded',
    `The ${PERIOD_NAMES[period]} budget of ${SUBJECT_NAMES[scope]} (${printCredits(amount)} credits, ${id}) leaves too ` +
      `little for this call${cost}. It resets ${resetsAt === null ? 'at the end of its period' : `at ${new Date(resetsAt).toISOString()}`}. ` +
      'Wait until then, or ask an owner of the account to raise it.',
  )

/** Returns what the client gets for a refused reservation. */
export const failureOf = (refusal: SpendRefusal, cost?: string): Failure =>
  refusal.by === 'spend_cap' ? spendCapReached(cost) : budgetReached(refusal.budget, refusal.resetsAt, cost)

const reached = (view: BudgetView, at: number, cost?: string): Failure =>
  budgetReached(view.budget, view.resetsAt(at), cost)

/**
 * Reserves the estimate in this process, in all limits or in none; returns the refusal, or null.
 * @param note says what the call may cost
 */
export function admitWithinLimits(
  { cap, budgets }: Limited,
  estimate: Credits,
  at: number,
  note: () => string,
): Failure | null {
  if (cap !== null && !cap.admit(estimate, true)) return spendCapReached(note())
  for (const [index, budget] of budgets.entries()) {
    if (budget.at(at).admit(estimate, true)) continue
    endWithinLimits({ cap, budgets: budgets.slice(0, index) }, { estimate, cost: 0n }, at)
    return reached(budget, at, note())
  }
  return null
}

/** Ends a call that was admitted by `admitWithinLimits` and submitted `at` this instant. */
export function endWithinLimits(
  { cap, budgets }: Limited,
  { estimate, cost }: { readonly estimate: Credits; readonly cost: Credits },
  at: number,
): void {
  cap?.end(estimate, cost)
  for (const budget of budgets) budget.at(at).end(estimate, cost)
}

/** @throws Failure `quota_exceeded` where a limit is used up, calls under way not counted */
export function assertLimitsLeft({ cap, budgets }: Limited, at: number): void {
  if (cap !== null && cap.balance <= 0n) throw spendCapReached()
  for (const budget of budgets) if (budget.at(at).balance <= 0n) throw reached(budget, at)
}

/** @throws Failure `quota_exceeded` where a limit leaves less than the amount */
export function assertLimitsLeave({ cap, budgets }: Limited, amount: Credits, at: number): void {
  if (cap !== null && amount > cap.balance - cap.inFlight) throw spendCapReached()
  for (const budget of budgets) {
    const { balance, inFlight } = budget.at(at)
    if (amount > balance - inFlight) throw reached(budget, at)
  }
}
