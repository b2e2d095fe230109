/** An empty wallet is refused before anything is read. Source: specification, "Balance and billing", 4. */
import { Failure } from '../../schemas/failure.ts'
import type { Caller } from './authenticate.ts'

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
export function requireBalance({ known }: Caller): void {
  if (known.view.balance <= 0n) throw insufficientBalance()
  if (known.cap !== null && known.cap.balance <= 0n) throw spendCapReached()
}
