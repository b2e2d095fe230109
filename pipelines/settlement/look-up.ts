/**
 * Looks up in PostgreSQL which batches are booked though no notification has come: it may be lost, and so may what
 * JetStream had stored.
 */
import {
  defer,
  EMPTY,
  exhaustMap,
  from,
  interval,
  type MonoTypeOperatorFunction,
  mergeMap,
  type Observable,
  type SchedulerLike,
} from 'rxjs'
import type { WalletTotals } from '../../schemas/accounts/account.ts'
import type { JournalBatch } from '../../src/journal/journal.ts'
import type { Bookings } from '../../src/postgres/billing/repository.ts'
import { decodeSettlements } from './messages.ts'
import { FAULT, OutageLog, type PipelineLog, resubscribeOnFault, retrying } from './retrying.ts'

/** After this time without the notification of a stored batch, PostgreSQL is queried. */
const BOOKED_WAIT_MS = 10_000
/** The same, after NATS was away: notifications are more likely lost than late. */
const MISSED_WAIT_MS = 1_000
const INTERVAL_MS = 1_000
/** Only the oldest batches are looked up: the others follow them. */
const MAX_BATCHES = 256
const AT_ONCE = 8

export interface Published {
  readonly batch: JournalBatch
  /** When JetStream has stored it last; null before. */
  storedAt: number | null
}

export interface LookUpDependencies {
  /** Returns the batches that are not known to be booked, oldest first. */
  readonly published: () => Iterable<Published>
  /** Returns when NATS came back last. */
  readonly missedAt: () => number
  readonly database: Pick<Bookings, 'readBooked'>
  /** Called with a batch that is booked, and the totals after it. */
  readonly onBooked: (batch: JournalBatch, wallets: readonly WalletTotals[]) => void
  /** Stores a batch again. */
  readonly store: (published: Published) => Observable<void>
  readonly untilConfirmed: <T>(batch: JournalBatch) => MonoTypeOperatorFunction<T>
  readonly log: PipelineLog
  readonly scheduler: SchedulerLike
}

/** Looks up late batches for as long as it is subscribed to. Stores those again that are not booked. */
export function lookUpLate(deps: LookUpDependencies): Observable<void> {
  const { database, log, scheduler } = deps
  const asking = new OutageLog(log, 'Asking PostgreSQL for what is booked')

  const late = (): Published[] => {
    const [now, missedAt] = [scheduler.now(), deps.missedAt()]
    const found: Published[] = []
    let seen = 0
    for (const published of deps.published()) {
      if (seen++ === MAX_BATCHES) break
      const { storedAt } = published
      if (storedAt === null) continue
      const isMissed = storedAt <= missedAt && missedAt <= now - MISSED_WAIT_MS
      if (isMissed || storedAt <= now - BOOKED_WAIT_MS) found.push(published)
    }
    return found
  }

  /** Returns the totals when PostgreSQL has all of the batch, else null. */
  const askedFor = (batch: JournalBatch) =>
    defer(async () => {
      const { settlements } = decodeSettlements(batch.id, batch.payload())
      const requestIds = settlements.map(({ request_id }) => request_id)
      const { requestIds: found, wallets } = await database.readBooked(requestIds, [...batch.costs.keys()])
      return requestIds.every((id) => found.has(id)) ? wallets : null
    }).pipe(retrying(asking, scheduler), deps.untilConfirmed(batch))

  const lookedUp = (published: Published) =>
    askedFor(published.batch).pipe(
      mergeMap((wallets) => {
        if (wallets === null) return deps.store(published)
        deps.onBooked(published.batch, wallets)
        return EMPTY
      }),
    )

  return interval(INTERVAL_MS, scheduler).pipe(
    exhaustMap(() => from(late()).pipe(mergeMap(lookedUp, AT_ONCE))),
    resubscribeOnFault((error) => log.error({ error }, FAULT), scheduler),
  )
}
