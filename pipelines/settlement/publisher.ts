/**
 * Publishes the settlements of a gateway: journal → JetStream, many to a message, until they are booked. Any process may
 * be killed at any point: a settlement in the journal is tried again until PostgreSQL has it, and PostgreSQL takes each
 * request id once. What JetStream does not take or deliver, because its stream is full or has no leader, goes to a settler
 * directly.
 * See docs/architecture.md, "A settlement".
 */
import {
  asyncScheduler,
  exhaustMap,
  filter,
  firstValueFrom,
  map,
  merge,
  mergeMap,
  Observable,
  race,
  type SchedulerLike,
  Subject,
  startWith,
  takeUntil,
  timer,
} from 'rxjs'
import type { WalletTotals } from '../../schemas/accounts/account.ts'
import { BOOKED_SUBJECT, SETTLEMENT_SUBJECT } from '../../schemas/events/event.ts'
import type { Credits } from '../../schemas/money.ts'
import type { Journal, JournalBatch } from '../../src/journal/journal.ts'
import type { Nats } from '../../src/nats/nats.ts'
import type { Bookings } from '../../src/postgres/billing/repository.ts'
import { lookUpLate, type Published } from './look-up.ts'
import { decodeCommitNotification, firstEndIn } from './messages.ts'
import { OutageLog, type PipelineLog, retrying } from './retrying.ts'
import { type OnStored, StoredMark } from './stored.ts'

/** Time that a settlement waits for others that share its message. */
const PUBLISH_LINGER_MS = 150
/** The same while an answer waits. It grows with the batches that are not booked, so that an outage leaves fewer. */
const AWAITED_LINGER_MS = 2
const AWAITED_BATCHES_PER_MS = 256
/** The most batches that are published and not booked; further ones stay in the journal. */
const PUBLISHED_MAX_BATCHES = 32
/** The same where answers wait: half an hour of load and more, at less than 1 KB of memory each. */
const AWAITED_MAX_BATCHES = 200_000
/** The most batches that JetStream does not have yet: those are in memory. */
const UNSTORED_MAX_BATCHES = 32
/**
 * After this time in which JetStream takes nothing, batches go to a settler directly, and again after each such time. The
 * choice of a new leader takes less.
 */
const DIRECT_AFTER_MS = 15_000
const READ_JOURNAL_RETRY_MS = 1_000

/** The facts of one commit for a gateway process. */
export interface CommittedWallets {
  /** Costs of this journal's calls that are booked now, by account and by key. Empty for notifications of others. */
  readonly costs: ReadonlyMap<string, Credits>
  /** Totals after the commit, `costs` in them. */
  readonly wallets: readonly WalletTotals[]
}

interface PublisherDependencies {
  readonly journal: Journal
  readonly nats: Pick<Nats, 'publish' | 'listen' | 'sendDirectly'>
  readonly database: { readonly bookings: Pick<Bookings, 'readBooked'> }
  /**
   * Called once for each commit, so that a wallet view drops an unbooked cost in the same step in which it takes the
   * totals that include it: no reader sees one without the other. The journal has released the batch by then. Must not
   * throw.
   */
  readonly onBooked: (notification: CommittedWallets) => void
  /** Called after NATS was away: notifications of other processes may be lost, so wallets must be read again. Must not throw. */
  readonly onNotificationsMissed?: () => void
  /** Returns whether answers wait for `whenStored`. Default: they do not. */
  readonly isAwaited?: () => boolean
  readonly log: PipelineLog
  readonly scheduler?: SchedulerLike
}

export interface SettlementPublisher {
  /** Calls `done` once JetStream has every settlement that the journal has taken until now. */
  whenStored(done: OnStored): void
  /** Returns how long an answer has been waiting for JetStream, milliseconds. */
  awaitedMs(): number
  /** Batches published and not known to be booked. */
  readonly inFlight: number
  /**
   * Returns when the oldest call ended whose settlement is published and not known to be booked, epoch milliseconds.
   * Returns null as well while its file cannot be read.
   */
  oldestUnbookedAt(): number | null
  /** Ends true once nothing is unbooked, or false when the bound comes first; null is no bound. */
  drain(boundMs: number | null): Promise<boolean>
  stop(): void
}

/** Returns the instant since when something holds, which holds now. The clock may have been set back. */
const earlier = (since: number | null, now: number): number => (since === null ? now : Math.min(since, now))

/** Publishes the settlements of a gateway: each batch of the journal until it is booked, then confirms it. */
export function settlementPublisher(deps: PublisherDependencies): SettlementPublisher {
  const { journal, nats, database, log, isAwaited = () => false, scheduler = asyncScheduler } = deps
  const mark = new StoredMark(scheduler)
  const subject = `${SETTLEMENT_SUBJECT}.${journal.id}`
  const publishing = new OutageLog(log, 'Publishing settlements')
  /** In the order of the journal. */
  const inFlight = new Map<string, Published>()
  const confirmed$ = new Subject<string>()
  /** When JetStream refused a batch first since it last took one; null while it takes them. */
  let refusedSince: number | null = null
  /** When NATS came back last. */
  let missedAt = Number.NEGATIVE_INFINITY
  /** Something was written, or there is room again. */
  const changed$ = new Subject<void>()
  journal.onSettled(() => changed$.next())

  // After a change of the setting some may still wait.
  const hasWaitingAnswers = () => isAwaited() || mark.isAwaited

  /** Applies all consequences of a notification in one step. */
  const confirm = (batches: readonly JournalBatch[], wallets: readonly WalletTotals[]) => {
    const costs = new Map<string, Credits>()
    for (const batch of batches) {
      // A message that was delivered twice can be named twice.
      if (!inFlight.delete(batch.id)) continue
      mark.stored(batch)
      journal.confirm(batch)
      for (const [id, cost] of batch.costs) costs.set(id, (costs.get(id) ?? 0n) + cost)
    }
    deps.onBooked({ costs, wallets })
    for (const { id } of batches) confirmed$.next(id)
    if (batches.length > 0) changed$.next()
  }

  /** Sends the batch to a settler, and not again before its time is over. */
  const sendDirectly = (published: Published, payload: Uint8Array, now: number) => {
    const { batch, sentAt } = published
    const wasSent = sentAt !== null && sentAt <= now && sentAt > now - DIRECT_AFTER_MS
    // The memory of a batch that has been booked may be in use again.
    if (wasSent || !inFlight.has(batch.id)) return
    published.sentAt = now
    nats.sendDirectly(batch.id, payload)
  }

  /** Sends the batch directly where JetStream has taken none for some time, or has refused this one for as long. */
  const refused = (published: Published, payload: Uint8Array) => {
    const now = scheduler.now()
    refusedSince = earlier(refusedSince, now)
    published.refusedSince = earlier(published.refusedSince, now)
    const isDue = Math.min(refusedSince, published.refusedSince) <= now - DIRECT_AFTER_MS
    if (isDue) sendDirectly(published, payload, now)
  }

  /** Stores the batch in JetStream, and frees its memory where there may be many: it is rarely needed again. */
  const stored = (published: Published) => {
    const { batch } = published
    return new Observable<void>((subscriber) => {
      const payload = batch.payload()
      nats.publish(subject, batch.id, payload, (error) => {
        if (error !== null) {
          refused(published, payload)
          return subscriber.error(error)
        }
        published.storedAt = scheduler.now()
        published.refusedSince = refusedSince = null
        // The stream may have no consumer that delivers it.
        if (published.isOverdue) sendDirectly(published, payload, published.storedAt)
        if (hasWaitingAnswers()) journal.release(batch)
        mark.stored(batch)
        if (journal.untaken > 0) changed$.next()
        subscriber.next()
        subscriber.complete()
      })
    }).pipe(retrying(publishing, scheduler), takeUntil(confirmed$.pipe(filter((id) => id === batch.id))))
  }

  const hasRoom = () =>
    inFlight.size < (hasWaitingAnswers() ? AWAITED_MAX_BATCHES : PUBLISHED_MAX_BATCHES) &&
    mark.unstored < UNSTORED_MAX_BATCHES

  /** Takes as many batches as there is room for. */
  const taken = (): Published[] => {
    const batches: Published[] = []
    try {
      while (hasRoom()) {
        const batch = journal.take()
        if (batch === null) break
        const published: Published = {
          ...{ batch, storedAt: null, refusedSince: null, sentAt: null },
          ...{ isOverdue: false, isUnreadable: false },
        }
        inFlight.set(batch.id, published)
        mark.taken(batch)
        batches.push(published)
      }
    } catch (error) {
      log.error({ error }, 'Failed to read the journal back; retrying')
      scheduler.schedule(() => changed$.next(), READ_JOURNAL_RETRY_MS)
    }
    return batches
  }

  const lingerMs = () =>
    hasWaitingAnswers()
      ? Math.min(PUBLISH_LINGER_MS, Math.max(AWAITED_LINGER_MS, inFlight.size / AWAITED_BATCHES_PER_MS))
      : PUBLISH_LINGER_MS

  const hear = (payload: Uint8Array) => {
    try {
      const { batches, wallets } = decodeCommitNotification(payload)
      const own = batches.map((id) => inFlight.get(id)?.batch).filter((batch) => batch !== undefined)
      confirm(own, wallets)
    } catch (error) {
      log.error({ error }, 'Dropped malformed commit notification')
    }
  }
  const stopListening = nats.listen(BOOKED_SUBJECT, hear, () => {
    missedAt = scheduler.now()
    deps.onNotificationsMissed?.()
  })
  const unbooked$ = new Subject<Published>()
  const taken$ = changed$.pipe(
    startWith(undefined),
    exhaustMap(() => timer(lingerMs(), scheduler)),
    mergeMap(taken),
  )
  const running = merge(taken$, unbooked$).pipe(mergeMap(stored)).subscribe()
  const lookingUp = lookUpLate({
    inFlight,
    missedAt: () => missedAt,
    database,
    onBooked: (batch, wallets) => confirm([batch], wallets),
    onUnbooked: (published) => unbooked$.next(published),
    log,
    scheduler,
  }).subscribe()

  const isIdle = () => journal.depth().settlementsUnbooked === 0
  return {
    whenStored: (done) => mark.when(journal.settledTo, done),
    awaitedMs: () => mark.waitedMs(),
    get inFlight() {
      return inFlight.size
    },
    oldestUnbookedAt() {
      // Batches are taken in order, and a map keeps it; one that is not taken yet is younger.
      const [oldest] = inFlight.values()
      try {
        return oldest === undefined ? null : firstEndIn(oldest.batch.payload())
      } catch {
        return null
      }
    },
    drain(boundMs) {
      const idle$ = changed$.pipe(
        startWith(undefined),
        filter(isIdle),
        map(() => true),
      )
      if (boundMs === null) return firstValueFrom(idle$)
      return firstValueFrom(race(idle$, timer(boundMs, scheduler).pipe(map(isIdle))))
    },
    stop() {
      stopListening()
      running.unsubscribe()
      lookingUp.unsubscribe()
      inFlight.clear()
    },
  }
}
