/**
 * Refuses an empty wallet before anything is read, and a hold that a wallet does not cover. See docs/api-rules.md,
 * "Accounts and wallets".
 */
import { from } from 'rxjs'
import type { Budget, SpendRefusal } from '../../schemas/accounts/budget.ts'
import type { ConfigFile } from '../../schemas/config/file.ts'
import { Failure } from '../../schemas/failure.ts'
import { type Credits, printCredits } from '../../schemas/money.ts'
import type { BudgetView } from '../../src/credentials/budget.ts'
import type { KnownKey } from '../../src/credentials/credentials.ts'
import type { AuthenticatedCall, Caller } from './authenticate.ts'
import { type AnsweredKeys, isRepeated } from './idempotency.ts'
import type { Stage } from './pipeline.ts'

/**
 * Returns the refusal of a call. It names what `GET /v1/key/balance` shows, which agent keys do not open.
 * @param amount what the call may cost; null: nothing is left for any call
 * @param why the part that most of the amount is for, as `explainEstimate` has it
 */
export function insufficientBalance({ key, view }: KnownKey, amount: Credits | null, why = ''): Failure {
  const refusal = 'The account balance is insufficient for this call'
  if (key.kind === 'agent') return new Failure('quota_exceeded', `${refusal}. Please top up and try again.`)
  const balance = `${printCredits(view.balance)} credits`
  if (amount === null)
    return new Failure('quota_exceeded', `${refusal}: it is ${balance}. Please top up and try again.`)
  const reserved = amount > view.balance ? '' : ', part of which calls under way reserve'
  return new Failure(
    'quota_exceeded',
    `${refusal}: it may cost up to ${printCredits(amount)} credits${why}, and the balance is ${balance}${reserved}. ` +
      'Please top up and try again, or ask for less.',
  )
}

/** @throws Failure `quota_exceeded` */
export function assertBalance({ known, request }: Caller): void {
  if (known.view.balance <= 0n) throw insufficientBalance(known, null)
  assertLimitsLeft(known, request.submittedAt)
}

/**
 * Compares a hold with what is free: the estimates of calls in flight are not.
 * @param explain see `insufficientBalance`
 * @throws Failure `quota_exceeded`
 */
export function assertFunds(
  { known, request }: Caller,
  hold: Credits,
  { wallet }: ConfigFile,
  explain?: () => string,
): void {
  const { view } = known
  const reserved = wallet.reserve_in_flight ? view.inFlight : 0n
  if (hold > view.balance - reserved) throw insufficientBalance(known, hold, explain?.())
  assertLimitsLeave(known, hold, request.submittedAt)
}

/**
 * Returns the call where `assert` throws nothing, or where the Idempotency-Key of the call has an answer or a task already:
 * the charge or the hold of that may be what leaves too little.
 */
export function checkUnlessRepeated<C extends Caller>(
  records: AnsweredKeys,
  call: C,
  assert: (call: C) => void,
): C | Promise<C> {
  try {
    assert(call)
    return call
  } catch (refusal) {
    // While PostgreSQL is down the call is refused.
    return isRepeated(records, call).then(
      (repeated) => {
        if (!repeated) throw refusal
        return call
      },
      () => {
        throw refusal
      },
    )
  }
}

/** Refuses a call that `assert` refuses, unless it repeats one that has an answer or a task. */
export const requireCovered =
  <C extends AuthenticatedCall>(records: AnsweredKeys, assert: (call: C) => void): Stage<C, C> =>
  (call: C) => {
    const checked = checkUnlessRepeated(records, call, assert)
    return checked instanceof Promise ? from(checked) : checked
  }

/** Refuses a call whose wallet, spend cap or budget is empty. @throws Failure `quota_exceeded` */
export const requireBalance = <C extends AuthenticatedCall>(records: AnsweredKeys): Stage<C, C> =>
  requireCovered(records, (call: C) => assertBalance(call))

/**
 * The limits of a key besides its wallet, as this process sees them: its spend cap, and the budgets that cover the key,
 * its member and its account. See docs/api-rules.md, "Budgets".
 */
interface Limited {
  readonly cap: KnownKey['cap']
  readonly budgets: KnownKey['budgets']
}

export const isLimited = ({ cap, budgets }: Limited): boolean => cap !== null || budgets.length > 0

/** @param cost what the call may cost, as `explainCost` has it */
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
export const toSpendFailure = (refusal: SpendRefusal, cost?: string): Failure =>
  refusal.by === 'spend_cap' ? spendCapReached(cost) : budgetReached(refusal.budget, refusal.resetsAt, cost)

const toBudgetFailure = (view: BudgetView, at: number, cost?: string): Failure =>
  budgetReached(view.budget, view.resetsAt(at), cost)

/**
 * Reserves the estimate in this process, in all limits or in none. Returns null, or what makes the refusal, of what the call
 * may cost.
 */
export function admitWithinLimits(
  { cap, budgets }: Limited,
  estimate: Credits,
  at: number,
): ((cost: string) => Failure) | null {
  if (cap !== null && !cap.admit(estimate, true)) return spendCapReached
  for (const budget of budgets) {
    if (budget.at(at).admit(estimate, true)) continue
    const admitted = budgets.slice(0, budgets.indexOf(budget))
    endWithinLimits({ cap, budgets: admitted }, { estimate, cost: 0n }, at)
    return (cost) => toBudgetFailure(budget, at, cost)
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
  for (const budget of budgets) if (budget.at(at).balance <= 0n) throw toBudgetFailure(budget, at)
}

/** @throws Failure `quota_exceeded` where a limit leaves less than the amount */
export function assertLimitsLeave({ cap, budgets }: Limited, amount: Credits, at: number): void {
  if (cap !== null && amount > cap.balance - cap.inFlight) throw spendCapReached()
  for (const budget of budgets) {
    const { balance, inFlight } = budget.at(at)
    if (amount > balance - inFlight) throw toBudgetFailure(budget, at)
  }
}
