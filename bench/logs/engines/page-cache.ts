/** What the machine holds in memory before anything is measured. */
import { createReadStream } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'

const CHUNK_BYTES = 1024 * 1024

const readThrough = async (path: string): Promise<void> => {
  for await (const _ of createReadStream(path, { highWaterMark: CHUNK_BYTES }));
}

/**
 * Reads every file below the folder once, so that the questions asked first do not wait for the disk where the later
 * ones find all in memory. `checkpoint` throws to end the work.
 */
export const readIn = async (folder: string, checkpoint: () => void): Promise<void> => {
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    checkpoint()
    // Parts are merged, and their files removed, meanwhile.
    if (entry.isFile()) await readThrough(join(entry.parentPath, entry.name)).catch(() => undefined)
  }
}
