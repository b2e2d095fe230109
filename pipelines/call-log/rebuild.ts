/**
 * Rebuilds the call log from PostgreSQL's usage rows into a second table, while calls arrive and are read. Rows copied
 * meanwhile still go to the live log, and the new one follows; for the last of them copying is paused, the two tables
 * change places, and the claimed range goes to the new one. Calls whose usage rows retention has taken away are taken over
 * from the live log. Calls that only the live log has are deleted only where someone has agreed to it.
 */
import type { UnbookedSum } from '../../schemas/call-log/unbooked.ts'
import type { CallLog } from '../../src/clickhouse/call-log.ts'
import type { Accounts } from '../../src/postgres/accounts/repository.ts'
import type { CallCopy } from '../../src/postgres/call-log/repository.ts'
import { findUnbooked, sumUnbooked } from './unbooked.ts'
import { makeCopyToken } from './usage-copy.ts'

/** Rows in one insert: some 25 MB of text, a part on disk for each month in it. */
const RANGE_ROWS = 50_000
/** While copying is held no call becomes readable: at most this many rows are left for then. */
const HELD_ROWS = 10_000

export interface RebuildProgress {
  /** Usage rows that were read. */
  readonly rows: number
  /** Those that there were when the rebuild began. */
  readonly total: number
}

export interface RebuildResult {
  /** Rows of the log now. */
  readonly rows: number
  /** Of the usage rows those that the log had dropped by age, and does not have again. */
  readonly dropped: number
}

export interface LogRebuildDeps {
  readonly database: {
    readonly callCopy: CallCopy
    readonly accounts: Accounts
  }
  readonly callLog: CallLog
  /**
   * Called where the log has calls that PostgreSQL has not; resolves where they may be deleted. Default: they may not.
   */
  readonly confirmDeletion?: (unbooked: UnbookedSum) => Promise<void>
  /** Called with the progress; the rebuild continues when the result has resolved. */
  readonly onProgress?: (progress: RebuildProgress) => void | Promise<void>
  readonly rangeRows?: number
  readonly heldRows?: number
}

const NEWLINE = 0x0a

function countLines(text: Buffer): number {
  let lines = 0
  for (let at = text.indexOf(NEWLINE); at !== -1; at = text.indexOf(NEWLINE, at + 1)) lines++
  return lines
}

const claim = async (database: LogRebuildDeps['database']): Promise<void> => {
  if (!(await database.callCopy.claimRebuild()))
    throw new Error('Another rebuild of the call log is under way')
}

/** The log has calls that PostgreSQL has not: a rebuild would delete them. */
class UnbookedCalls extends Error {
  constructor({ calls, cost, accounts }: UnbookedSum) {
    super(
      `Only the call log has ${calls} calls of ${accounts.length} accounts, which cost ${cost} credits: a rebuild would ` +
        'delete them. Book them with `tollgate wallet import-log`, or delete them with --delete-unbooked (`delete_unbooked` ' +
        'of the management API)',
    )
  }
}

const refuseDeletion = async (unbooked: UnbookedSum): Promise<void> => {
  throw new UnbookedCalls(unbooked)
}

/** Returns what the rebuild will delete with consent; null: nothing. */
async function findDeletion(deps: LogRebuildDeps): Promise<UnbookedSum | null> {
  const { database, callLog, confirmDeletion = refuseDeletion } = deps
  const found = await findUnbooked({ database, callLog })
  if (found.length === 0) return null
  const sum = await sumUnbooked(database, found)
  await confirmDeletion(sum)
  return sum
}

/**
 * Rebuilds the log. An interruption leaves the log as it was, and the next rebuild starts over.
 * @throws Error when another rebuild is under way, or an engine fails; `UnbookedCalls`
 */
export async function rebuildLog(deps: LogRebuildDeps): Promise<RebuildResult> {
  await claim(deps.database)
  try {
    return await rebuildUnderClaim(deps)
  } finally {
    await deps.database.callCopy.releaseRebuild()
  }
}

async function rebuildUnderClaim(deps: LogRebuildDeps): Promise<RebuildResult> {
  const { database, callLog, onProgress, rangeRows = RANGE_ROWS, heldRows = HELD_ROWS } = deps
  const total = await database.callCopy.countRows()
  const fresh = await callLog.createRebuildTables()
  const deletion = await findDeletion(deps).catch(async (error) => {
    await fresh.drop()
    throw error
  })
  let upto = 0n
  let read = 0
  const keptSince = await database.callCopy.readKeptSince()
  const taken = keptSince === null ? 0 : await fresh.keepCallsBefore(keptSince.getTime())
  let rows = 0

  async function follow(mark: bigint): Promise<void> {
    while (upto < mark) {
      const from = upto + 1n
      const range = { from, to: await database.callCopy.findRangeEnd({ from, to: mark }, rangeRows) }
      const text = await database.callCopy.readRowsToRebuild(range)
      rows += await fresh.insertCalls({ token: `rebuild-${range.from}-${range.to}`, text })
      read += countLines(text)
      upto = range.to
      await onProgress?.({ rows: read, total: Math.max(total, read) })
    }
  }

  const isFarBehind = async (mark: bigint) =>
    upto < mark && (await database.callCopy.findRangeEnd({ from: upto + 1n, to: mark }, heldRows)) < mark
  for (
    let mark = await database.callCopy.readCopiedUpto();
    await isFarBehind(mark);
    mark = await database.callCopy.readCopiedUpto()
  )
    await follow(mark)
  await database.callCopy.holdCopying(async ({ copiedUpto, claimedUpto }, assertHeld) => {
    await follow(copiedUpto)
    // A session may have been lost: during its absence another rebuild may have begun, a month may have been taken away, or
    // copying may have continued.
    await claim(database)
    if ((await database.callCopy.readKeptSince())?.getTime() !== keptSince?.getTime())
      throw new Error('A month was taken away meanwhile: run the rebuild again')
    await assertHeld()
    await fresh.swap()
    if (claimedUpto === null) return
    // Its copier may have sent it to the log that was, and be about to finish it. If it comes again, it is known.
    const range = { from: copiedUpto + 1n, to: claimedUpto }
    const text = await database.callCopy.readRowsToRebuild(range)
    rows += await callLog.insertCalls({ token: makeCopyToken(range), text })
    read += countLines(text)
  })
  await fresh.drop()
  if (deletion !== null) {
    const { calls, cost } = deletion
    await database.callCopy.recordUnbooked('delete', { calls, cost })
  }
  return { rows: rows + taken, dropped: read - rows }
}
