/** Compares the provider's events and open payments with ours, and books what its webhooks have not brought. */
import { Failure } from '../../schemas/failure.ts'
import type { Payment } from '../../schemas/payments/payment.ts'
import type { ProviderNotice, TakenNotice } from '../../schemas/payments/provider.ts'
import { type BookingDeps, takeEvent, takeReport } from './take-event.ts'

const SECOND_MS = 1_000
const HOUR_MS = 60 * 60 * SECOND_MS
/** Events appear in the provider's list with a delay. */
const OVERLAP_MS = HOUR_MS
/** The provider keeps events for this long. */
const KEPT_MS = 30 * 24 * HOUR_MS
/** Younger open payments wait for their webhook. */
const OPEN_FOR_SECONDS = 3_600
/** A hosted page is open for a day. By then it has ended, even if it was never opened. */
const PAGE_MS = 25 * HOUR_MS

interface Reconciled {
  readonly since: Date
  /** The provider's events in the period. */
  readonly events: number
  /** Events that were missing here and are now taken, and open payments that had ended. */
  readonly found: number
  readonly refused: number
  /** Events and payments that could not be taken; the log names them. */
  readonly failed: number
}

/**
 * Takes every event that it can; logs those that fail and goes on.
 * @param since the start; default: the end of the last run
 * @throws Failure `service_unavailable` while the provider is down: nothing counts as compared
 */
export async function reconcile(deps: BookingDeps, since?: Date): Promise<Reconciled> {
  const { database, provider, log } = deps
  const startedAt = new Date()
  const last = await database.payments.readReconciled()
  const due = new Date(last === null ? startedAt.getTime() - KEPT_MS : last.getTime() - OVERLAP_MS)
  const from = since ?? due
  const events = await provider.listEvents(from)
  const counts = { found: 0, refused: 0, failed: 0 }
  const count = async (item: object, work: () => Promise<TakenNotice | null>): Promise<boolean> => {
    try {
      const taken = await work()
      if (taken?.outcome === 'taken') counts.found++
      if (taken?.outcome === 'refused') counts.refused++
      return true
    } catch (error) {
      if (error instanceof Failure && error.code === 'service_unavailable') throw error
      log.error({ ...item, err: error }, 'Failed to reconcile a payment; going on with the others')
      counts.failed++
      return false
    }
  }
  let until = startedAt
  for (const event of events) {
    const isTaken = await count({ event: event.id }, () => takeEvent(deps, event))
    // The oldest comes first. The next run begins before it.
    if (!isTaken && event.createdAt < until) until = event.createdAt
  }
  for (const payment of await database.payments.listOpen(OPEN_FOR_SECONDS))
    await count({ payment: payment.id }, async () => {
      const report = await makeReport(deps, payment, startedAt)
      return report && takeReport(deps, report)
    })
  // A later start would skip a period that was never compared.
  if (from <= due) await database.payments.keepReconciled(until)
  if (counts.found > 0)
    log.warn({ ...counts, since: from }, 'Reconciliation found payment events whose webhook did not come')
  return { since: from, events: events.length, ...counts }
}

/**
 * Returns the provider's state of an open payment; null if there is none yet, and for automatic attempts, which ask by
 * themselves.
 */
async function makeReport(
  { provider }: BookingDeps,
  payment: Payment,
  now: Date,
): Promise<ProviderNotice | null> {
  const isCreated = payment.state === 'created'
  if (isCreated && payment.kind === 'automatic') return null
  const report = isCreated ? null : await provider.readPayment(payment)
  if (report !== null || payment.createdAt.getTime() >= now.getTime() - PAGE_MS) return report
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
