/** Books what the payment provider reports, by webhook, answer or reconciliation. */
import type { ProviderEvent, ProviderNotice, TakenNotice } from '../../schemas/payments/provider.ts'
import type { Provider } from '../../src/payments/provider.ts'
import type { Database } from '../../src/postgres/database.ts'
import type { PipelineLog } from '../settlement/retrying.ts'

/** The actor of the audit record. */
const PROVIDER = 'provider:stripe'

export interface BookingDeps {
  readonly database: Database
  readonly provider: Provider
  readonly log: PipelineLog
}

/** Takes an event once, whether it comes twice, late or out of order. */
export async function takeEvent(deps: BookingDeps, event: ProviderEvent): Promise<TakenNotice> {
  const { database, provider, log } = deps
  const take = () => database.transactAs(PROVIDER, (writing) => writing.payments.takeProviderEvent(event))
  let taken = await take()
  const { notice } = event
  if (taken.outcome === 'payment_unknown' && notice?.about === 'reversal') {
    // The refund was reported before the payment: the provider knows whose it is.
    const payment = await provider.readIntent(notice.intentId)
    if (payment === null) return { outcome: 'unchanged', paymentId: null }
    await takeReport(deps, payment)
    taken = await take()
  }
  if (taken.outcome === 'refused') logRefusal(log, taken, { event: event.id, type: event.type })
  return taken
}

/** Takes an answer of the provider. */
export async function takeReport(
  { database, log }: BookingDeps,
  notice: ProviderNotice,
): Promise<TakenNotice> {
  const taken = await database.transactAs(PROVIDER, (writing) => writing.payments.takeNotice(notice))
  if (taken.outcome === 'refused') logRefusal(log, taken, {})
  return taken
}

function logRefusal(log: PipelineLog, taken: TakenNotice & { outcome: 'refused' }, facts: object): void {
  log.error(
    { ...facts, payment: taken.paymentId, reason: taken.refusal },
    'Refused report of the payment provider: it contradicts our payment, and nothing was booked',
  )
}
