/** The id of a journal: random, and stays with its directory. */
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import type { JournalFiles } from './files.ts'

const ID_BYTES = 9
const ID_FILE = 'id'
const ID_PATTERN = /^[\w-]+$/

export const makeId = (): string => randomBytes(ID_BYTES).toString('base64url')

/** Returns the id of the journal in a directory; null where there is none. */
export function readId(files: JournalFiles, directory: string): string | null {
  if (!files.list(directory).includes(ID_FILE)) return null
  const id = files.read(join(directory, ID_FILE)).toString('utf8').trim()
  return ID_PATTERN.test(id) ? id : null
}

/** Gives a directory an id, and returns it. */
export function writeId(files: JournalFiles, directory: string): string {
  const id = makeId()
  files.replace(join(directory, ID_FILE), `${id}\n`)
  return id
}
