/** An empty wallet is refused before anything is read. See docs/api-rules.md, "Accounts and wallets". */
import { Failure } from '../../schemas/failure.ts'
import type { AuthenticatedCall, Caller } from './authenticate.ts'
import { type Stage, stage } from './stage.ts'

export const insufficientBalance = (): Failure =>
  new Failure(
    'quota_exceeded',
    'The account balance is insufficient for this call. Please top up and try again.',
  )

export const spendCapReached = (): Failure =>
  new Failure(
    'quota_exceeded',
    'The spend cap of this API key leaves too little for this call. Ask an admin of the organization to raise it.',
  )

/** @throws Failure `quota_exceeded` */
export function assertBalance({ known }: Pick<Caller, 'known'>): void {
  if (known.view.balance <= 0n) throw insufficientBalance()
  if (known.cap !== null && known.cap.balance <= 0n) throw spendCapReached()
}

/** Refuses a call whose wallet or spend cap is empty. @throws Failure `quota_exceeded` */
export const requireBalance = <C extends AuthenticatedCall>(): Stage<C, C> =>
  stage((call: C) => {
    assertBalance(call)
    return call
  })
