/**
 * Books the settlements of all gateways: messages → PostgreSQL, one transaction a batch → the notification of it to every
 * gateway process, and the call log. See docs/architecture.md, "A settlement".
 */
import {
  asyncScheduler,
  defer,
  EMPTY,
  exhaustMap,
  expand,
  firstValueFrom,
  interval,
  Observable,
  race,
  type SchedulerLike,
  Subject,
  type Subscription,
  takeUntil,
  tap,
  timer,
} from 'rxjs'
import type { WalletTotals } from '../../schemas/accounts/account.ts'
import { BOOKED_SUBJECT } from '../../schemas/events/event.ts'
import type { Delivery, Nats } from '../../src/nats/nats.ts'
import type { Bookings, Wallets } from '../../src/postgres/billing/repository.ts'
import { decodeSettlements, encodeCommitNotification, type Malformed } from './messages.ts'
import { OutageLog, type PipelineLog, resubscribeOnFault, retryForever } from './retrying.ts'

/** Time that a message waits for others that share its transaction. */
const BOOK_LINGER_MS = 10
/** The most that `Bookings.book` takes at once. */
const BOOK_MAX_SETTLEMENTS = 1_000
/** While this many batches are held, a batch that is sent directly is refused, and its sender repeats it. Bounds memory. */
const DIRECT_MAX_BATCHES = 32
/** A third of the time after which JetStream counts a silent settler as dead. */
const KEEP_INTERVAL_MS = 2_000

const FAULT = 'Unexpected fault while settling; retrying'

export interface SettlerDependencies {
  readonly nats: Pick<Nats, 'consume' | 'receiveDirectly' | 'announce'>
  readonly database: { readonly bookings: Pick<Bookings, 'book'>; readonly wallets: Pick<Wallets, 'read'> }
  /** Called when rows were booked: they can be copied into the call log. Must neither throw nor wait. */
  readonly onBookedRows: () => void
  /** Called with settlements that PostgreSQL refused permanently and keeps separately. Must not throw. */
  readonly onRefused: (requestIds: readonly string[]) => void
  /** Keeps a line that cannot be booked; its message continues when the result has resolved. */
  readonly onMalformed: (malformed: Malformed) => Promise<void> | void
  readonly log: PipelineLog
  readonly scheduler?: SchedulerLike
}

/** Books messages in PostgreSQL, many to a transaction, and acknowledges them after the commit. */
export class Settler {
  readonly #deps: SettlerDependencies
  readonly #scheduler: SchedulerLike
  readonly #outage: OutageLog
  /** Received and not acknowledged; `#waiting` is the part that is not being booked. */
  readonly #held = new Set<Delivery>()
  readonly #waiting: Incoming[] = []
  readonly #stopped$ = new Subject<void>()
  readonly #ended$ = new Subject<void>()
  readonly #running: Subscription

  constructor(deps: SettlerDependencies) {
    const { log, scheduler = asyncScheduler } = deps
    this.#deps = deps
    this.#scheduler = scheduler
    this.#outage = new OutageLog(log, 'Booking settlements')
    const keeping = interval(KEEP_INTERVAL_MS, scheduler).subscribe(() => {
      for (const delivery of this.#held) delivery.keep()
    })
    this.#running = this.#settle()
    this.#running.add(keeping)
  }

  /** Messages received and not yet booked. */
  get waiting(): number {
    return this.#held.size
  }

  /** Reason why booking fails; null while it succeeds. */
  get trouble(): string | null {
    return this.#outage.reason
  }

  /** Stops taking messages, books those it has within the bound and leaves the rest to the next settler. */
  async stop(boundMs: number): Promise<void> {
    const end = firstValueFrom(race(this.#ended$, timer(boundMs, this.#scheduler)))
    this.#stopped$.next()
    await end
    this.#running.unsubscribe()
    this.#giveBack()
  }

  #settle(): Subscription {
    const onFault = (error: unknown) => {
      this.#deps.log.error({ error }, FAULT)
      this.#giveBack()
    }
    return this.#receive()
      .pipe(
        takeUntil(this.#stopped$),
        tap((delivery) => this.#hold(delivery)),
        exhaustMap(() =>
          timer(BOOK_LINGER_MS, this.#scheduler).pipe(
            expand<number | WalletTotals[], Observable<WalletTotals[]>>(() =>
              this.#waiting.length > 0 ? this.#bookNext() : EMPTY,
            ),
          ),
        ),
        resubscribeOnFault(onFault, this.#scheduler),
      )
      .subscribe({ complete: () => this.#ended$.next() })
  }

  #receive(): Observable<Delivery> {
    const { nats } = this.#deps
    return new Observable<Delivery>((subscriber) => {
      const stops = [
        nats.consume((delivery) => subscriber.next(delivery)),
        nats.receiveDirectly((delivery) => {
          if (this.#isWanted(delivery)) subscriber.next(delivery)
        }),
      ]
      return () => {
        for (const stop of stops) stop()
      }
    })
  }

  /** Returns whether to take a batch that was sent directly: it is sent again until it is booked, so it may be held. */
  #isWanted({ messageId }: Delivery): boolean {
    return (
      this.#held.size < DIRECT_MAX_BATCHES && ![...this.#held].some((other) => other.messageId === messageId)
    )
  }

  #hold(delivery: Delivery): void {
    this.#held.add(delivery)
    this.#waiting.push({ delivery, ...decodeSettlements(delivery.messageId, delivery.data) })
  }

  #giveBack(): void {
    for (const delivery of this.#held) delivery.release()
    this.#held.clear()
    this.#waiting.length = 0
  }

  #bookNext(): Observable<WalletTotals[]> {
    const incoming = this.#takeMessages()
    return defer(() => this.#book(incoming)).pipe(
      retryForever(this.#outage, this.#scheduler),
      tap((wallets) => this.#finish(incoming, wallets)),
    )
  }

  /** Returns the messages of one transaction: whole messages, at least one. */
  #takeMessages(): Incoming[] {
    let [messages, settlements] = [0, 0]
    for (const message of this.#waiting) {
      settlements += message.settlements.length
      if (messages > 0 && settlements > BOOK_MAX_SETTLEMENTS) break
      messages += 1
    }
    return this.#waiting.splice(0, messages)
  }

  async #book(incoming: readonly Incoming[]): Promise<WalletTotals[]> {
    const { database, log, onMalformed, onRefused } = this.#deps
    for (const { malformed } of incoming)
      while (malformed[0] !== undefined) {
        await onMalformed(malformed[0])
        malformed.shift()
      }
    const settlements = incoming.flatMap((message) => message.settlements)
    const wallets = new Map<string, WalletTotals>()
    const booked = new Set<string>()
    for (let at = 0; at < settlements.length; at += BOOK_MAX_SETTLEMENTS) {
      const answer = await database.bookings.book(settlements.slice(at, at + BOOK_MAX_SETTLEMENTS))
      for (const wallet of answer.wallets) wallets.set(wallet.accountId, wallet)
      for (const requestId of answer.booked) booked.add(requestId)
      if (answer.refused.length > 0) {
        log.error(
          { request_ids: answer.refused },
          'PostgreSQL refused settlements; stored them as refused, not charged',
        )
        onRefused(answer.refused)
      }
    }
    // Booked by an earlier delivery whose notification may be lost: without its totals a gateway would drop the
    // unbooked cost and not learn the charge.
    const unannounced = settlements.filter(({ request_id, cost }) => cost !== '0' && !booked.has(request_id))
    if (unannounced.length > 0) {
      const ids = new Set(unannounced.flatMap(({ account_id, key_id }) => [account_id, key_id]))
      for (const wallet of await database.wallets.read([...ids])) wallets.set(wallet.accountId, wallet)
    }
    return [...wallets.values()]
  }

  /**
   * Publishes the notification, then acknowledges, after the commit. The notification is first because it is lost when
   * this process ends, while the message is delivered again.
   */
  #finish(incoming: readonly Incoming[], wallets: readonly WalletTotals[]): void {
    const { nats, onBookedRows } = this.#deps
    const batches = incoming.map(({ delivery }) => delivery.messageId).filter((id) => id !== null)
    nats.announce(BOOKED_SUBJECT, encodeCommitNotification({ batches, wallets }))
    for (const { delivery } of incoming) {
      this.#held.delete(delivery)
      delivery.acknowledge()
    }
    onBookedRows()
  }
}

interface Incoming extends ReturnType<typeof decodeSettlements> {
  readonly delivery: Delivery
}
