/** Journals of workers that no longer exist, because the service now runs with fewer. */
import { join } from 'node:path'
import type { JournalClock, JournalLog } from './clock.ts'
import { diskFiles, type JournalFiles } from './files.ts'
import { type Journal, openJournal } from './journal.ts'

/**
 * Opens every journal under `root` whose name is not among `liveNames`, so that its settlements can be
 * published too. Once such a journal has nothing unbooked, `retireJournal` removes it.
 * @throws Error when one is in use or unreadable
 */
export async function openOrphans(
  root: string,
  liveNames: readonly string[],
  log: JournalLog,
  overrides: { readonly files?: JournalFiles; readonly clock?: JournalClock } = {},
): Promise<OrphanJournal[]> {
  const files = overrides.files ?? diskFiles
  const orphans: OrphanJournal[] = []
  for (const name of files.list(root).sort()) {
    if (liveNames.includes(name)) continue
    const directory = join(root, name)
    orphans.push({ directory, journal: await openJournal({ ...overrides, directory, log }) })
  }
  return orphans
}

export interface OrphanJournal {
  readonly directory: string
  readonly journal: Journal
}

/** Closes an orphan; removes its directory when everything in it is booked, else keeps it for the next start. */
export async function retireJournal(
  orphan: OrphanJournal,
  files: JournalFiles = diskFiles,
): Promise<boolean> {
  const { open, settlementsUnbooked } = orphan.journal.depth()
  await orphan.journal.close()
  if (open > 0 || settlementsUnbooked > 0) return false
  files.removeDirectory(orphan.directory)
  return true
}
