/** What the rest of the service may ask of a journal. */
import type { Settlement } from '../../schemas/events/event.ts'
import type { JournalBatch } from './batches.ts'
import type { JournalClock, JournalLog } from './clock.ts'
import type { JournalFiles } from './files.ts'
import type { Admission } from './lines.ts'

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

/** What the last process left here; all of it is published again. */
export interface Recovered {
  /** Calls without an end: they are settled now as interrupted, at no charge. */
  readonly interrupted: number
  /** Settlements that were not known to be booked, those of the interrupted calls included. */
  readonly unbooked: number
  readonly tornBytes: number
  readonly corruptedBytes: number
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
   * The end of a call. Never throws, never waits; a second end of one ticket is ignored and told in the log.
   * `ticket` is null for a call that was refused before it was admitted; with any other, what the admission said is
   * written again as it was, and not read from `settlement`. `written` comes when the kernel has it, in this turn of the
   * event loop, or when the disk does not take it: then it is kept in memory and tried again.
   */
  settle(ticket: Ticket | null, settlement: Settlement, written?: () => void): void
  depth(): JournalDepth
  /**
   * What settlements that an earlier process left here cost this account or this key, in 1e-8 credit, as far as they are
   * not confirmed: a wallet view that is made now begins with it as unbooked.
   */
  recoveredCost(id: string): bigint
  /** Settlements written and not taken by `take`. */
  readonly untaken: number
  /** Called after a write that held settlements. One listener. */
  onSettled(listener: () => void): void
  /** The next settlements to publish, or null. @throws Error of the file system */
  take(): JournalBatch | null
  /** PostgreSQL has the batch: its part of the file is not needed any more. */
  confirm(batch: JournalBatch): void
  /** Writes what waits, brings it to the disk and releases the directory. Nothing is accepted afterwards. */
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
