/** A journal that is found on a disk, and read without being taken over or changed. */
import type { Admission } from '../../schemas/call-log/columns.ts'
import type { JournalLog } from './clock.ts'
import { diskFiles, type JournalFiles } from './files.ts'
import { readGroups } from './format.ts'
import { readId } from './id.ts'
import { isOwned } from './owner.ts'
import { recoverState } from './recovery.ts'

export interface FoundJournal {
  readonly id: string
  /** A process of this machine lives in it. */
  readonly isOwned: boolean
  /** Calls that were admitted and have no end, in the order of admission. */
  readonly interrupted: readonly Admission[]
  /** Bytes that could not be read. */
  readonly damagedBytes: number
  /** Reads the settlements that are not known to be booked: JSON, one a line. */
  readSettlements(): Iterable<Uint8Array>
}

/**
 * Reads the journal of a directory; returns null where there is none.
 * @throws Error of the file system
 */
export function findJournal(
  directory: string,
  log: JournalLog,
  files: JournalFiles = diskFiles,
): FoundJournal | null {
  const id = readId(files, directory)
  if (id === null) return null
  const { segments, interrupted, booked, tornBytes, corruptedBytes } = recoverState(files, directory, log)
  return {
    id,
    isOwned: isOwned(directory),
    interrupted,
    damagedBytes: tornBytes + corruptedBytes,
    *readSettlements() {
      for (const { path } of segments)
        for (const group of readGroups(files.read(path), 0, () => undefined))
          if (group.count > 0 && group.first + group.count > booked) yield group.settlements
    },
  }
}
