/**
 * The folder of a run: a temporary one, or one that is kept for the next run. A run removes what killed runs left.
 */
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { type DataDirLock, lockDataDir } from '../../src/embedded/data-dir.ts'
import { identify, isAlive } from '../../src/embedded/process-identity.ts'

export interface WorkFolder {
  /** Absolute, with the engines' data in it. */
  readonly folder: string
  /** Releases the folder, and removes it unless it is kept. Never fails. */
  leave(): void
}

const PREFIX = 'tollgate-bench-run-'
/** When the bench runs as root, PostgreSQL runs as another user and has to enter the folder. */
const PASSABLE_MODE = 0o711

/** Removes folders of runs that have ended. Their names contain the process. */
const sweep = (parent: string): void => {
  for (const name of readdirSync(parent)) {
    if (!name.startsWith(PREFIX)) continue
    const [pid, start = ''] = name.slice(PREFIX.length).split('@')
    if (!isAlive({ pid: Number(pid), start }))
      rmSync(join(parent, name), { recursive: true, force: true, maxRetries: 5, retryDelay: 100 })
  }
}

const ownFolder = (): string => {
  const parent = tmpdir()
  sweep(parent)
  const start = identify(process.pid)?.start ?? ''
  return mkdtempSync(join(parent, `${PREFIX}${process.pid}@${start}@`))
}

/** Creates a temporary folder, or opens the named one, which is kept. Throws where another run uses the folder. */
export const enterWorkFolder = async (kept: string | null = null): Promise<WorkFolder> => {
  const folder = kept === null ? ownFolder() : resolve(kept)
  mkdirSync(folder, { recursive: true })
  chmodSync(folder, PASSABLE_MODE)
  const lock: DataDirLock = await lockDataDir(folder)
  return {
    folder,
    leave: () => {
      lock.release()
      if (kept === null) rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 })
    },
  }
}
