/**
 * A place in memory for what makes and removes files by the hundred, as ClickHouse does for each insert: on a disk's
 * file system looking for room for them costs the kernel as much again as all the engine does.
 */
import { accessSync, constants, statfsSync } from 'node:fs'
import { join } from 'node:path'

const SHARED_MEMORY = '/dev/shm'
const TMPFS = 0x01021994
/** Containers often have a few megabytes there: not enough for four tests at a time. */
const LEAST_FREE_BYTES = 1024 ** 3

/** This user's folder there, which need not exist yet; null where the machine has no such place. */
export function memoryFolder(): string | null {
  try {
    accessSync(SHARED_MEMORY, constants.W_OK)
    const { type, bavail, bsize } = statfsSync(SHARED_MEMORY)
    if (type !== TMPFS || bavail * bsize < LEAST_FREE_BYTES) return null
  } catch {
    return null
  }
  return join(SHARED_MEMORY, `tollgate-test-${process.getuid?.() ?? 0}`)
}
