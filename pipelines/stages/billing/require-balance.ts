/** An empty wallet is refused before anything is read. See docs/api-rules.md, "Accounts and wallets". */
import { Failure } from '../../../schemas/failure.ts'
import type { AuthenticatedCall, Caller } from '../authenticate.ts'
import { type Stage, stage } from '../stage.ts'
import { assertLimitsLeft, isLimited } from './spend-limits.ts'

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

/** Refuses a call whose wallet, spend cap or budget is empty. @throws Failure `quota_exceeded` */
export const requireBalance = <C extends AuthenticatedCall>(): Stage<C, C> =>
  stage((call: C) => {
    assertBalance(call)
    return call
  })
