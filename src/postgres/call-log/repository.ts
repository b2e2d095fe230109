/** Booked calls as operators read them here, and on their way to the call log in ClickHouse. */

import type { CallWithDetail } from '../../../schemas/call-log/detail.ts'
import type { InstallationCall, InstallationPageQuery } from '../../../schemas/call-log/page-query.ts'
import type { LoggedCall } from '../../../schemas/call-log/unbooked.ts'
import { onStandby } from '../reading.ts'
import { onPool, type Pools, READ_DEADLINE_MS } from '../repository.ts'
import {
  type CallFilter,
  type CallsSince,
  listCallsSince,
  listNewestCalls,
  type NewestCalls,
} from './calls.ts'
import {
  type ClaimedRange,
  type CopyRange,
  claimCopyRange,
  finishCopyRange,
  readCopiedUpto,
  readUsageRows,
} from './copy.ts'
import { type FoundCall, findCall } from './find-call.ts'
import {
  type CopyMark,
  claimRebuild,
  countUsageRows,
  findRangeEnd,
  findUnbooked,
  holdCopying,
  readCallsKeptSince,
  recordUnbooked,
  releaseRebuild,
} from './rebuild.ts'
import { type CallsById, listUncopiedById, listUncopiedCalls } from './uncopied.ts'

/** Booked calls that the call log may not have yet. */
export interface UncopiedCalls {
  /** Returns the id up to which the call log has every call. */
  readCopiedUpto(): Promise<bigint>
  /** Returns those of the page that were booked after this id, in its order; at most one more than the page has. */
  listUncopied(query: InstallationPageQuery, copiedUpto: bigint): Promise<InstallationCall[]>
  listUncopiedById(calls: CallsById): Promise<CallWithDetail[]>
}

export interface Calls extends UncopiedCalls {
  readNewest(filter: CallFilter, count: number): Promise<NewestCalls>
  readSince(filter: CallFilter, after: bigint): Promise<CallsSince>
  find(ref: string): Promise<FoundCall>
}

export interface CallCopy {
  claimRange(): Promise<ClaimedRange | null>
  readRows(copyRange: CopyRange): Promise<Buffer>
  finishRange(copyRange: CopyRange): Promise<void>
  readCopiedUpto(): Promise<bigint>
  recordUnbooked(what: 'import' | 'delete', facts: object): Promise<void>
  readUnbooked(calls: readonly LoggedCall[]): Promise<Set<string>>
  claimRebuild(): Promise<boolean>
  releaseRebuild(): Promise<void>
  readKeptSince(): Promise<Date | null>
  countRows(): Promise<number>
  findRangeEnd(copyRange: CopyRange, rows: number): Promise<bigint>
  readRowsToRebuild(copyRange: CopyRange): Promise<Buffer>
  holdCopying<T>(work: (mark: CopyMark, assertHeld: () => Promise<void>) => Promise<T>): Promise<T>
}

/** The call log is read without these rows after this time. */
const UNCOPIED_DEADLINE_MS = 2_000

export const openCalls = (pools: Pools): Calls => ({
  ...onStandby(
    pools,
    { readNewest: listNewestCalls, readSince: listCallsSince, find: findCall },
    READ_DEADLINE_MS,
  ),
  ...onStandby(
    pools,
    { readCopiedUpto, listUncopied: listUncopiedCalls, listUncopiedById },
    UNCOPIED_DEADLINE_MS,
  ),
})

export const openCallCopy = ({ main, copying, rebuilding, auditing }: Pools): CallCopy => ({
  ...onPool(copying, { claimRange: claimCopyRange, readRows: readUsageRows, finishRange: finishCopyRange }),
  ...onPool(main, { readCopiedUpto, recordUnbooked }),
  ...onPool(auditing, { readUnbooked: findUnbooked }),
  holdCopying: (work) => holdCopying(main, work),
  // While a rebuild holds copying, a copier of the same process waits on `copying`.
  ...onPool(rebuilding, {
    claimRebuild,
    releaseRebuild,
    readKeptSince: readCallsKeptSince,
    countRows: countUsageRows,
    findRangeEnd,
    readRowsToRebuild: readUsageRows,
  }),
})
