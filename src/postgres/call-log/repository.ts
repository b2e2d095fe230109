/** Booked calls as operators read them here, and on their way to the call log in ClickHouse. */

import type { CallWithDetail } from '../../../schemas/call-log/detail.ts'
import type { InstallationCall, InstallationPageQuery } from '../../../schemas/call-log/page-query.ts'
import type { LoggedCall } from '../../../schemas/call-log/unbooked.ts'
import { onStandby } from '../reading.ts'
import { onPool, type Pools, READ_DEADLINE_MS } from '../repository.ts'
import * as calls from './calls.ts'
import * as copy from './copy.ts'
import { type FoundCall, findCall } from './find-call.ts'
import * as rebuild from './rebuild.ts'
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
  readNewest(filter: calls.CallFilter, count: number): Promise<calls.NewestCalls>
  readSince(filter: calls.CallFilter, after: bigint): Promise<calls.CallsSince>
  find(ref: string): Promise<FoundCall>
}

export interface CallCopy {
  claimRange(): Promise<copy.ClaimedRange | null>
  readRows(copyRange: copy.CopyRange): Promise<Buffer>
  finishRange(copyRange: copy.CopyRange): Promise<void>
  readCopiedUpto(): Promise<bigint>
  recordUnbooked(what: 'import' | 'delete', facts: object): Promise<void>
  readUnbooked(calls: readonly LoggedCall[]): Promise<Set<string>>
  claimRebuild(): Promise<boolean>
  releaseRebuild(): Promise<void>
  readKeptSince(): Promise<Date | null>
  countRows(): Promise<number>
  findRangeEnd(copyRange: copy.CopyRange, rows: number): Promise<bigint>
  readRowsToRebuild(copyRange: copy.CopyRange): Promise<Buffer>
  holdCopying<T>(work: (mark: rebuild.CopyMark, assertHeld: () => Promise<void>) => Promise<T>): Promise<T>
}

/** The call log is read without these rows after this time. */
const UNCOPIED_DEADLINE_MS = 2_000

export const openCalls = (pools: Pools): Calls => ({
  ...onStandby(
    pools,
    { readNewest: calls.listNewestCalls, readSince: calls.listCallsSince, find: findCall },
    READ_DEADLINE_MS,
  ),
  ...onStandby(
    pools,
    { readCopiedUpto: copy.readCopiedUpto, listUncopied: listUncopiedCalls, listUncopiedById },
    UNCOPIED_DEADLINE_MS,
  ),
})

export const openCallCopy = ({ main, copying, rebuilding, auditing }: Pools): CallCopy => ({
  ...onPool(copying, {
    claimRange: copy.claimCopyRange,
    readRows: copy.readUsageRows,
    finishRange: copy.finishCopyRange,
  }),
  ...onPool(main, { readCopiedUpto: copy.readCopiedUpto, recordUnbooked: rebuild.recordUnbooked }),
  ...onPool(auditing, { readUnbooked: rebuild.findUnbooked }),
  holdCopying: (work) => rebuild.holdCopying(main, work),
  // While a rebuild holds copying, a copier of the same process waits on `copying`.
  ...onPool(rebuilding, {
    claimRebuild: rebuild.claimRebuild,
    releaseRebuild: rebuild.releaseRebuild,
    readKeptSince: rebuild.readCallsKeptSince,
    countRows: rebuild.countUsageRows,
    findRangeEnd: rebuild.findRangeEnd,
    readRowsToRebuild: copy.readUsageRows,
  }),
})
