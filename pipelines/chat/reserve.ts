/**
 * Reserves what a call may cost in PostgreSQL, over all processes, before anything goes upstream: in the wallet where
 * its balance is low, and in the spend cap and the budgets that cover the key. It stays reserved until the call's row is booked.
 * While PostgreSQL is away, this process's own view of the balance decides. Any other error of it fails the call: a
 * statement that is wrong must not switch reservations off.
 */

import { Observable } from 'rxjs'
import type { SpendRefusal } from '../../schemas/accounts/budget.ts'
import type { Admission } from '../../schemas/call-log/columns.ts'
import type { Credits } from '../../schemas/money.ts'
import type { Reservations } from '../../src/postgres/billing/repository.ts'
import { endWithinLimits, failureOf, insufficientBalance, isLimited } from '../calls/balance.ts'
import type { Stage } from '../calls/pipeline.ts'
import { type AdmittedCall, costNote, explainEstimate } from './precharge.ts'

export interface ReservationDeps {
  readonly caps: Reservations
  /** Whether an error says that PostgreSQL does not answer. */
  readonly isAway: (error: unknown) => boolean
  /** Called when a reservation could not be changed though PostgreSQL answers. Must not throw. */
  readonly onReservationFault: (error: unknown) => void
}

export interface ReserveDeps extends ReservationDeps {
  /** Each reservation names its journal, so that `journal abandon` finds the calls of a lost machine. */
  readonly journalId: string
  /** Called for each call that the reservations of all processes refuse. Must not throw. */
  readonly onReservationRefused: (reason: 'wallet' | SpendRefusal['by']) => void
}

/** A call that has just ended gives back the rest of its estimate this soon: a client's next call is not refused for it. */
const RETRY_AFTER_MS = [50, 250]

/** Takes a failed write: it is corrected when the row is booked, or when the reservation expires. */
const reportFault =
  ({ isAway, onReservationFault }: ReservationDeps) =>
  (error: unknown): void => {
    if (!isAway(error)) onReservationFault(error)
  }

const after = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

/** Returns the call as its journal will have it. */
export const admissionOf = (admitted: AdmittedCall): Admission => ({
  request_id: admitted.request.requestId,
  account_id: admitted.known.account.id,
  key_id: admitted.known.key.id,
  model: admitted.model.id,
  protocol: admitted.protocol,
  stream: admitted.call.stream && admitted.call.isAssembled !== true,
  submitted_at: admitted.request.submittedAt,
  estimate: admitted.estimate.toString(),
})

type ReservedIn = Parameters<Reservations['reserveWallet']>[0]['reservedIn']

async function reserveInWallet(
  { caps }: ReserveDeps,
  { known, request, estimate }: AdmittedCall,
  reservedIn: ReservedIn,
): Promise<boolean> {
  const wanted = {
    accountId: known.account.id,
    requestId: request.requestId,
    amount: estimate,
    reservedIn,
  }
  for (const ms of RETRY_AFTER_MS) {
    if (await caps.reserveWallet(wanted)) return true
    await after(ms)
  }
  return caps.reserveWallet(wanted)
}

/** @throws Failure `quota_exceeded`; any other error as PostgreSQL has it */
async function reserveOverProcesses(deps: ReserveDeps, call: AdmittedCall): Promise<void> {
  const { known, request, estimate, isShared } = call
  const reservedIn = { journalId: deps.journalId, admission: admissionOf(call) }
  if (isShared && !(await reserveInWallet(deps, call, reservedIn))) {
    deps.onReservationRefused('wallet')
    throw insufficientBalance(known, estimate, explainEstimate(call, call.estimateMode))
  }
  if (!isLimited(known)) return
  const { requestId, submittedAt } = request
  const refusal = await deps.caps.reserveSpend({
    keyId: known.key.id,
    requestId,
    amount: estimate,
    submittedAt,
    reservedIn,
  })
  if (refusal === null) return
  deps.onReservationRefused(refusal.by)
  throw failureOf(refusal, costNote(call, estimate, call.estimateMode))
}

/** Reserves, then emits the call. Until then a refusal, or a client that leaves, gives back what was admitted here. */
const reserved = <C extends AdmittedCall>(deps: ReserveDeps, admitted: C): Observable<C> =>
  new Observable((subscriber) => {
    const { request, known, estimate } = admitted
    let isHandedOver = false
    subscriber.add(() => {
      if (isHandedOver) return
      known.view.end(estimate, 0n)
      endWithinLimits(known, { estimate, cost: 0n }, request.submittedAt)
    })
    const giveBack = () => void deps.caps.release(request.requestId).catch(reportFault(deps))
    void reserveOverProcesses(deps, admitted)
      .then(
        () => null,
        (error: unknown) => (deps.isAway(error) ? null : error),
      )
      .then((refusal) => {
        if (subscriber.closed) giveBack()
        else if (refusal === null) {
          isHandedOver = true
          subscriber.next(admitted)
          subscriber.complete()
        } else {
          giveBack()
          subscriber.error(refusal)
        }
      })
  })

/**
 * Reserves the estimate over all processes, where the balance is low or a spend cap or budget covers the key.
 * @throws Failure `quota_exceeded`; any other error that is no absence of PostgreSQL
 */
export const reserve =
  <C extends AdmittedCall>(deps: ReserveDeps): Stage<C, C> =>
  (call: C) =>
    !isLimited(call.known) && !call.isShared ? call : reserved(deps, call)

/** Ends the reservations of an admitted call, in this process and over all of them. */
export function endReservation(
  deps: ReservationDeps,
  { request, known, estimate, isShared }: AdmittedCall,
  cost: Credits,
): void {
  known.view.end(estimate, cost)
  if (isLimited(known)) endWithinLimits(known, { estimate, cost }, request.submittedAt)
  else if (!isShared) return
  // Until the row is booked its cost stays reserved, and no more: the rest is free for the next call.
  deps.caps.shrink(request.requestId, cost).catch(reportFault(deps))
}
