/**
 * Finds one call in the journals of this machine. They are read while their processes write: a group is visible whole
 * or not at all, and a file that is removed meanwhile had only booked content.
 */

import { Buffer } from 'node:buffer'
import { join } from 'node:path'
import { type Admission, admission } from '../../schemas/call-log/columns.ts'
import { diskFiles, type JournalFiles } from './files.ts'
import { parseLines, readGroups } from './format.ts'
import { isOwned } from './owner.ts'
import { listSegments } from './segments.ts'

export interface JournalTrace {
  readonly directory: string
  /** A process lives in the journal. Else its content waits for the next start. */
  readonly isLive: boolean
  /** The call as it was let in; null when the journal does not have it, as of a call that was refused. */
  readonly admission: Admission | null
  /** The settlement that is not booked yet; null during the call. */
  readonly settlement: object | null
}

/** Searches every journal under `root` for a request id; returns null where none has it. */
export function findInJournals(
  root: string,
  requestId: string,
  files: JournalFiles = diskFiles,
): JournalTrace | null {
  for (const name of files.list(root).sort()) {
    const directory = join(root, name)
    const lines = findLines(files, directory, requestId)
    if (lines.admission !== null || lines.settlement !== null)
      return { directory, isLive: isOwned(directory), ...lines }
  }
  return null
}

type Lines = Pick<JournalTrace, 'admission' | 'settlement'>

function findLines(files: JournalFiles, directory: string, requestId: string): Lines {
  let found: Lines = { admission: null, settlement: null }
  // As both kinds of lines begin.
  const mark = Buffer.from(`{"request_id":${JSON.stringify(requestId)},`)
  for (const bytes of readSegments(files, directory)) {
    if (!bytes.includes(mark)) continue
    for (const group of readGroups(bytes, 0, () => {})) {
      const admitted = admission.safeParse(findLine(group.admissions, mark))
      found = {
        admission: admitted.success ? admitted.data : found.admission,
        settlement: findLine(group.settlements, mark) ?? found.settlement,
      }
    }
  }
  return found
}

function* readSegments(files: JournalFiles, directory: string): Generator<Buffer, void, undefined> {
  for (const { path } of readIfThere(() => listSegments(files, directory)) ?? []) {
    const bytes = readIfThere(() => files.read(path))
    if (bytes !== null) yield bytes
  }
}

/** Returns the result of `read`; null where a file was removed between its listing and now. */
function readIfThere<T>(read: () => T): T | null {
  try {
    return read()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
}

function findLine(section: Buffer, mark: Buffer): object | null {
  const at = section.indexOf(mark)
  if (at === -1) return null
  const end = section.indexOf('\n', at)
  const [value] = parseLines(section.subarray(at, end === -1 ? section.length : end), () => {})
  return (value as object | undefined) ?? null
}
