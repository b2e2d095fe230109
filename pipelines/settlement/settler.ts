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
  takeUntil,
  tap,
  timer,
} from 'rxjs'
import type { WalletTotals } from '../../schemas/accounts/account.ts'
import { BOOKED_SUBJECT } from '../../schemas/events/event.ts'
import type { Delivery, Nats } from '../../src/nats/nats.ts'
import type { Bookings, Wallets } from '../../src/postgres/billing/repository.ts'
import { decodeSettlements, encodeCommitNotification, type Malformed } from './messages.ts'
import { OutageLog, type PipelineLog, resubscribeOnFault, retrying } from './retrying.ts'

/** Time that a message waits for others that share its transaction. */
const BOOK_LINGER_MS = 10
/** The most that `Bookings.book` takes at once. */
const BOOK_MAX_SETTLEMENTS = 1_000
/** With so many batches held, none that is sent directly is taken: the memory of a settler is bounded, and it is sent again. */
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
  readonly onRefused?: (requestIds: readonly string[]) => void
  /** Keeps a line that cannot be booked; its message continues when the result has resolved. */
  readonly onMalformed: (malformed: Malformed) => Promise<void> | void
  readonly log: PipelineLog
  readonly scheduler?: SchedulerLike
}

interface Settler {
  /** Messages received and not yet booked. */
  readonly waiting: number
  /** Reason why booking fails; null while it succeeds. */
  readonly trouble: string | null
  /** Takes no more messages, books those it has within the bound and returns the rest to the next settler. */
  stop(boundMs: number): Promise<void>
}

/** Books messages in PostgreSQL, many to a transaction, and acknowledges them after the commit. */
export function settler(deps: SettlerDependencies): Settler {
  const { nats, database, log, scheduler = asyncScheduler } = deps
  const booking = new OutageLog(log, 'Booking settlements')
  /** Received and not acknowledged; `waiting` is the part that is not being booked. */
  const held = new Set<Delivery>()
  const waiting: Incoming[] = []
  const stopped$ = new Subject<void>()

  /** Returns whether to take a batch that was sent directly: it is sent again until it is booked, so it may be held. */
  const isWanted = ({ messageId }: Delivery): boolean =>
    held.size < DIRECT_MAX_BATCHES && ![...held].some((other) => other.messageId === messageId)

  const receive = (delivery: Delivery) => {
    held.add(delivery)
    waiting.push({ delivery, ...decodeSettlements(delivery.messageId, delivery.data) })
  }

  /** Returns the messages of one transaction: whole messages, at least one. */
  const joined = (): Incoming[] => {
    let [messages, settlements] = [0, 0]
    for (const message of waiting) {
      settlements += message.settlements.length
      if (messages > 0 && settlements > BOOK_MAX_SETTLEMENTS) break
      messages += 1
    }
    return waiting.splice(0, messages)
  }

  const book = async (incoming: readonly Incoming[]): Promise<WalletTotals[]> => {
    for (const { malformed } of incoming)
      while (malformed[0] !== undefined) {
        await deps.onMalformed(malformed[0])
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
        deps.onRefused?.(answer.refused)
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
  const finish = (incoming: readonly Incoming[], wallets: readonly WalletTotals[]) => {
    const batches = incoming.map(({ delivery }) => delivery.messageId).filter((id) => id !== null)
    nats.announce(BOOKED_SUBJECT, encodeCommitNotification({ batches, wallets }))
    for (const { delivery } of incoming) {
      held.delete(delivery)
      delivery.acknowledge()
    }
    deps.onBookedRows()
  }

  const bookedNext = () => {
    const incoming = joined()
    return defer(() => book(incoming)).pipe(
      retrying(booking, scheduler),
      tap((wallets) => finish(incoming, wallets)),
    )
  }

  const keeping = interval(KEEP_INTERVAL_MS, scheduler).subscribe(() => {
    for (const delivery of held) delivery.keep()
  })
  const giveBack = () => {
    for (const delivery of held) delivery.release()
    held.clear()
    waiting.length = 0
  }
  const faulted = (error: unknown) => {
    log.error({ error }, FAULT)
    giveBack()
  }
  const ended$ = new Subject<void>()
  const running = new Observable<Delivery>((subscriber) => {
    const stops = [
      nats.consume((delivery) => subscriber.next(delivery)),
      nats.receiveDirectly((delivery) => {
        if (isWanted(delivery)) subscriber.next(delivery)
      }),
    ]
    return () => {
      for (const stop of stops) stop()
    }
  })
    .pipe(
      takeUntil(stopped$),
      tap(receive),
      exhaustMap(() =>
        timer(BOOK_LINGER_MS, scheduler).pipe(
          expand<number | WalletTotals[], Observable<WalletTotals[]>>(() =>
            waiting.length > 0 ? bookedNext() : EMPTY,
          ),
        ),
      ),
      resubscribeOnFault(faulted, scheduler),
    )
    .subscribe({ complete: () => ended$.next() })

  return {
    get waiting() {
      return held.size
    },
    get trouble() {
      return booking.reason
    },
    async stop(boundMs) {
      const end = firstValueFrom(race(ended$, timer(boundMs, scheduler)))
      stopped$.next()
      await end
      running.unsubscribe()
      keeping.unsubscribe()
      giveBack()
    },
  }
}

interface Incoming extends ReturnType<typeof decodeSettlements> {
  readonly delivery: Delivery
}
