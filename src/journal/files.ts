/** The few file operations that the journal needs, so that a simulation can put a crash between any two of them. */
import {
  close,
  closeSync,
  fdatasync,
  fsync,
  fsyncSync,
  mkdirSync,
  open,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  unlink,
  writeSync,
} from 'node:fs'
import { dirname } from 'node:path'
import { claimDirectory, releaseDirectory } from './owner.ts'

export type FileDone = (error: Error | null) => void

export interface JournalFiles {
  /** Makes the directory and takes it for this process only. Throws when another live process owns it. */
  claim(directory: string): Promise<void>
  release(directory: string): void
  /** Returns the names in a directory; empty when there is none. */
  list(directory: string): string[]
  size(path: string): number
  read(path: string): Buffer
  /** Fills as much of `target` as the file has from `position` on; answers how many bytes that was. */
  readAt(path: string, target: Buffer, position: number): number
  /** Makes a file that is not there yet and opens it for writing. */
  create(path: string): number
  write(file: number, bytes: Buffer, offset: number, length: number, position: number): number
  /** Syncs a file to the disk without waiting. */
  sync(file: number, done: FileDone): void
  /** Syncs to the disk all that any process wrote to a file, without waiting. */
  syncPath(path: string, done: FileDone): void
  /** Syncs names created and removed in a directory to the disk, without waiting. */
  syncDirectory(directory: string, done: FileDone): void
  close(file: number): void
  /** Removes a file without waiting: freeing megabytes takes milliseconds. */
  remove(path: string, done: FileDone): void
  removeDirectory(directory: string): void
  /** Puts a small file in place whole or not at all, on the disk when it returns. */
  replace(path: string, text: string): void
}

/** Journals name accounts and models: only their owner may read them. */
const PRIVATE_FILE_MODE = 0o600
const PRIVATE_DIRECTORY_MODE = 0o700

function syncPath(path: string, done: FileDone): void {
  open(path, 'r', (error, file) => {
    if (error !== null) return done(error)
    fsync(file, (failed) => close(file, (unclosed) => done(failed ?? unclosed ?? null)))
  })
}

export const diskFiles: JournalFiles = {
  async claim(directory) {
    mkdirSync(directory, { recursive: true, mode: PRIVATE_DIRECTORY_MODE })
    await claimDirectory(directory)
  },
  release: releaseDirectory,
  list(directory) {
    try {
      return readdirSync(directory)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
      throw error
    }
  },
  size: (path) => statSync(path).size,
  read: (path) => readFileSync(path),
  readAt(path, target, position) {
    const file = openSync(path, 'r')
    try {
      let filled = 0
      while (filled < target.length) {
        const read = readSync(file, target, filled, target.length - filled, position + filled)
        if (read === 0) break
        filled += read
      }
      return filled
    } finally {
      closeSync(file)
    }
  },
  create: (path) => openSync(path, 'wx', PRIVATE_FILE_MODE),
  write: (file, bytes, offset, length, position) => writeSync(file, bytes, offset, length, position),
  sync: (file, done) => fdatasync(file, done),
  syncPath,
  syncDirectory: syncPath,
  close: (file) => closeSync(file),
  remove: (path, done) => unlink(path, done),
  removeDirectory: (directory) => rmSync(directory, { recursive: true, force: true }),
  replace(path, text) {
    const fresh = `${path}.new`
    const file = openSync(fresh, 'w', PRIVATE_FILE_MODE)
    try {
      writeSync(file, text)
      fsyncSync(file)
    } finally {
      closeSync(file)
    }
    renameSync(fresh, path)
    const folder = openSync(dirname(path), 'r')
    try {
      fsyncSync(folder)
    } finally {
      closeSync(folder)
    }
  },
}
