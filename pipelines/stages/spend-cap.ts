/**
 * A capped key's calls over all processes: what a call may cost is reserved in PostgreSQL before anything goes upstream,
 * and stays so until its row is booked. Source: decisions, "Organizations, agents, knowledge". While PostgreSQL is away,
 * what this process knows of the cap decides alone (failures, row 48).
 */
import { Observable } from 'rxjs'
import type { Credits } from '../../schemas/money.ts'
import type { Organizations } from '../../src/postgres/organization-types.ts'
import type { AdmittedCall } from './precharge.ts'
import { spendCapReached } from './wallet-gate.ts'

export interface SpendCapDeps {
  readonly caps: Pick<Organizations, 'reserveCap' | 'shrinkReservation' | 'releaseCap'>
}

/** What cannot be written now is put right when the row is booked, or when the reservation's time is up. */
const ignored = () => {}

/**
 * Emits the call once its estimate is reserved. Until then it is this stage that gives back what was admitted here,
 * whether the call is refused or its client leaves.
 * @throws Failure `quota_exceeded`
 */
export function reservedInCap({ caps }: SpendCapDeps, admitted: AdmittedCall): Observable<AdmittedCall> {
  const { exchange, known, estimate } = admitted
  return new Observable((subscriber) => {
    let isHandedOver = false
    subscriber.add(() => {
      if (isHandedOver) return
      known.view.end(estimate, 0n)
      known.cap?.end(estimate, 0n)
    })
    const { requestId } = exchange
    const reserved = caps.reserveCap({ keyId: known.key.id, requestId, amount: estimate })
    void reserved
      .catch(() => true)
      .then((isReserved) => {
        if (subscriber.closed) {
          if (isReserved) caps.releaseCap(requestId).catch(ignored)
        } else if (isReserved) {
          isHandedOver = true
          subscriber.next(admitted)
          subscriber.complete()
        } else subscriber.error(spendCapReached())
      })
  })
}

/** The end of an admitted call, of whatever key. */
export function endWithinCap(
  { caps }: SpendCapDeps,
  { exchange, known, estimate }: AdmittedCall,
  cost: Credits,
): void {
  if (known.cap === null) return
  known.cap.end(estimate, cost)
  // Until the row is booked its cost stays reserved, and no more: the rest is free for the next call.
  caps.shrinkReservation(exchange.requestId, cost).catch(ignored)
}
