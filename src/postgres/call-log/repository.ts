/** Booked calls as operators read them here, and on their way to the call log in ClickHouse. */
import { onStandby } from '../reading.ts'
import { onPool, type Pools, READ_DEADLINE_MS } from '../repository.ts'
import { callsSince, newestCalls } from './calls.ts'
import { claimCopyRange, copiedUpto, finishCopyRange, readUsageRows } from './copy.ts'
import { findCall } from './find-call.ts'
import {
  type CopyMark,
  callsKeptSince,
  claimRebuild,
  countUsageRows,
  holdCopying,
  rangeEnd,
  releaseRebuild,
} from './rebuild.ts'
import { recordUnbooked, unbookedOf } from './unbooked.ts'

export type Calls = ReturnType<typeof openCalls>
export type CallCopy = ReturnType<typeof openCallCopy>

export const openCalls = (pools: Pools) =>
  onStandby(pools, { newestCalls, callsSince, findCall }, READ_DEADLINE_MS)

export const openCallCopy = ({ main, copying, rebuilding, auditing }: Pools) => ({
  ...onPool(copying, { claimCopyRange, readUsageRows, finishCopyRange }),
  ...onPool(main, { copiedUpto, recordUnbooked }),
  ...onPool(auditing, { unbookedOf }),
  // While a rebuild holds copying, a copier of the same process waits on `copying`.
  ...onPool(rebuilding, {
    claimRebuild,
    releaseRebuild,
    callsKeptSince,
    countUsageRows,
    rangeEnd,
    readRowsToRebuild: readUsageRows,
  }),
  holdCopying: <T>(work: (mark: CopyMark, assertHeld: () => Promise<void>) => Promise<T>) =>
    holdCopying(main, work),
})
