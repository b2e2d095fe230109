/** A gateway's books: its journal, its publisher, and the journals of processes that have ended. */

import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type CommittedWallets, SettlementPublisher } from '../../../../pipelines/settlement/publisher.ts'
import { BOOK_SUBJECT } from '../../../../schemas/events/event.ts'
import type { Credits } from '../../../../schemas/money.ts'
import type { Credentials } from '../../../credentials/credentials.ts'
import { type Journal, type JournalDepth, openJournal, type Ticket } from '../../../journal/journal.ts'
import { type OrphanJournal, openOrphans, retireJournal } from '../../../journal/orphans.ts'
import { openNats } from '../../../nats/nats.ts'
import type { Bookings } from '../../../postgres/billing/repository.ts'
import type { Journals } from '../../../postgres/operation/repository.ts'
import type { LogOutput } from '../../../telemetry/log.ts'
import type { Metrics } from '../../../telemetry/metrics.ts'
import type { Boot } from '../../messages.ts'
import { startHeartbeats } from './heartbeats.ts'

const MS_PER_SECOND = 1000
/** At the end, settlements have this long to be booked; the rest stays in the journal for the next start. */
const DRAIN_BOUND_MS = 8_000
/**
 * A start waits this long for the settlements of an earlier run to be booked: until then wallets may show them charged
 * twice.
 */
const CATCH_UP_BOUND_MS = 2_500
/** A reader of the call log waits this long for calls that have just ended. */
const READER_BOUND_MS = 500
/** Calls are refused once an answer has waited this long: JetStream does not store. */
const STALLED_MS = 3_000

type CallJournal = Pick<Journal, 'id' | 'admit' | 'settle'>

export interface GatewayJournal {
  readonly journal: CallJournal
  depth(): JournalDepth
  recoveredCost(id: string): Credits
  /** Starts publishing settlements; passes bookings to the credentials. */
  start(credentials: Credentials): void
  /** Resolves when the settlements of an earlier run are booked, or when the time to wait for them is over. */
  awaitCaughtUp(): Promise<void>
  /** Books at once what ended earlier in any gateway process. Resolves then, or when the time for it is over. */
  bookEnded(processes: number): Promise<void>
  /** Returns the reason why calls cannot be taken, or null. */
  unreadiness(): string | null
  /** Returns how long the oldest settlement has been waiting to be booked, milliseconds; 0 when none waits. */
  lagMs(): number
  /** Rejects while NATS does not answer. */
  pingNats(): Promise<void>
  /** Waits for the books, bounded. */
  close(): Promise<void>
  /** Closes the files; the next start books their content. */
  closeAtOnce(): Promise<void>
}

interface GatewayJournalOptions {
  readonly boot: Boot
  readonly database: {
    readonly bookings: Pick<Bookings, 'readBooked'>
    readonly journals: Pick<Journals, 'recordHeartbeat' | 'recordDrained'>
  }
  /** Returns whether JetStream is to have a settlement before the end of the answer leaves. */
  readonly isStoredFirst: () => boolean
  readonly log: LogOutput
}

const nameDirectory = (index: number): string => `gateway-${index}`

export async function openGatewayJournal({
  boot,
  database,
  isStoredFirst,
  log,
}: GatewayJournalOptions): Promise<GatewayJournal> {
  const root = join(boot.dataDir, 'journal')
  const directory = join(root, nameDirectory(boot.index))
  const journal = await openJournal({ directory, log })
  const orphans = boot.index === 0 ? await openAbandoned(root, boot.gatewayCount, log) : []
  const nats = openNats({
    url: boot.natsUrl,
    name: `tollgate gateway ${boot.index}`,
    log,
    replicas: boot.natsReplicas,
  })
  const all = [journal, ...orphans.map((orphan) => orphan.journal)]
  const heartbeats = await startHeartbeats(database, [{ directory, journal }, ...orphans], log)
  let publishers: SettlementPublisher[] = []
  const stopAll = async () => {
    for (const publisher of publishers) publisher.stop()
    await journal.close()
    for (const orphan of orphans) await retireJournal(orphan)
  }
  const bookOwn = () =>
    Promise.all(
      publishers.map(
        (publisher) => new Promise<void>((resolve) => publisher.callWhenBooked(() => resolve())),
      ),
    )
  nats.answer(BOOK_SUBJECT, () => bookOwn().then(() => ''))
  if (journal.recovered.unbooked > 0)
    log.info({ ...journal.recovered }, 'Publishing settlements of an earlier run')
  return {
    journal: storeFirst(journal, {
      isStoredFirst,
      publisher: () => publishers[0],
      isConnected: () => nats.health().isConnected,
    }),
    depth: () => sumDepths(all.map((j) => j.depth())),
    recoveredCost: (id) => all.reduce((sum, j) => sum + j.recoveredCost(id), 0n),
    start(credentials) {
      const onBooked = ({ costs, wallets }: CommittedWallets) => credentials.applyBooked(costs, wallets)
      // Notifications sent while NATS was away are lost: the totals are read instead.
      const onNotificationsMissed = () => void credentials.refreshWallets(credentials.walletIds)
      publishers = all.map(
        (j) =>
          new SettlementPublisher({
            journal: j,
            nats,
            database,
            onBooked,
            onNotificationsMissed,
            isAwaited: isStoredFirst,
            log,
          }),
      )
    },
    async awaitCaughtUp() {
      await Promise.all(publishers.map((publisher) => publisher.drain(CATCH_UP_BOUND_MS)))
    },
    async bookEnded(processes) {
      const isBooked = processes > 1 ? nats.survey(BOOK_SUBJECT, READER_BOUND_MS, processes) : bookOwn()
      await Promise.race([isBooked, sleep(READER_BOUND_MS, undefined, { ref: false })])
    },
    unreadiness() {
      if (!journal.depth().isWritable) return 'the journal cannot be written'
      return isStoredFirst() && !nats.health().isConnected ? 'JetStream does not store settlements' : null
    },
    lagMs() {
      const oldest = publishers.map((p) => p.readOldestUnbookedAt()).filter((at) => at !== null)
      return oldest.length === 0 ? 0 : Math.max(0, Date.now() - Math.min(...oldest))
    },
    pingNats: () => nats.ping(),
    async close() {
      await Promise.all(publishers.map((publisher) => publisher.drain(DRAIN_BOUND_MS)))
      await heartbeats.close()
      await stopAll()
      await nats.close()
    },
    closeAtOnce: stopAll,
  }
}

interface StoredFirstDeps {
  readonly isStoredFirst: () => boolean
  /** Undefined before it has started. */
  readonly publisher: () => Pick<SettlementPublisher, 'callWhenStored' | 'measureWaitMs'> | undefined
  readonly isConnected: () => boolean
}

/**
 * Returns the journal for calls. With `settlement.durability: cluster` the end of an answer waits until JetStream has the
 * settlement. The durability may change while calls run.
 */
const storeFirst = (journal: CallJournal, deps: StoredFirstDeps): CallJournal => ({
  id: journal.id,
  admit(admission, written) {
    const isStalled = () => !deps.isConnected() || (deps.publisher()?.measureWaitMs() ?? 0) > STALLED_MS
    if (!deps.isStoredFirst() || !isStalled()) return journal.admit(admission, written)
    queueMicrotask(() => written(new Error('JetStream does not store settlements.')))
    return { requestId: admission.request_id } satisfies Ticket
  },
  settle(ticket, settlement, written) {
    const publisher = deps.publisher()
    if (written === undefined || publisher === undefined || !deps.isStoredFirst())
      return journal.settle(ticket, settlement, written)
    journal.settle(ticket, settlement, () => publisher.callWhenStored(written))
  },
})

/** Opens the journals of processes that this run does not have. */
function openAbandoned(root: string, gatewayCount: number, log: LogOutput): Promise<OrphanJournal[]> {
  const live = Array.from({ length: gatewayCount }, (_, index) => nameDirectory(index))
  return openOrphans(root, live, log)
}

const sumDepths = (depths: readonly JournalDepth[]): JournalDepth =>
  depths.reduce((sum, depth) => ({
    open: sum.open + depth.open,
    settlementsUnbooked: sum.settlementsUnbooked + depth.settlementsUnbooked,
    bytes: sum.bytes + depth.bytes,
    dropped: sum.dropped + depth.dropped,
    isWritable: sum.isWritable && depth.isWritable,
  }))

export function observeJournal(metrics: Metrics, journal: Pick<GatewayJournal, 'depth' | 'lagMs'>): void {
  metrics.observe('tollgate_journal_bytes', () => journal.depth().bytes)
  metrics.observe('tollgate_journal_unbooked', () => journal.depth().settlementsUnbooked)
  metrics.observe('tollgate_settlement_lag_seconds', () => journal.lagMs() / MS_PER_SECOND)
}
