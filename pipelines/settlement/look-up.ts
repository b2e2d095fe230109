/**
 * Looks up in PostgreSQL which batches are booked though no notification has come: it may be lost, and so may what
 * JetStream had stored.
 */
import {
  catchError,
  EMPTY,
  exhaustMap,
  from,
  interval,
  mergeMap,
  type Observable,
  type SchedulerLike,
} from 'rxjs'
import type { WalletTotals } from '../../schemas/accounts/account.ts'
import type { JournalBatch } from '../../src/journal/journal.ts'
import type { Bookings } from '../../src/postgres/billing/repository.ts'
import { decodeSettlements } from './messages.ts'
import { OutageLog, type PipelineLog } from './retrying.ts'

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
  /** Batches that are not known to be booked by their id, oldest first. */
  readonly inFlight: ReadonlyMap<string, Published>
  /** Returns when NATS came back last. */
  readonly missedAt: () => number
  readonly database: Pick<Bookings, 'readBooked'>
  /** Called with a batch that is booked, and the totals after it. */
  readonly onBooked: (batch: JournalBatch, wallets: readonly WalletTotals[]) => void
  /** Called with a batch that is to be stored again. */
  readonly onUnbooked: (published: Published) => void
  readonly log: PipelineLog
  readonly scheduler: SchedulerLike
}

/** Looks up late batches for as long as it is subscribed to; what fails comes again in the next round. */
export function lookUpLate(deps: LookUpDependencies): Observable<void> {
  const { inFlight, database, log, scheduler } = deps
  const reading = new OutageLog(log, 'Reading the journal back')
  const asking = new OutageLog(log, 'Asking PostgreSQL for what is booked')

  const late = (): Published[] => {
    const [now, missedAt] = [scheduler.now(), deps.missedAt()]
    const found: Published[] = []
    let seen = 0
    for (const published of inFlight.values()) {
      if (seen++ === MAX_BATCHES) break
      const { storedAt } = published
      if (storedAt === null) continue
      const isMissed = storedAt <= missedAt && missedAt <= now - MISSED_WAIT_MS
      // The clock may have been set back.
      if (isMissed || storedAt <= now - BOOKED_WAIT_MS || storedAt > now) found.push(published)
    }
    return found
  }

  /** Returns null where the file cannot be read: the other batches do not wait for it. */
  const requestIdsOf = (batch: JournalBatch): string[] | null => {
    try {
      const { settlements } = decodeSettlements(batch.id, batch.payload())
      reading.succeeded()
      return settlements.map(({ request_id }) => request_id)
    } catch (error) {
      reading.failed(error)
      return null
    }
  }

  /** Rejects while PostgreSQL does not answer. */
  const lookUp = async (published: Published): Promise<void> => {
    const { batch } = published
    // It has waited for its turn.
    if (!inFlight.has(batch.id)) return
    const requestIds = requestIdsOf(batch)
    if (requestIds === null) return
    const { requestIds: found, wallets } = await database.readBooked(requestIds, [...batch.costs.keys()])
    asking.succeeded()
    if (!inFlight.has(batch.id)) return
    const isWhole = requestIds.length === batch.count
    if (!isWhole)
      log.error({ batch: batch.id }, 'The journal is damaged where a batch is; stored what is left of it')
    if (isWhole && requestIds.every((id) => found.has(id))) return deps.onBooked(batch, wallets)
    published.storedAt = null
    deps.onUnbooked(published)
  }

  return interval(INTERVAL_MS, scheduler).pipe(
    exhaustMap(() =>
      from(late()).pipe(
        mergeMap(lookUp, AT_ONCE),
        catchError((error) => {
          asking.failed(error)
          return EMPTY
        }),
      ),
    ),
  )
}
