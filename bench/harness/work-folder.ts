/**
 * The folder a run works in: its own, which goes with it, or one that is kept for the next run. What a killed run left
 * is removed by the next.
 */
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { type DataDirLock, lockDataDir } from '../../src/embedded/data-dir.ts'
import { identify, isAlive } from '../../src/embedded/process-identity.ts'

export interface WorkFolder {
  /** Absolute, with the engines' data in it. */
  readonly folder: string
  /** Lets go of it, and removes it unless it is kept. Never fails. */
  leave(): void
}

const PREFIX = 'tollgate-bench-run-'
/** Run as root, PostgreSQL is another user and has to pass through. */
const PASSABLE_MODE = 0o711

/** Folders of runs that are gone; their names say whose they are. */
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

/** A new folder where none is named, which is kept. Throws where another run holds the folder. */
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
