/** Fills the machine's file cache before the measurement. */
import { createReadStream } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'

const CHUNK_BYTES = 1024 * 1024

const readThrough = async (path: string): Promise<void> => {
  for await (const _ of createReadStream(path, { highWaterMark: CHUNK_BYTES }));
}

/**
 * Reads every file below the folder once, so that the first queries do not wait for the disk. `checkpoint` throws to end
 * the work.
 */
export const readIn = async (folder: string, checkpoint: () => void): Promise<void> => {
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    checkpoint()
    // A merge may remove files meanwhile.
    if (entry.isFile()) await readThrough(join(entry.parentPath, entry.name)).catch(() => undefined)
  }
}
