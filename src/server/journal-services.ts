/** What operations on journals use: the disk of this machine, and JetStream. */
import { realpathSync } from 'node:fs'
import { sep } from 'node:path'
import type { JournalServices } from '../../pipelines/management/jobs/journals.ts'
import { findJournal } from '../journal/found.ts'
import { makeInterruptedSettlement } from '../journal/lines.ts'
import type { Nats, NatsLog } from '../nats/nats.ts'

/** Returns the path without links; null where there is nothing, or nothing that can be reached. */
function realPath(path: string): string | null {
  try {
    return realpathSync(path)
  } catch {
    return null
  }
}

/** Returns the folder without links where it is a root or below one; null where it is not, or is not there. */
function folderBelow(roots: readonly string[], directory: string): string | null {
  const folder = realPath(directory)
  if (folder === null) return null
  const isBelow = (root: string | null) =>
    root !== null && (folder === root || folder.startsWith(root.endsWith(sep) ? root : root + sep))
  return roots.map(realPath).some(isBelow) ? folder : null
}

/**
 * @param nats null: its address is not known
 * @param roots returns the folders below which a journal may be; null: anywhere, for a user of this machine
 */
export const journalServices = (
  nats: Pick<Nats, 'countSettlements'> | null,
  log: NatsLog,
  roots: (() => readonly string[]) | null = null,
): JournalServices => ({
  find(directory) {
    const folder = roots === null ? realPath(directory) : folderBelow(roots(), directory)
    return folder === null ? null : findJournal(folder, log)
  },
  interrupt: makeInterruptedSettlement,
  countSettlements: async (subject) => nats?.countSettlements(subject).catch(() => null) ?? null,
})
