/** `settlement.durability: cluster`: the end of an answer waits until JetStream has the settlement. */
import type { SettlementPublisher } from '../../../../pipelines/settlement/publisher.ts'
import type { Journal, Ticket } from '../../../journal/journal.ts'

/** Calls are refused once an answer has waited this long: JetStream does not store. */
const STALLED_MS = 3_000

type CallJournal = Pick<Journal, 'id' | 'admit' | 'settle'>

interface StoredFirstDeps {
  readonly isStoredFirst: () => boolean
  /** Undefined before it has started. */
  readonly publisher: () => Pick<SettlementPublisher, 'callWhenStored' | 'measureWaitMs'> | undefined
  readonly isConnected: () => boolean
}

/** Returns the journal for calls. The durability may change while they run. */
export const storeFirst = (journal: CallJournal, deps: StoredFirstDeps): CallJournal => ({
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
