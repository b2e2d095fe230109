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
  Subscription,
  startWith,
  take,
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
import { decodeCommitNotification, readFirstEnd } from './messages.ts'
import { OutageLog, type PipelineLog, retryForever } from './retrying.ts'
import { type OnStored, StoredMark } from './stored.ts'

/** Time that a settlement waits for others that share its message. */
const PUBLISH_LINGER_MS = 150
/**
 * The same while an answer or a reader of the log waits. For answers it grows with the batches that are not booked, so that
 * an outage leaves fewer.
 */
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
  readonly onNotificationsMissed: () => void
  /** Returns whether answers wait for `callWhenStored`. */
  readonly isAwaited: () => boolean
  readonly log: PipelineLog
  readonly scheduler?: SchedulerLike
}

/** Publishes the settlements of a gateway: each batch of the journal until it is booked, then confirms it. */
export class SettlementPublisher {
  readonly #deps: PublisherDependencies
  readonly #scheduler: SchedulerLike
  readonly #mark: StoredMark
  /** The same for PostgreSQL: readers of the call log wait for it. */
  readonly #bookedMark: StoredMark
  readonly #outage: OutageLog
  /** In the order of the journal. */
  readonly #inFlight = new Map<string, Published>()
  readonly #confirmed$ = new Subject<string>()
  readonly #unbooked$ = new Subject<Published>()
  /** A reader waits: batches are taken without a further wait. */
  readonly #wanted$ = new Subject<void>()
  /** Something was written, or there is room again. */
  readonly #changed$ = new Subject<void>()
  readonly #running: Subscription
  /** When JetStream refused a batch first since it last took one; null while it takes them. */
  #refusedSince: number | null = null
  /** When NATS came back last. */
  #missedAt = Number.NEGATIVE_INFINITY

  constructor(deps: PublisherDependencies) {
    const { journal, log, scheduler = asyncScheduler } = deps
    this.#deps = deps
    this.#scheduler = scheduler
    this.#mark = new StoredMark(scheduler)
    this.#bookedMark = new StoredMark(scheduler)
    this.#outage = new OutageLog(log, 'Publishing settlements')
    journal.onSettled(() => this.#changed$.next())
    this.#running = new Subscription(this.#listen())
    this.#running.add(this.#publish())
    this.#running.add(this.#lookUp())
  }

  /** Calls `done` once JetStream has every settlement that the journal has taken until now. */
  callWhenStored(done: OnStored): void {
    this.#mark.callWhenStored(this.#deps.journal.settledTo, done)
  }

  /** Publishes at once, and calls `done` once every settlement that the journal has taken until now is booked. */
  callWhenBooked(done: OnStored): void {
    const { journal } = this.#deps
    if (journal.depth().settlementsUnbooked === 0) return done()
    this.#bookedMark.callWhenStored(journal.settledTo, done)
    this.#wanted$.next()
  }

  /** Returns how long an answer has been waiting for JetStream, milliseconds. */
  measureWaitMs(): number {
    return this.#mark.measureWaitMs()
  }

  /** Batches published and not known to be booked. */
  get inFlight(): number {
    return this.#inFlight.size
  }

  /**
   * Returns when the oldest call ended whose settlement is published and not known to be booked, epoch milliseconds.
   * Returns null as well while its file cannot be read.
   */
  readOldestUnbookedAt(): number | null {
    // Batches are taken in order, and a map keeps it; one that is not taken yet is younger.
    const [oldest] = this.#inFlight.values()
    try {
      return oldest === undefined ? null : readFirstEnd(oldest.batch.payload())
    } catch {
      return null
    }
  }

  /** Ends true once nothing is unbooked, or false when the bound comes first; null is no bound. */
  drain(boundMs: number | null): Promise<boolean> {
    const isIdle = () => this.#deps.journal.depth().settlementsUnbooked === 0
    const idle$ = this.#changed$.pipe(
      startWith(undefined),
      filter(isIdle),
      map(() => true),
    )
    if (boundMs === null) return firstValueFrom(idle$)
    return firstValueFrom(race(idle$, timer(boundMs, this.#scheduler).pipe(map(isIdle))))
  }

  stop(): void {
    this.#running.unsubscribe()
    this.#inFlight.clear()
  }

  #publish(): Subscription {
    const taken$ = this.#changed$.pipe(
      startWith(undefined),
      exhaustMap(() => race(timer(this.#chooseLingerMs(), this.#scheduler), this.#wanted$).pipe(take(1))),
      mergeMap(() => this.#takeBatches()),
    )
    return merge(taken$, this.#unbooked$)
      .pipe(mergeMap((published) => this.#store(published)))
      .subscribe()
  }

  /** Listens to the notifications of commits. Returns a function that stops it. */
  #listen(): () => void {
    const { nats, log, onNotificationsMissed } = this.#deps
    const onCommit = (payload: Uint8Array) => {
      try {
        const { batches, wallets } = decodeCommitNotification(payload)
        const own = batches.map((id) => this.#inFlight.get(id)?.batch).filter((batch) => batch !== undefined)
        this.#confirm(own, wallets)
      } catch (error) {
        log.error({ error }, 'Dropped malformed commit notification')
      }
    }
    return nats.listen(BOOKED_SUBJECT, onCommit, () => {
      this.#missedAt = this.#scheduler.now()
      onNotificationsMissed()
    })
  }

  #lookUp(): Subscription {
    const { database, log } = this.#deps
    return lookUpLate({
      inFlight: this.#inFlight,
      missedAt: () => this.#missedAt,
      database,
      onBooked: (batch, wallets) => this.#confirm([batch], wallets),
      onUnbooked: (published) => this.#unbooked$.next(published),
      log,
      scheduler: this.#scheduler,
    }).subscribe()
  }

  /** Applies all consequences of a notification in one step. */
  #confirm(batches: readonly JournalBatch[], wallets: readonly WalletTotals[]): void {
    const costs = new Map<string, Credits>()
    for (const batch of batches) {
      // A message that was delivered twice can be named twice.
      if (!this.#inFlight.delete(batch.id)) continue
      this.#mark.markStored(batch)
      this.#bookedMark.markStored(batch)
      this.#deps.journal.confirm(batch)
      for (const [id, cost] of batch.costs) costs.set(id, (costs.get(id) ?? 0n) + cost)
    }
    this.#deps.onBooked({ costs, wallets })
    for (const { id } of batches) this.#confirmed$.next(id)
    if (batches.length > 0) this.#changed$.next()
  }

  /** Takes as many batches as there is room for. */
  #takeBatches(): Published[] {
    const batches: Published[] = []
    try {
      while (this.#hasRoom()) {
        const batch = this.#deps.journal.take()
        if (batch === null) break
        const published: Published = {
          ...{ batch, storedAt: null, refusedSince: null, sentAt: null },
          ...{ isOverdue: false, isUnreadable: false },
        }
        this.#inFlight.set(batch.id, published)
        this.#mark.add(batch)
        this.#bookedMark.add(batch)
        batches.push(published)
      }
    } catch (error) {
      this.#deps.log.error({ error }, 'Failed to read the journal back; retrying')
      this.#scheduler.schedule(() => this.#changed$.next(), READ_JOURNAL_RETRY_MS)
    }
    return batches
  }

  #hasRoom(): boolean {
    const maxBatches = this.#hasWaitingAnswers() ? AWAITED_MAX_BATCHES : PUBLISHED_MAX_BATCHES
    return this.#inFlight.size < maxBatches && this.#mark.unstored < UNSTORED_MAX_BATCHES
  }

  #chooseLingerMs(): number {
    if (this.#bookedMark.isAwaited) return AWAITED_LINGER_MS
    if (!this.#hasWaitingAnswers()) return PUBLISH_LINGER_MS
    return Math.min(
      PUBLISH_LINGER_MS,
      Math.max(AWAITED_LINGER_MS, this.#inFlight.size / AWAITED_BATCHES_PER_MS),
    )
  }

  /** After a change of the setting some may still wait. */
  #hasWaitingAnswers(): boolean {
    return this.#deps.isAwaited() || this.#mark.isAwaited
  }

  /** Stores the batch in JetStream, and frees its memory where there may be many: it is rarely needed again. */
  #store(published: Published): Observable<void> {
    const { batch } = published
    const { journal, nats } = this.#deps
    return new Observable<void>((subscriber) => {
      const payload = batch.payload()
      nats.publish(`${SETTLEMENT_SUBJECT}.${journal.id}`, batch.id, payload, (error) => {
        if (error !== null) {
          this.#onRefused(published, payload)
          return subscriber.error(error)
        }
        published.storedAt = this.#scheduler.now()
        published.refusedSince = this.#refusedSince = null
        // The stream may have no consumer that delivers it.
        if (published.isOverdue) this.#sendDirectly(published, payload, published.storedAt)
        if (this.#hasWaitingAnswers()) journal.release(batch)
        this.#mark.markStored(batch)
        if (journal.untaken > 0) this.#changed$.next()
        subscriber.next()
        subscriber.complete()
      })
    }).pipe(
      retryForever(this.#outage, this.#scheduler),
      takeUntil(this.#confirmed$.pipe(filter((id) => id === batch.id))),
    )
  }

  /** Sends the batch directly where JetStream has taken none for some time, or has refused this one for as long. */
  #onRefused(published: Published, payload: Uint8Array): void {
    const now = this.#scheduler.now()
    this.#refusedSince = earlier(this.#refusedSince, now)
    published.refusedSince = earlier(published.refusedSince, now)
    const isDue = Math.min(this.#refusedSince, published.refusedSince) <= now - DIRECT_AFTER_MS
    if (isDue) this.#sendDirectly(published, payload, now)
  }

  /** Sends the batch to a settler, and not again before its time is over. */
  #sendDirectly(published: Published, payload: Uint8Array, now: number): void {
    const { batch, sentAt } = published
    const wasSent = sentAt !== null && sentAt <= now && sentAt > now - DIRECT_AFTER_MS
    // The memory of a batch that has been booked may be in use again.
    if (wasSent || !this.#inFlight.has(batch.id)) return
    published.sentAt = now
    this.#deps.nats.sendDirectly(batch.id, payload)
  }
}

/** Returns the instant since when something holds, which holds now. The clock may have been set back. */
const earlier = (since: number | null, now: number): number => (since === null ? now : Math.min(since, now))
