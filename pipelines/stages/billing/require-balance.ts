/**
 * Refuses an empty wallet before anything is read, and a hold that a wallet does not cover. See docs/api-rules.md,
 * "Accounts and wallets".
 */
import type { ConfigFile } from '../../../schemas/config/file.ts'
import { Failure } from '../../../schemas/failure.ts'
import type { Credits } from '../../../schemas/money.ts'
import type { AuthenticatedCall, Caller } from '../authenticate.ts'
import { type Stage, stage } from '../stage.ts'
import { assertLimitsLeave, assertLimitsLeft, isLimited } from './spend-limits.ts'

export const insufficientBalance = (): Failure =>
  new Failure(
    'quota_exceeded',
    'The account balance is insufficient for this call. Please top up and try again.',
  )

/** @throws Failure `quota_exceeded` */
export function assertBalance({ known, request }: Caller): void {
  if (known.view.balance <= 0n) throw insufficientBalance()
  if (isLimited(known)) assertLimitsLeft(known, request.submittedAt)
}

/**
 * Compares a hold with what is free: the estimates of calls in flight are not.
 * @throws Failure `quota_exceeded`
 */
export function assertFunds({ known, request }: Caller, hold: Credits, { wallet }: ConfigFile): void {
  const { view } = known
  const reserved = wallet.reserve_in_flight ? view.inFlight : 0n
  if (hold > view.balance - reserved) throw insufficientBalance()
  assertLimitsLeave(known, hold, request.submittedAt)
}

/** Refuses a call whose wallet, spend cap or budget is empty. @throws Failure `quota_exceeded` */
export const requireBalance = <C extends AuthenticatedCall>(): Stage<C, C> =>
  stage((call: C) => {
    assertBalance(call)
    return call
  })
