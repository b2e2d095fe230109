/**
 * The local append-only file that outlives the process: which calls were let in, and how each ended, until
 * PostgreSQL has it. Everything of one turn of the event loop is one write. See docs/architecture.md, "A settlement".
 */
import { FileJournal } from './file-journal.ts'
import { diskFiles, type JournalFiles } from './files.ts'
import { listSegments } from './segments.ts'
import type { Journal, JournalOptions } from './types.ts'

export type { JournalBatch } from './batches.ts'
export type { Journal, JournalDepth, JournalOptions, Ticket } from './types.ts'

/**
 * Opens a directory, and takes over the records of a process that died.
 * @throws Error when it is in use or unreadable
 */
export async function openJournal(options: JournalOptions): Promise<Journal> {
  const files = options.files ?? diskFiles
  await files.claim(options.directory)
  await syncAncestors(files, options)
  return new FileJournal(options, files)
}

/**
 * Syncs the files of an earlier process: after its death only the kernel has them. From here on others act on them, so
 * that they must not be lost any more.
 */
async function syncAncestors(files: JournalFiles, { directory, log }: JournalOptions): Promise<void> {
  const sync = (path: string, how: 'syncPath' | 'syncDirectory') =>
    new Promise<void>((resolve) => {
      files[how](path, (error) => {
        if (error !== null) log.error({ error, path }, 'Failed to sync the journal to the disk')
        resolve()
      })
    })
  await Promise.all(listSegments(files, directory).map(({ path }) => sync(path, 'syncPath')))
  await sync(directory, 'syncDirectory')
}
