import { open, unlink } from 'node:fs/promises'
import { join } from 'node:path'

let written = 0

/**
 * Writes the rows of an INSERT to a file in `folder`, from which the engine reads them: rows that follow the statement
 * cost twice as much, because the engine looks for the end of the statement in all of them.
 *
 * The file has no name by the time it is written, so that no kill leaves it behind. `work` gets the path of its
 * descriptor, which has no character that the engine would take for a pattern, whatever the folder is called. On Linux,
 * opening that path starts at the beginning of the file.
 */
export async function withRowFile<T>(
  folder: string,
  rows: Buffer,
  work: (path: string) => Promise<T>,
): Promise<T> {
  written += 1
  const name = join(folder, `rows-${written}`)
  const file = await open(name, 'w+', 0o600)
  try {
    await unlink(name)
    await file.writeFile(rows)
    return await work(`/dev/fd/${file.fd}`)
  } finally {
    await file.close()
  }
}
