/**
 * Files in memory that forget what a machine would forget. A killed process loses what it had not handed over, down to
 * half a write; a loss of power loses what was not brought to the disk, in any order.
 */
import { dirname } from 'node:path'
import type { FileDone, JournalFiles } from '../../src/journal/files.ts'
import type { Random } from './random.ts'
import { Died, type Process } from './virtual-time.ts'

interface Write {
  readonly position: number
  readonly bytes: Buffer
}

interface File {
  bytes: Buffer
  length: number
  /** Not on the disk yet, in order. */
  unsynced: Write[]
  /** Whether the directory on the disk has the name. */
  isNameSynced: boolean
}

const SYNC_MIN_MS = 1
const SYNC_MAX_MS = 30

export class MemoryDisk {
  readonly files = new Map<string, File>()
  /** Removed, and back after a loss of power. */
  readonly removed = new Map<string, File>()

  /** What the machine finds when power is back. */
  losePower(random: Random): void {
    for (const [path, file] of this.removed)
      if (!this.files.has(path) && random.chance(0.5)) this.files.set(path, file)
    this.removed.clear()
    for (const [path, file] of [...this.files]) {
      if (!file.isNameSynced && random.chance(0.5)) this.files.delete(path)
      else this.#loseWrites(file, random)
      file.isNameSynced = true
    }
  }

  #loseWrites(file: File, random: Random): void {
    const [first] = file.unsynced
    if (first === undefined) return
    const writes = file.unsynced
    file.unsynced = []
    file.bytes.fill(0, first.position, file.length)
    file.length = first.position
    for (const write of writes) {
      if (random.chance(0.3)) continue
      put(
        file,
        write.position,
        write.bytes.subarray(0, random.chance(0.3) ? random.int(0, write.bytes.length) : undefined),
      )
    }
  }
}

function put(file: File, position: number, bytes: Buffer): void {
  const end = position + bytes.length
  if (end > file.bytes.length) {
    const larger = Buffer.alloc(2 * end)
    file.bytes.copy(larger, 0, 0, file.length)
    file.bytes = larger
  }
  bytes.copy(file.bytes, position)
  file.length = Math.max(file.length, end)
}

export interface FileFaults {
  /** Called before each write: true kills the process in the middle of it. */
  diesWriting(): boolean
  /** true: the disk is full. */
  isFull(): boolean
}

/** The disk as one process sees it. */
export function memoryFiles(
  disk: MemoryDisk,
  process: Process,
  random: Random,
  faults: FileFaults,
): JournalFiles {
  const opened = new Map<number, File>()
  let nextFile = 3
  const existing = (path: string): File => {
    const file = disk.files.get(path)
    if (file === undefined) throw new Error(`no such file: ${path}`)
    return file
  }
  const live = () => {
    if (!process.isAlive) throw new Died()
  }
  const written = (file: File, position: number, bytes: Buffer) => {
    put(file, position, bytes)
    file.unsynced.push({ position, bytes: Buffer.from(bytes) })
  }
  const syncFile = (file: File, done: FileDone) => {
    const last = file.unsynced.at(-1)
    process.settleAfter(random.int(SYNC_MIN_MS, SYNC_MAX_MS), () => {
      if (last !== undefined) file.unsynced.splice(0, file.unsynced.indexOf(last) + 1)
      done(null)
    })
  }
  return {
    claim: () => Promise.resolve(),
    release: () => undefined,
    list: (directory) =>
      [...disk.files.keys()]
        .filter((path) => dirname(path) === directory)
        .map((path) => path.slice(directory.length + 1)),
    size: (path) => existing(path).length,
    read: (path) => Buffer.from(existing(path).bytes.subarray(0, existing(path).length)),
    readAt(path, target, position) {
      const file = existing(path)
      return file.bytes.copy(target, 0, position, Math.min(file.length, position + target.length))
    },
    create(path) {
      live()
      if (disk.files.has(path)) throw new Error(`exists: ${path}`)
      const file = { bytes: Buffer.alloc(2048), length: 0, unsynced: [], isNameSynced: false }
      disk.files.set(path, file)
      opened.set(nextFile, file)
      return nextFile++
    },
    write(descriptor, bytes, offset, length, position) {
      live()
      const file = opened.get(descriptor)!
      if (faults.isFull()) {
        written(file, position, bytes.subarray(offset, offset + random.int(0, length)))
        throw Object.assign(new Error('no space left on device'), { code: 'ENOSPC' })
      }
      if (faults.diesWriting()) {
        written(file, position, bytes.subarray(offset, offset + random.int(0, length)))
        process.die()
        throw new Died()
      }
      const part = random.chance(0.05) ? random.int(1, length) : length
      written(file, position, bytes.subarray(offset, offset + part))
      return part
    },
    sync: (descriptor, done) => syncFile(opened.get(descriptor)!, done),
    syncPath: (path, done) => syncFile(existing(path), done),
    syncDirectory(directory, done) {
      process.settleAfter(random.int(SYNC_MIN_MS, SYNC_MAX_MS), () => {
        for (const [path, file] of disk.files) if (dirname(path) === directory) file.isNameSynced = true
        for (const path of disk.removed.keys()) if (dirname(path) === directory) disk.removed.delete(path)
        done(null)
      })
    },
    close: (descriptor) => void opened.delete(descriptor),
    remove(path, done) {
      process.settleAfter(random.int(0, SYNC_MAX_MS), () => {
        disk.removed.set(path, existing(path))
        disk.files.delete(path)
        done(null)
      })
    },
    removeDirectory(directory) {
      for (const path of [...disk.files.keys()]) if (dirname(path) === directory) disk.files.delete(path)
    },
    replace(path, text) {
      live()
      const bytes = Buffer.from(text)
      disk.files.set(path, { bytes, length: bytes.length, unsynced: [], isNameSynced: true })
    },
  }
}
