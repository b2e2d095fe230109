/** Compares the provider's events and open payments with ours, and books what its webhooks have not brought. */
import type { Payment } from '../../schemas/payments/payment.ts'
import type { ProviderNotice } from '../../schemas/payments/provider.ts'
import { type BookingDeps, takeEvent, takeReport } from './take-event.ts'

const SECOND_MS = 1_000
const HOUR_MS = 60 * 60 * SECOND_MS
/** Events appear in the provider's list a little after they were made. */
const OVERLAP_MS = HOUR_MS
/** So long the provider keeps events. */
const KEPT_MS = 30 * 24 * HOUR_MS
/** Younger open payments wait for their webhook. */
const OPEN_FOR_SECONDS = 3_600
/** A hosted page opens for a day. One that was never opened is over by then. */
const PAGE_MS = 25 * HOUR_MS

export interface Reconciled {
  readonly since: Date
  /** Events of the provider since then. */
  readonly events: number
  /** Those of them that were missing here, and are taken now, with open payments that had ended. */
  readonly found: number
  readonly refused: number
}

/** @param since from when on; default: where the last time ended */
export async function reconcile(deps: BookingDeps, since?: Date): Promise<Reconciled> {
  const { database, provider, log } = deps
  const startedAt = new Date()
  const last = await database.readReconciled()
  const from = since ?? new Date(last === null ? startedAt.getTime() - KEPT_MS : last.getTime() - OVERLAP_MS)
  const events = await provider.eventsSince(from)
  const counts = { found: 0, refused: 0 }
  const count = (outcome: string) => {
    if (outcome === 'taken') counts.found++
    if (outcome === 'refused') counts.refused++
  }
  for (const event of events) count((await takeEvent(deps, event)).outcome)
  for (const payment of await database.listOpenPayments(OPEN_FOR_SECONDS)) {
    const report = await reportOf(deps, payment, startedAt)
    if (report !== null) count((await takeReport(deps, report)).outcome)
  }
  await database.keepReconciled(startedAt)
  if (counts.found > 0)
    log.warn({ ...counts, since: from }, 'Reconciliation found payment events whose webhook did not come')
  return { since: from, events: events.length, ...counts }
}

/** Returns what the provider says about an open payment; null where it is not asked: automatic attempts ask by themselves. */
async function reportOf(
  { provider }: BookingDeps,
  payment: Payment,
  now: Date,
): Promise<ProviderNotice | null> {
  if (payment.state !== 'created') return provider.readPayment(payment)
  const isOver = payment.kind === 'checkout' && payment.createdAt.getTime() < now.getTime() - PAGE_MS
  if (!isOver) return null
  const { id: paymentId, sessionId, intentId, amount, currency } = payment
  return {
    about: 'payment',
    event: 'expired',
    paymentId,
    customerId: null,
    sessionId,
    intentId,
    amount,
    currency,
  }
}
