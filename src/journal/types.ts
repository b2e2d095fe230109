/** The interface of the journal to the rest of the service. */
import type { Admission, Settlement } from '../../schemas/call-log/columns.ts'
import type { JournalBatch } from './batches.ts'
import type { JournalClock, JournalLog } from './clock.ts'
import type { JournalFiles } from './files.ts'

/** Handle of one open call, opaque to its holder. */
export interface Ticket {
  readonly requestId: string
}

export interface JournalDepth {
  /** Calls admitted and not ended. */
  readonly open: number
  /** Settlements that PostgreSQL is not known to have. */
  readonly settlementsUnbooked: number
  /** Size of the files. */
  readonly bytes: number
  /** Rejected rows lost to a full disk since the process began. */
  readonly dropped: number
  /** false while writes fail: calls are refused then. */
  readonly isWritable: boolean
}

/** Settlements of the last process here; all of them are published again. */
export interface Recovered {
  /** Calls without an end: they are settled now as interrupted, at no charge. */
  readonly interrupted: number
  /** Settlements that were not known to be booked, those of the interrupted calls included. */
  readonly unbooked: number
  readonly tornBytes: number
  readonly corruptedBytes: number
}

/** Calls that only this journal has. Amounts count 1e-8 credit. */
export interface JournalHoldings {
  readonly openCalls: number
  /** The most that the open calls may cost. */
  readonly openEstimate: bigint
  readonly unbookedCalls: number
  readonly unbookedCost: bigint
}

export interface Journal {
  /** Random, stays with the directory: begins every message id. */
  readonly id: string
  readonly recovered: Recovered
  /**
   * Writes that the call is let in. `written(null)` comes when the kernel has the bytes, in this turn of the
   * event loop; only then may an upstream be called. `written(error)`: refuse the call, its ticket is void.
   */
  admit(admission: Admission, written: (error: Error | null) => void): Ticket
  /**
   * Ends a call. Never throws, never waits; a second end of one ticket is ignored and logged. `ticket` is null for a
   * call that was refused before it was admitted; with any other, the admission's facts are written again unchanged,
   * and not read from `settlement`. `written` is called when the kernel has it, in this turn of the event loop, or
   * when the disk does not take it: then it is kept in memory and tried again. Where more than the disk is to have it,
   * `written` comes later, with an error when that fails.
   */
  settle(ticket: Ticket | null, settlement: Settlement, written?: (error?: Error) => void): void
  /** The number behind the last settlement that `settle` has taken. */
  readonly settledTo: number
  depth(): JournalDepth
  /** Returns the calls and credits that only this journal has. Visits each open call. */
  holdings(): JournalHoldings
  /**
   * Returns the cost of unconfirmed settlements of an earlier process for this account or this key, in 1e-8 credit: a
   * new wallet view begins with it as unbooked.
   */
  recoveredCost(id: string): bigint
  /** Settlements written and not taken by `take`. */
  readonly untaken: number
  /** Called after a write that held settlements. One listener. */
  onSettled(listener: () => void): void
  /**
   * Returns the next settlements to publish, or null.
   * @throws Error of the file system
   */
  take(): JournalBatch | null
  /** Frees the memory of a batch, which is to be confirmed later. */
  release(batch: JournalBatch): void
  /** Confirms that PostgreSQL has the batch: its part of the file is no longer needed. */
  confirm(batch: JournalBatch): void
  /** Writes the waiting records, syncs them and releases the directory. Nothing is accepted afterwards. */
  close(): Promise<void>
}

export interface JournalOptions {
  /** Made when missing; owned by one process at a time. */
  readonly directory: string
  readonly log: JournalLog
  readonly files?: JournalFiles
  readonly clock?: JournalClock
  readonly segmentBytes?: number
  /** Of memory for settlements that wait to be booked. */
  readonly pageBytes?: number
  readonly syncIntervalMs?: number
}
