/**
 * Looks up in PostgreSQL which batches are booked though no notification has arrived: it may be lost, and so may what
 * JetStream had stored.
 */
import { EMPTY, exhaustMap, interval, map, type Observable, type SchedulerLike } from 'rxjs'
import type { WalletTotals } from '../../schemas/accounts/account.ts'
import type { JournalBatch } from '../../src/journal/journal.ts'
import type { Bookings } from '../../src/postgres/billing/repository.ts'
import { decodeSettlements, type SettlementMessage } from './messages.ts'
import { OutageLog, type PipelineLog } from './retrying.ts'

/** After this time without the notification of a stored batch, PostgreSQL is queried. */
const BOOKED_WAIT_MS = 10_000
/** The same, after NATS was away: notifications are more likely lost than late. */
const MISSED_WAIT_MS = 1_000
const INTERVAL_MS = 1_000
/** The most that a round looks up, from the oldest on: the others follow them. */
const MAX_BATCHES = 256
const AT_ONCE = 8

export interface Published {
  readonly batch: JournalBatch
  /** When JetStream has stored it last; null before. */
  storedAt: number | null
  /** When JetStream refused it first since it was stored last; null where it has not. */
  refusedSince: number | null
  /** When it was sent to a settler directly last; null before. */
  sentAt: number | null
  /** It was stored, and no settler has booked it in time. */
  isOverdue: boolean
  /** The last try to read it back failed. */
  isUnreadable: boolean
}

interface LookUpDependencies {
  /** Batches that are not known to be booked, by id, oldest first. */
  readonly inFlight: ReadonlyMap<string, Published>
  /** Returns when NATS came back last. */
  readonly missedAt: () => number
  readonly database: { readonly bookings: Pick<Bookings, 'readBooked'> }
  /** Called with a batch that is booked, and the totals after it. */
  readonly onBooked: (batch: JournalBatch, wallets: readonly WalletTotals[]) => void
  /** Called with a batch that is to be stored again. */
  readonly onUnbooked: (published: Published) => void
  readonly log: PipelineLog
  readonly scheduler: SchedulerLike
}

/** Looks up late batches for as long as it is subscribed to; what fails comes again in a later round. */
export function lookUpLate(deps: LookUpDependencies): Observable<void> {
  const { inFlight, database, log, scheduler } = deps
  const asking = new OutageLog(log, 'Asking PostgreSQL for what is booked')

  const isLate = ({ storedAt }: Published): boolean => {
    if (storedAt === null) return false
    const [now, missedAt] = [scheduler.now(), deps.missedAt()]
    const isMissed = storedAt <= missedAt && missedAt <= now - MISSED_WAIT_MS
    // The clock may have been set back.
    return isMissed || storedAt <= now - BOOKED_WAIT_MS || storedAt > now
  }

  /** Returns late batches. Those that can be read do not wait until a disk is repaired. */
  const findLate = (): Published[] => {
    const found: Published[] = []
    let [readable, unreadable] = [0, 0]
    for (const published of inFlight.values()) {
      if (!published.isUnreadable && readable++ === MAX_BATCHES) break
      if (!isLate(published)) continue
      if (!published.isUnreadable || unreadable++ < MAX_BATCHES) found.push(published)
    }
    return found
  }

  const decodeContent = (published: Published): SettlementMessage | null => {
    const { batch } = published
    try {
      const content = decodeSettlements(batch.id, batch.payload())
      published.isUnreadable = false
      return content
    } catch (error) {
      if (!published.isUnreadable)
        log.error({ error, batch: batch.id }, 'Failed to read a batch back from the journal; retrying')
      published.isUnreadable = true
      published.storedAt = scheduler.now()
      return null
    }
  }

  /** Rejects while PostgreSQL does not answer. */
  const lookUp = async (published: Published): Promise<void> => {
    const { batch } = published
    // It may have been confirmed while it waited for its turn.
    if (!inFlight.has(batch.id)) return
    const content = decodeContent(published)
    if (content === null) return
    const requestIds = content.settlements.map(({ request_id }) => request_id)
    const { requestIds: found, wallets } = await database.bookings.readBooked(requestIds, [
      ...batch.costs.keys(),
    ])
    if (!inFlight.has(batch.id)) return
    const isWhole = requestIds.length + content.malformed.length === batch.count
    if (!isWhole)
      log.error({ batch: batch.id }, 'The journal is damaged where a batch is; stored what is left of it')
    const isBooked = isWhole && requestIds.length > 0 && requestIds.every((id) => found.has(id))
    if (isBooked) return deps.onBooked(batch, wallets)
    published.storedAt = null
    published.isOverdue = true
    deps.onUnbooked(published)
  }

  /** Ends early when PostgreSQL does not answer. */
  const round = async (waiting: Published[]): Promise<void> => {
    const failures: unknown[] = []
    const work = async () => {
      while (failures.length === 0) {
        const next = waiting.shift()
        if (next === undefined) return
        await lookUp(next).catch((error) => failures.push(error))
      }
    }
    await Promise.all(Array.from({ length: AT_ONCE }, work))
    if (failures.length === 0) asking.noteSuccess()
    else asking.noteFailure(failures[0])
  }

  return interval(INTERVAL_MS, scheduler).pipe(
    map(findLate),
    exhaustMap((waiting) => (waiting.length === 0 ? EMPTY : round(waiting))),
  )
}
